// Constants of the planners' cost estimates, per CU and clock. They order configs, they do not predict times.
// Matrix rates and clock: AMD's MI350X data sheet and CDNA4 ISA document. Loads in flight, round trip: the
// gfx950 Gluon tutorials. HBM: the 6.5 of 8 TB/s that AITER's documents plan with. Shares and other factors:
// estimates.
#pragma once

namespace mi350::cost {

constexpr double kClockGhz = 2.2;
constexpr double kMacsPerClk16 = 2048;          // bf16, f16 MFMA
constexpr double kMacsPerClk32 = 128;           // f32 MFMA: 32x32x2 is 2048 MAC in 64 clk on each of 4 SIMDs
constexpr double kLoadBytesPerClk = 44;         // 44 KB in flight per CU over a round trip of about 1000 clk
constexpr double kGatherElementsPerClk = 2;     // element loads: a wave instruction of scattered lines
constexpr double kHbmBytesPerUs = 6.5e6 / 256;  // a CU's share: a partition has the HBM of its XCDs
constexpr double kTileFixedClk = 3000;          // launch, first loads from memory, epilogue start
constexpr double kStoreBytesPerClk = 16;
constexpr double kElementStoreFactor = 4;       // element stores against wide ones

// Share of the MFMA rate that a tile's main loop reaches when nothing else limits it.
constexpr double mfma_share(int waves, int accumulators_per_wave) {
  return waves >= 8 ? 0.90 : accumulators_per_wave >= 4 ? 0.80 : 0.60;
}

}  // namespace mi350::cost
