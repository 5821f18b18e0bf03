// Autocast for cdna: torch's op lists of the lower-precision, float32 and promoting policies.
#pragma once
#include <torch/library.h>

namespace mi350::cdna {
void register_autocast(torch::Library& aten);
}
