// Ops that torch implements per backend as one kernel, composed from inner ops so that their matrix products
// reach the routed ones.
#pragma once
#include <torch/library.h>

namespace mi350::cdna {
void register_composed_attention(torch::Library& aten);
void register_composed_rnn(torch::Library& aten);
}  // namespace mi350::cdna
