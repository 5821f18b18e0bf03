// The instruction table against LLVM's own list of gfx950 mnemonics (llvm_mnemonics.txt, made by
// list_llvm_mnemonics next to it): same instructions, same short, long, DPP and SDWA forms.
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>

#include "isa.h"

namespace mi350::emu {
namespace {

std::set<std::string> names_of_table() {
  std::set<std::string> names;
  for (size_t n = 0; n < kIsaRows; ++n) {
    const IsaRow& row = kIsa[n];
    const RowForm& form = form_of(row);
    const bool suffixed =
        !form.no_suffix && (row.encoding == Encoding::kVop1 || row.encoding == Encoding::kVop2 ||
                            row.encoding == Encoding::kVopc);
    const std::string name = row.mnemonic;
    names.insert(suffixed ? name + "_e32" : name);
    if (suffixed && form.vop3) names.insert(name + "_e64");
    if (form.dpp) names.insert(name + "_dpp");
    if (form.sdwa) names.insert(name + "_sdwa");
  }
  return names;
}

TEST(IsaCoverage, TheTableHasLlvmsInstructionsAndFormsAndNoOthers) {
  std::ifstream file(MI350_EMU_TEST_DIR "/llvm_mnemonics.txt");
  ASSERT_TRUE(file) << MI350_EMU_TEST_DIR "/llvm_mnemonics.txt";
  std::set<std::string> llvm;
  for (std::string line; std::getline(file, line);) llvm.insert(line);
  ASSERT_GT(llvm.size(), 1900u);
  const std::set<std::string> ours = names_of_table();
  for (const std::string& name : llvm)
    EXPECT_TRUE(ours.contains(name)) << name << " is missing from isa.def";
  for (const std::string& name : ours) EXPECT_TRUE(llvm.contains(name)) << name << " is not LLVM's";
}

TEST(IsaCoverage, EveryInstructionIsExecutedOrRefusedWithAReason) {
  std::set<std::string> refused;
  for (size_t n = 0; n < kIsaRows; ++n) {
    EXPECT_EQ(handlers()[n] == nullptr, refusal(kIsa[n]) != nullptr) << kIsa[n].mnemonic;
    if (refusal(kIsa[n]) != nullptr) refused.insert(kIsa[n].mnemonic);
  }
  EXPECT_EQ(refused, (std::set<std::string>{"ds_gws_barrier", "ds_gws_init", "ds_gws_sema_br",
                                            "ds_gws_sema_p", "ds_gws_sema_release_all", "ds_gws_sema_v",
                                            "s_rfe_b64", "s_rfe_restore_b64", "v_mfma_ld_scale_b32"}));
}

}  // namespace
}  // namespace mi350::emu
