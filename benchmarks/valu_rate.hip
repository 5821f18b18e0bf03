// A VALU-bound loop for benchmarks/emulator_speed.py: fma, max, multiply, shift, xor and add on independent registers,
// no memory access but the result. out: one float per work-item.
extern "C" __attribute__((global)) void valu_rate(float* out, unsigned rounds, float a, float b) {
  constexpr int kFloats = 8, kInts = 4, kUnroll = 4;
  const unsigned item = __builtin_amdgcn_workitem_id_x() + 256 * __builtin_amdgcn_workgroup_id_x();
  float x[kFloats];
  unsigned u[kInts];
  for (int i = 0; i < kFloats; ++i) x[i] = item + i;
  for (int i = 0; i < kInts; ++i) u[i] = item * 2654435761u + i;
  for (unsigned n = 0; n < rounds; ++n) {
#pragma unroll
    for (int r = 0; r < kUnroll; ++r) {
#pragma unroll
      for (int i = 0; i < kFloats; ++i) x[i] = __builtin_fmaf(x[i], a, b);
#pragma unroll
      for (int i = 0; i < kInts; ++i) {
        u[i] = (u[i] ^ (u[i] >> 3)) + 0x9e3779b9u;
        x[i] = __builtin_fmaxf(x[i], x[i + kInts] * a);
      }
    }
  }
  float sum = 0;
  for (int i = 0; i < kFloats; ++i) sum += x[i];
  for (int i = 0; i < kInts; ++i) sum += u[i];
  out[item] = sum;
}
