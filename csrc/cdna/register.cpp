// The one place that registers cdna with torch, when install() is called and never before.
#include "cdna/cdna.h"

#include <torch/library.h>

#include "cdna/allocator.h"
#include "cdna/autocast.h"
#include "cdna/bindings.h"
#include "cdna/composed.h"
#include "cdna/fallback.h"
#include "cdna/guard.h"
#include "cdna/hooks.h"
#include "cdna/native_ops.h"

namespace mi350::cdna {
namespace {

// Lives until the process ends: calls may be running at any time.
torch::Library& library(const char* ns, c10::DispatchKey key) {
  return *new torch::Library(torch::Library::IMPL, ns, key, __FILE__, __LINE__);
}

template <c10::BoxedKernel::BoxedKernelFunction* kFunction>
void fallback(c10::DispatchKey key) {
  library("_", key).fallback(torch::CppFunction::makeFromBoxedFunction<kFunction>());
}

void register_kernels() {
  torch::Library& aten = library("aten", c10::DispatchKey::PrivateUse1);
  register_native_ops(aten);
  register_composed_attention(aten);
  register_composed_rnn(aten);
  fallback<&cpu_fallback>(c10::DispatchKey::PrivateUse1);
  for (const auto key : {c10::DispatchKey::SparsePrivateUse1, c10::DispatchKey::SparseCsrPrivateUse1,
                         c10::DispatchKey::QuantizedPrivateUse1, c10::DispatchKey::NestedTensorPrivateUse1}) {
    fallback<&refuse_layout>(key);
  }
  // copy_ handles lazily conjugated, negated and zero tensors itself; torch's fallback would resolve them by copying,
  // without end.
  for (const auto key :
       {c10::DispatchKey::Conjugate, c10::DispatchKey::Negative, c10::DispatchKey::ZeroTensor}) {
    torch::Library& lazy = library("aten", key);
    lazy.impl("_copy_from", torch::CppFunction::makeFallthrough());
    lazy.impl("_copy_from_and_resize", torch::CppFunction::makeFallthrough());
  }
  library("_", c10::DispatchKey::AutocastPrivateUse1).fallback(torch::CppFunction::makeFallthrough());
  register_autocast(library("aten", c10::DispatchKey::AutocastPrivateUse1));
}

}  // namespace

void install() {
  static bool installed = false;
  if (installed) return;
  installed = true;
  install_allocators();
  install_guard();
  install_hooks();
  register_kernels();
  auto extension = pybind11::module_::import("torch_mi350._C");
  bind(extension);
}

}  // namespace mi350::cdna
