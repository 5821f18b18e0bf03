// The one look behind a private member.
#include "runtime/torch_version.h"

namespace mi350::runtime {
namespace {

struct KernelMember {
  using Type = c10::KernelFunction c10::SafeKernelFunction::*;
  friend Type member(KernelMember);
};

template <class Tag, typename Tag::Type kMember>
struct Reveal {
  friend typename Tag::Type member(Tag) { return kMember; }
};
template struct Reveal<KernelMember, &c10::SafeKernelFunction::kernel_>;

}  // namespace

const c10::KernelFunction& captured_kernel(const c10::SafeKernelFunction& captured) {
  return captured.*member(KernelMember());
}

}  // namespace mi350::runtime
