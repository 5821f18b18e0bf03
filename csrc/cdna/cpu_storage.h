// CPU tensors over the bytes of device tensors, for the time of one call.
//
//   device tensor x[:5] --\                         /-- cpu tensor
//                          device storage == cpu storage            one pair per storage, same bytes
//   device tensor x[1:6] -/                         \-- cpu tensor
//
// So CPU kernels see the aliasing that exists on the device, and checks for overlap, resizing of outputs and
// in-place writes through views behave as on the CPU.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/StorageImpl.h>
#include <c10/util/SmallVector.h>

#include "cdna/cdna.h"

namespace mi350::cdna {

class CpuViews {
 public:
  explicit CpuViews(c10::DeviceIndex device) : device_(device) {}

  // The CPU tensor for `t`; the same object for the same device tensor. `written`: write_back() looks at it.
  at::Tensor to_cpu(const at::Tensor& t, bool written);

  // Carries what the call did to written tensors over to the device: other sizes, strides, storage, bytes.
  void write_back();

  // The device tensor for a result of the call: the argument it is, a view of an argument, or a new tensor that
  // takes over the memory. `op` is named in errors.
  at::Tensor to_device(const at::Tensor& cpu, const char* op);

 private:
  struct StoragePair {
    c10::Storage device, cpu;
    c10::DispatchKeySet keys;  // of the first tensor over it: what a view inherits
  };
  struct TensorPair {
    at::Tensor device, cpu;
    bool written;
  };
  at::Tensor zeros_for(const at::Tensor& zero_tensor, bool written);
  StoragePair& pair_of(const at::Tensor& device_tensor);
  StoragePair* find_cpu(const c10::StorageImpl* cpu);
  StoragePair& adopt(const c10::Storage& cpu);
  void sync_bytes(StoragePair& pair);

  c10::DeviceIndex device_;
  c10::SmallVector<StoragePair, 6> storages_;
  c10::SmallVector<TensorPair, 6> tensors_;
};

}  // namespace mi350::cdna
