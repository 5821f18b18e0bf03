// libFuzzer's entry points for the loader. Build and run with tests/fuzz/run.
#include "fuzz_target.h"
#include "loader_case.h"

MI350_FUZZ_TARGET(mi350::emu::fuzz::run_loader_case, mi350::emu::fuzz::mutate_loader_case)
