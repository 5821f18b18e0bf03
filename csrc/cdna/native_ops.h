// Kernels of cdna that are not CPU kernels behind the fallback: making, viewing, copying and resizing tensors.
#pragma once
#include <torch/library.h>

namespace mi350::cdna {
void register_native_ops(torch::Library& aten);
}
