// Ops that have no kernel of their own on cdna: the CPU kernel over the same memory.
#pragma once
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include "cdna/cpu_storage.h"

namespace mi350::cdna {

// Boxed fallback of the PrivateUse1 key.
void cpu_fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack);

// Runs `op` on the CPU over the tensors on the stack, as cpu_fallback does.
void run_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack);

// Boxed fallback of the keys of layouts that cdna does not have (sparse, quantized, nested).
void refuse_layout(const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace mi350::cdna
