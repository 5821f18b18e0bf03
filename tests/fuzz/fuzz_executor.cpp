// libFuzzer's entry points for the executor. Build and run with tests/fuzz/run.
#include "executor_case.h"
#include "fuzz_target.h"

MI350_FUZZ_TARGET(mi350::emu::fuzz::run_executor_case, mi350::emu::fuzz::mutate_executor_case)
