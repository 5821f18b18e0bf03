// The register checkers of check mode: every kernel of register_faults.hip with a fault is found, at the right
// instruction and register, and its twin is clean.
#include <nlohmann/json.hpp>

#include <ostream>

#include "emu/check/check_fixture.h"
#include "emulated_device.h"

namespace mi350::emu::test {
namespace {

constexpr const char* kInFlight = "register-in-flight";
constexpr const char* kWait = "wait-states";
constexpr const char* kExec = "exec-not-full";
constexpr const char* kUndefined = "undefined-data";

struct Fault {
  const char *kernel, *checker, *instruction, *where;
  const char* says = "";    // part of the message
  int lane = -1;
  bool advisory = false;
};
std::ostream& operator<<(std::ostream& out, const Fault& f) { return out << f.kernel; }

constexpr Fault kFaults[] = {
    {"vmem_read", kInFlight, "v_add_u32", "v10", "vmcnt(0)"},
    {"vmem_short", kInFlight, "v_add_u32", "v11", "vmcnt(0)"},
    {"vmem_overwritten", kInFlight, "v_mov_b32", "v10", "written"},
    {"vmem_address", kInFlight, "global_load_dword", "v10", "vmcnt(0)"},
    {"lds_read", kInFlight, "v_add_u32", "v10", "lgkmcnt(0)"},
    {"lds_short", kInFlight, "v_add_u32", "v11", "lgkmcnt(1)"},
    {"smem_read", kInFlight, "s_add_u32", "s60", "lgkmcnt(0)"},
    {"smem_short", kInFlight, "s_add_u32", "s60", "lgkmcnt(0)"},
    {"smem_overwritten", kInFlight, "s_mov_b32", "s60", "written"},
    {"flat_short", kInFlight, "v_add_u32", "v10", "lgkmcnt(0)"},

    {"sgpr_to_vmem", kWait, "buffer_load_dword", "s60", "5 wait states are required, 4 found"},
    {"lane_select", kWait, "v_readlane_b32", "s60", "4 wait states are required, 3 found"},
    {"div_fmas", kWait, "v_div_fmas_f32", "vcc", "4 wait states are required, 3 found"},
    {"sgpr_constant", kWait, "v_add_u32", "s60", "2 wait states are required, 1 found"},
    {"exec_to_dpp", kWait, "v_mov_b32_dpp", "exec", "5 wait states are required, 4 found"},
    {"vgpr_to_dpp", kWait, "v_mov_b32_dpp", "v10", "2 wait states are required, 1 found"},
    {"vgpr_to_readlane", kWait, "v_readlane_b32", "v10", "1 wait states are required, 0 found"},
    {"vgpr_to_permlane", kWait, "v_permlane32_swap", "v10", "2 wait states are required, 1 found"},
    {"cmpx_to_constant", kWait, "v_mov_b32", "exec_lo", "2 wait states are required, 1 found"},
    {"cmpx_to_lane", kWait, "v_readfirstlane_b32", "exec", "4 wait states are required, 3 found"},
    {"m0_to_dma", kWait, "global_load_lds_dword", "m0", "1 wait states are required, 0 found"},
    {"trans_result", kWait, "v_add_f32", "v10", "1 wait states are required, 0 found"},
    {"partial_write", kWait, "v_add_u32", "v10", "1 wait states are required, 0 found"},
    {"wide_store", kWait, "v_mov_b32", "v12", "2 wait states are required, 1 found"},
    {"setreg", kWait, "s_getreg_b32", "", "2 wait states are required, 1 found"},
    {"vgpr_to_mfma", kWait, "v_mfma_f32_16x16x16_f16", "v[10:11]", "2 wait states are required, 1 found"},
    {"mfma_to_valu", kWait, "v_add_f32", "v14", "8 wait states are required, 7 found"},
    {"mfma_to_store", kWait, "global_store_dword", "v15", "8 wait states are required, 7 found"},
    {"mfma_to_operand", kWait, "v_mfma_f32_16x16x16_f16", "v[14:15]", "8 wait states are required, 7 found"},
    {"mfma_overlaps_c", kWait, "v_mfma_f32_16x16x16_f16", "v[16:19]", "6 wait states are required, 5 found"},
    {"mfma_overwritten", kWait, "v_mov_b32", "v17", "8 wait states are required, 7 found"},
    {"mfma_c_overwritten", kWait, "v_mov_b32", "v14", "3 wait states are required, 2 found"},
    {"mfma_16_passes", kWait, "v_add_f32", "v22", "20 wait states are required, 19 found"},
    {"wait_over_jump_short", kWait, "v_mov_b32_dpp", "v10", "2 wait states are required, 1 found"},

    {"exec_transpose", kExec, "ds_read_b64_tr_b16", "", "transpose", 16},
    {"exec_mfma", kExec, "v_mfma_f32_16x16x16_f16", "", "MFMA", 16, true},

    {"undefined_store", kUndefined, "global_store_dword", "v60", "store", 0},
    {"undefined_lane", kUndefined, "global_store_dword", "v60", "store", 16},
    {"undefined_sum", kUndefined, "global_store_dword", "v61", "store", 0},
    {"undefined_scc", kUndefined, "s_cbranch_scc1", "scc", "condition"},
    {"undefined_vcc", kUndefined, "s_cbranch_vccz", "vcc", "condition"},
    {"undefined_exec", kUndefined, "s_and_b64", "exec", "EXEC"},
    {"undefined_address", kUndefined, "global_load_dword", "v61", "address", 0},
    {"undefined_m0", kUndefined, "s_mov_b32", "m0", "M0"},
    {"undefined_descriptor", kUndefined, "buffer_load_dword", "s[64:67]", "descriptor"},
    {"undefined_lds", kUndefined, "global_store_dword", "v10", "store", 0},
    {"undefined_lds_byte", kUndefined, "global_store_dword", "v10", "store", 0},
    {"undefined_transpose", kUndefined, "global_store_dword", "v12", "store", 4},
    {"undefined_readlane", kUndefined, "s_mov_b32", "m0", "M0"},
    {"undefined_bits", kUndefined, "global_store_dword", "v61", "store", 0},
    {"undefined_bpermute", kUndefined, "global_store_dword", "v11", "store", 0},
    {"undefined_dpp", kUndefined, "global_store_dword", "v10", "store", 32},
    {"undefined_sdwa", kUndefined, "global_store_dword", "v62", "store", 0},
    {"undefined_select", kUndefined, "global_store_dword", "v62", "store", 0},
    {"undefined_lds_atomic", kUndefined, "global_store_dword", "v10", "store", 0},
    {"undefined_d16", kUndefined, "global_store_dword", "v60", "store", 0},
    {"undefined_mfma_row", kUndefined, "global_store_dword", "v23", "store", 0},
};

using Findings = std::vector<nlohmann::json>;

Findings findings_of(const std::string& name) {
  const Setting mode("TORCH_MI350_EMU", "check");
  const Setting report_only("TORCH_MI350_EMU_FINDINGS", "report");
  mi350emuClearFindings();
  std::vector<uint32_t> numbers(4096);
  for (uint32_t n = 0; n < numbers.size(); ++n) numbers[n] = n % 64;
  const Buffer<uint32_t> out(numbers), in(numbers);
  EXPECT_EQ(launch(kernel("register_faults", name.c_str()), {}, out.get(), in.get()), kSuccess) << report();
  const Findings all = nlohmann::json::parse(mi350emuFindings()).at("findings");
  mi350emuClearFindings();
  return all;
}

class RegisterFaults : public ::testing::TestWithParam<Fault> {};

TEST_P(RegisterFaults, AreFound) {
  const Fault& fault = GetParam();
  const Findings all = findings_of(fault.kernel);
  ASSERT_EQ(all.size(), 1u) << nlohmann::json(all).dump(1);
  const nlohmann::json& f = all[0];
  record(f);
  EXPECT_EQ(f.at("checker"), fault.checker);
  EXPECT_EQ(f.at("severity"), fault.advisory ? "advisory" : "error");
  EXPECT_EQ(f.at("disassembly").get<std::string>().rfind(fault.instruction, 0), 0u) << f.dump(1);
  EXPECT_EQ(f.value("where", ""), fault.where) << f.dump(1);
  EXPECT_EQ(f.value("lane", -1), fault.lane) << f.dump(1);
  EXPECT_NE(f.at("message").get<std::string>().find(fault.says), std::string::npos) << f.dump(1);
}
TEST_P(RegisterFaults, TwinIsClean) {
  const Findings all = findings_of(std::string(GetParam().kernel) == "wait_over_jump_short"
                                       ? "wait_over_jump"
                                       : std::string(GetParam().kernel) + "_ok");
  EXPECT_TRUE(all.empty()) << nlohmann::json(all).dump(1);
}
INSTANTIATE_TEST_SUITE_P(Registers, RegisterFaults, ::testing::ValuesIn(kFaults),
                         [](const auto& info) { return std::string(info.param.kernel); });

TEST(RegisterChecks, UndefinedScratchIsFound) {
  const Setting mode("TORCH_MI350_EMU", "check");
  const Setting report_only("TORCH_MI350_EMU_FINDINGS", "report");
  const Buffer<uint32_t> out(64);
  for (const uint32_t n : {0u, 3u}) {
    mi350emuClearFindings();
    EXPECT_EQ(launch(kernel("register_faults", "undefined_scratch"), {}, out.get(), n), kSuccess) << report();
    const Findings all = nlohmann::json::parse(mi350emuFindings()).at("findings");
    ASSERT_EQ(all.size(), n == 0 ? 1u : 0u) << nlohmann::json(all).dump(1);
    if (n == 0) {
      EXPECT_EQ(all[0].at("checker"), kUndefined);
    }
  }
  mi350emuClearFindings();
}

TEST(RegisterChecks, UndefinedBitsComeBackFromGlobalMemory) {
  const Findings all = findings_of("undefined_reload");
  ASSERT_EQ(all.size(), 2u) << nlohmann::json(all).dump(1);
  EXPECT_EQ(all[0].at("where"), "v60");
  EXPECT_EQ(all[1].at("where"), "v11");
}

TEST(RegisterChecks, RulesThatHardwareBreaksAdviseWithoutStrictness) {
  const Setting strict("TORCH_MI350_EMU_STRICT", "0");
  for (const char* name : {"m0_to_dma", "undefined_store", "vmem_read"}) {
    const Findings all = findings_of(name);
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].at("severity"), "advisory");
  }
  EXPECT_EQ(findings_of("exec_transpose").at(0).at("severity"), "error");
}

TEST(RegisterChecks, AnErrorFailsTheLaunch) {
  const Setting mode("TORCH_MI350_EMU", "check");
  const Buffer<uint32_t> out(4096), in(4096);
  EXPECT_EQ(launch(kernel("register_faults", "vmem_read"), {}, out.get(), in.get()), kLaunchFailure);
  EXPECT_NE(report().find("register-in-flight"), std::string::npos) << report();
  EXPECT_EQ(launch(kernel("register_faults", "vmem_read_ok"), {}, out.get(), in.get()), kSuccess) << report();
  mi350emuClearFindings();
}

}  // namespace
}  // namespace mi350::emu::test
