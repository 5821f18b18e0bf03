// One CPU storage per device storage.
#include "cdna/cpu_storage.h"

#include <cstring>

#include <ATen/ops/zeros.h>

#include "cdna/allocator.h"

namespace mi350::cdna {
namespace {

void copy_geometry(const c10::TensorImpl* from, c10::TensorImpl* to) {
  to->set_sizes_and_strides(from->sizes(), from->strides(), from->storage_offset());
}

void copy_flags(const at::Tensor& from, const at::Tensor& to) {
  if (from.unsafeGetTensorImpl()->is_wrapped_number()) to.unsafeGetTensorImpl()->set_wrapped_number(true);
  if (from.is_conj() != to.is_conj()) to._set_conj(from.is_conj());
  if (from.is_neg() != to.is_neg()) to._set_neg(from.is_neg());
}

bool same_geometry(const c10::TensorImpl* a, const c10::TensorImpl* b) {
  return a->storage_offset() == b->storage_offset() && a->sizes() == b->sizes() &&
         a->strides() == b->strides();
}

c10::Storage make_storage(c10::DataPtr data, size_t bytes, c10::Allocator* allocator, bool resizable) {
  return c10::Storage(c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(),
                                                            static_cast<int64_t>(bytes), std::move(data),
                                                            allocator, resizable));
}

// The memory of a CPU storage: taken over if it is device memory and nobody else uses the storage, else copied.
c10::DataPtr to_device_memory(c10::StorageImpl* cpu, c10::DeviceIndex index, bool sole_user) {
  const c10::Device device(kType, index);
  if (cpu->data() == nullptr || (sole_user && is_device_memory(cpu->data_ptr()))) {
    c10::DataPtr data = cpu->set_data_ptr(c10::DataPtr(nullptr, c10::Device(c10::kCPU)));
    data.unsafe_set_device(device);
    return data;
  }
  c10::DataPtr data = allocate_device_memory(cpu->nbytes(), index, device);
  std::memcpy(data.get(), cpu->data(), cpu->nbytes());
  return data;
}

}  // namespace

CpuViews::StoragePair& CpuViews::pair_of(const at::Tensor& t) {
  const c10::Storage& storage = t.storage();
  for (StoragePair& pair : storages_) {
    if (pair.device.unsafeGetStorageImpl() == storage.unsafeGetStorageImpl()) return pair;
  }
  c10::StorageImpl* impl = storage.unsafeGetStorageImpl();
  // mutable_data() gives a copy-on-write storage its own bytes first.
  c10::DataPtr alias(impl->mutable_data(), c10::Device(c10::kCPU));
  storages_.push_back({storage,
                       make_storage(std::move(alias), impl->nbytes(), hosted_allocator(), impl->resizable()),
                       t.key_set()});
  return storages_.back();
}

CpuViews::StoragePair* CpuViews::find_cpu(const c10::StorageImpl* cpu) {
  for (StoragePair& pair : storages_) {
    if (pair.cpu.unsafeGetStorageImpl() == cpu) return &pair;
  }
  return nullptr;
}

// A zero tensor (torch's gradients that are known to be 0) has no bytes to show.
at::Tensor CpuViews::zeros_for(const at::Tensor& t, bool written) {
  TORCH_CHECK(!written, "ZeroTensors are immutable. Please use the materialized zero tensor obtained using "
              ".clone() if you want a mutable tensor.");
  at::Tensor cpu = at::zeros({}, t.options().device(c10::kCPU)).expand(t.sizes());
  tensors_.push_back({t, cpu, false});
  return cpu;
}

at::Tensor CpuViews::to_cpu(const at::Tensor& t, bool written) {
  for (TensorPair& pair : tensors_) {
    if (pair.device.is_same(t)) {
      pair.written |= written;
      return pair.cpu;
    }
  }
  if (t._is_zerotensor()) return zeros_for(t, written);
  StoragePair& storage = pair_of(t);
  at::Tensor cpu = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(storage.cpu), c10::DispatchKeySet(c10::DispatchKey::CPU), t.dtype());
  copy_geometry(t.unsafeGetTensorImpl(), cpu.unsafeGetTensorImpl());
  copy_flags(t, cpu);
  tensors_.push_back({t, cpu, written});
  return cpu;
}

