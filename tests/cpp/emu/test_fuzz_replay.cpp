// The fuzzers' corpus and some thousand mutations of it, without libFuzzer: tests/fuzz/run finds, this keeps.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "executor_case.h"
#include "instruction_maker.h"
#include "loader_case.h"
#include "decode.h"
#include "emulated_device.h"

namespace mi350::emu::test {
namespace {

using Bytes = std::vector<uint8_t>;
using Run = void (*)(std::span<const uint8_t>);
using Mutate = void (*)(Bytes&, size_t, fuzz::Random&);

// What the cases set for themselves must not leak into other tests.
struct FuzzReplay : ::testing::Test {
  Setting threads{"TORCH_MI350_EMU_THREADS", "1"}, patience{"TORCH_MI350_EMU_PATIENCE", "1500"},
      limit{"TORCH_MI350_EMU_LIMIT", "2000"};
};

std::vector<Bytes> corpus(const char* target) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(MI350_FUZZ_CORPUS "/") + target))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<Bytes> out;
  for (const auto& path : paths) {
    std::ifstream in(path, std::ios::binary);
    out.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return out;
}

// A case that fails ends the process; what is measured here is that it came back in time.
void replay(const char* target, Run run, Mutate mutate, uint64_t mutations) {
  const std::vector<Bytes> files = corpus(target);
  ASSERT_GT(files.size(), 50u) << "the corpus is missing";
  const auto timed = [&](const Bytes& bytes, uint64_t seed) {
    const auto start = std::chrono::steady_clock::now();
    run(bytes);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    EXPECT_LT(took.count(), 20) << target << ": mutation " << seed << " took too long";
  };
  for (const Bytes& bytes : files) timed(bytes, 0);
  for (uint64_t seed = 1; seed <= mutations; ++seed) {
    fuzz::Random random(seed);
    Bytes bytes = random.percent(5) ? Bytes{} : files[random.below(files.size())];
    mutate(bytes, 8192, random);
    timed(bytes, seed);
  }
}

TEST_F(FuzzReplay, Loader) { replay("loader", fuzz::run_loader_case, fuzz::mutate_loader_case, 8000); }
TEST_F(FuzzReplay, Executor) {
  replay("executor", fuzz::run_executor_case, fuzz::mutate_executor_case, 8000);
}

// The generator reaches what it says it does: every row of the table, by its own encoding.
TEST_F(FuzzReplay, GeneratedInstructionsDecodeToTheirRow) {
  fuzz::Random random(3);
  size_t unreached = 0;
  for (size_t row = 0; row < kIsaRows; ++row) {
    int hits = 0;
    for (int n = 0; n < 60; ++n) hits += decode(fuzz::make_instruction(kIsa[row], random)).row == &kIsa[row];
    unreached += hits == 0;
  }
  EXPECT_LT(unreached, kIsaRows / 50);
}

}  // namespace
}  // namespace mi350::emu::test
