// The op lists of torch/include/ATen/autocast_mode.h, as on other accelerators.
#include "cdna/autocast.h"

#include <ATen/Operators.h>
#include <ATen/autocast_mode.h>

namespace mi350::cdna {
namespace {

// The lists name whatever the signatures of this torch need (DimnameList in 2.11).
using namespace at;
using namespace at::autocast;

Tensor refuse_binary_cross_entropy(const Tensor&, const Tensor&, const std::optional<Tensor>&, int64_t) {
  TORCH_CHECK(false,
              "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast. Use "
              "torch.nn.functional.binary_cross_entropy_with_logits or torch.nn.BCEWithLogitsLoss instead");
}

}  // namespace

void register_autocast(torch::Library& m) {
#define MI350_LOWER(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
  AT_FORALL_LOWER_PRECISION_FP(MI350_LOWER)
#undef MI350_LOWER
#define MI350_FP32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
  AT_FORALL_FP32(MI350_FP32)
#undef MI350_FP32
#define MI350_FP32_DTYPE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
  AT_FORALL_FP32_SET_OPT_DTYPE(MI350_FP32_DTYPE)
#undef MI350_FP32_DTYPE
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
#define MI350_PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
  AT_FORALL_PROMOTE(MI350_PROMOTE)
#undef MI350_PROMOTE
  m.impl("binary_cross_entropy", TORCH_FN(refuse_binary_cross_entropy));
}

}  // namespace mi350::cdna