// A CPU kernel that resized the storage put other memory into it.
void CpuViews::sync_bytes(StoragePair& pair) {
  c10::StorageImpl* cpu = pair.cpu.unsafeGetStorageImpl();
  c10::StorageImpl* device = pair.device.unsafeGetStorageImpl();
  if (cpu->data() == device->data() && cpu->nbytes() == device->nbytes()) return;
  const size_t bytes = cpu->nbytes();
  device->set_data_ptr_noswap(to_device_memory(cpu, device_, true));
  device->set_nbytes(bytes);
}

void CpuViews::write_back() {
  for (StoragePair& pair : storages_) sync_bytes(pair);
  for (TensorPair& pair : tensors_) {
    if (!pair.written) continue;
    c10::TensorImpl* cpu = pair.cpu.unsafeGetTensorImpl();
    c10::TensorImpl* device = pair.device.unsafeGetTensorImpl();
    StoragePair* storage = find_cpu(cpu->unsafe_storage().unsafeGetStorageImpl());
    if (storage == nullptr) storage = &adopt(cpu->unsafe_storage());
    if (storage->device.unsafeGetStorageImpl() != device->unsafe_storage().unsafeGetStorageImpl()) {
      device->set_storage_keep_dtype(storage->device);
    }
    if (!same_geometry(cpu, device)) copy_geometry(cpu, device);
    if (pair.cpu.is_conj() != pair.device.is_conj()) pair.device._set_conj(pair.cpu.is_conj());
    if (pair.cpu.is_neg() != pair.device.is_neg()) pair.device._set_neg(pair.cpu.is_neg());
  }
}

CpuViews::StoragePair& CpuViews::adopt(const c10::Storage& cpu) {
  c10::StorageImpl* impl = cpu.unsafeGetStorageImpl();
  const size_t bytes = impl->nbytes();
  const bool sole_user = cpu.use_count() <= 2;  // the result and the caller's handle
  storages_.push_back(
      {make_storage(to_device_memory(impl, device_, sole_user), bytes, &allocator(), true), cpu, {}});
  return storages_.back();
}

at::Tensor CpuViews::to_device(const at::Tensor& cpu, const char* op) {
  if (!cpu.defined()) return cpu;
  for (const TensorPair& pair : tensors_) {
    if (pair.cpu.is_same(cpu)) return pair.device;
  }
  if (!cpu.device().is_cpu()) return cpu;
  TORCH_CHECK_NOT_IMPLEMENTED(cpu.layout() == c10::kStrided && !cpu.is_quantized() && !cpu.is_nested(), op,
                              ": the device cdna holds dense strided tensors only, and the result is ",
                              cpu.is_quantized() ? "quantized"
                              : cpu.is_nested()  ? "nested"
                                                 : c10::str(cpu.layout()));
  c10::Storage cpu_storage = cpu.storage();
  StoragePair* pair = find_cpu(cpu_storage.unsafeGetStorageImpl());
  const bool view = pair != nullptr && !pair->keys.empty();
  if (pair == nullptr) pair = &adopt(cpu_storage);
  at::Tensor result =
      view ? at::detail::make_tensor<c10::TensorImpl>(c10::TensorImpl::VIEW, c10::Storage(pair->device),
                                                      pair->keys, cpu.dtype())
           : at::detail::make_tensor<c10::TensorImpl>(
                 c10::Storage(pair->device), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), cpu.dtype());
  copy_geometry(cpu.unsafeGetTensorImpl(), result.unsafeGetTensorImpl());
  copy_flags(cpu, result);
  return result;
}

}  // namespace mi350::cdna
