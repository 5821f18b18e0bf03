#include "loader_case.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "code_object.h"
#include "device.h"
#include "guarded_bytes.h"
#include "print.h"

namespace mi350::emu::fuzz {
namespace {

constexpr size_t kMostKernels = 4, kMostArgumentBytes = 1 << 20;

// Arguments of any announced size: every 8 bytes the address of the buffer.
void* argument_bytes() {
  static std::vector<uint64_t> bytes(kMostArgumentBytes / 8);
  std::fill(bytes.begin(), bytes.end(), reinterpret_cast<uint64_t>(filled_buffer(1)));
  return bytes.data();
}

void launch_each_way(void* function, const KernelInfo& k, size_t arguments) {
  std::vector<void*> params(arguments + 1, argument_bytes());
  const unsigned block = std::clamp(k.max_workgroup_size, 1u, 128u);
  const auto launch = [&](unsigned items, unsigned lds, void** by_pointer, void** by_buffer) {
    succeeded(hipModuleLaunchKernel(function, 1, 1, 1, items, 1, 1, lds, nullptr, by_pointer, by_buffer),
              "launch");
  };
  launch(block, 0, params.data(), nullptr);
  for (const size_t bytes : {size_t{0}, size_t{k.kernarg_bytes}, size_t{k.kernarg_bytes} + 64}) {
    size_t size = std::min(bytes, kMostArgumentBytes);
    void* extra[] = {reinterpret_cast<void*>(1), argument_bytes(), reinterpret_cast<void*>(2), &size,
                     reinterpret_cast<void*>(3)};
    launch(bytes == 0 ? 1024 : block, bytes == 0 ? 163840 : 0, nullptr, extra);
  }
}

void use_kernel(void* module, const KernelInfo& k, size_t arguments) {
  void* function = nullptr;
  if (!succeeded(hipModuleGetFunction(&function, module, k.name.c_str()), "function")) return;
  int value = 0;
  for (int attribute = -1; attribute < 12; ++attribute)
    succeeded(hipFuncGetAttribute(&value, attribute, function), "attribute");
  for (const size_t lds : {size_t{0}, size_t{65536}, ~size_t{0}})
    succeeded(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&value, function, 256, lds), "occupancy");
  launch_each_way(function, k, arguments);
}

void use(void* module, const CodeObject& object) {
  size_t arguments = 0;  // two kernels may share a name
  for (const KernelInfo& k : object.kernels) arguments = std::max(arguments, k.args.size());
  for (size_t n = 0; n < std::min(object.kernels.size(), kMostKernels); ++n)
    use_kernel(module, object.kernels[n], arguments);
  for (size_t n = 0; n < std::min(object.variables.size(), kMostKernels); ++n) {
    void* address = nullptr;
    size_t bytes = 0;
    if (succeeded(hipModuleGetGlobal(&address, &bytes, module, object.variables[n].name.c_str()), "global") &&
        bytes)
      *static_cast<volatile uint8_t*>(address) = static_cast<uint8_t*>(address)[bytes - 1];
  }
}

}  // namespace

void run_loader_case(std::span<const uint8_t> bytes) {
  prepare();
  const Guarded file(bytes);
  std::string why;
  const auto object = load_code_object({file.data(), bytes.size()}, &why);
  if ((object == nullptr) == why.empty()) std::abort();
  if (object != nullptr)
    for (const Inst& i : object->program.insts) print(i);
  void* module = nullptr;
  if (!succeeded(hipModuleLoadData(&module, file.data()), "load")) return;
  if (object != nullptr) use(module, *object);
  succeeded(hipModuleUnload(module), "unload");
}

}  // namespace mi350::emu::fuzz
