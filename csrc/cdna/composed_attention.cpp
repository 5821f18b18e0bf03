// The eval fast paths of nn.MultiheadAttention and nn.TransformerEncoderLayer.
//
//   q, k, v = split(x W^T + b), q / sqrt(d)       (b, h, s, d)
//   p       = softmax(q k^T, mask)                (b, h, s_q, s_kv)
//   out     = (p v) W_o^T + b_o                   (b, s_q, h d)
#include <tuple>

#include <ATen/core/Tensor.h>
#include <ATen/ops/_masked_softmax.h>
#include <ATen/ops/_softmax.h>
#include <ATen/ops/_transform_bias_rescale_qkv.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/relu.h>
#include <c10/util/Exception.h>

#include "cdna/composed.h"

namespace mi350::cdna {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

void check_dense(const char* op, const Tensor& t, const char* name) {
  TORCH_CHECK_NOT_IMPLEMENTED(!t.is_nested(), op, ": nested ", name, " is not available on cdna");
  TORCH_CHECK(t.dim() == 3, op, ": expected 3-D `", name, "`, got ", t.dim(), "-D tensor");
}

// (b, s, in) x (out, in)^T -> (b, s, out)
Tensor project(const Tensor& x, const Tensor& weight) {
  return at::mm(x.reshape({-1, x.size(2)}), weight.t()).view({x.size(0), x.size(1), weight.size(0)});
}
Tensor project(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return at::addmm(bias, x.reshape({-1, x.size(2)}), weight.t()).view({x.size(0), x.size(1), weight.size(0)});
}

Tensor project_qkv(const Tensor& q, const Tensor& k, const Tensor& v, int64_t width, const Tensor& weight) {
  if (q.is_same(k) && k.is_same(v)) return project(q, weight);
  if (k.is_same(v)) {
    return at::cat({project(q, weight.narrow(0, 0, width)), project(k, weight.narrow(0, width, 2 * width))},
                   2);
  }
  return at::cat({project(q, weight.narrow(0, 0, width)), project(k, weight.narrow(0, width, width)),
                  project(v, weight.narrow(0, 2 * width, width))},
                 2);
}

Tensor bmm4(const Tensor& a, const Tensor& b) {
  const Tensor a3 = a.reshape({-1, a.size(2), a.size(3)}), b3 = b.reshape({-1, b.size(2), b.size(3)});
  return a3.bmm(b3).view({a.size(0), a.size(1), a.size(2), b.size(3)});
}

Tensor softmax(const Tensor& scores, const OptionalTensor& mask, std::optional<int64_t> mask_type) {
  if (!mask || !mask->defined()) return at::_softmax(scores, 3, false);
  return at::_masked_softmax(scores, mask->to(at::kBool), 3, mask_type);
}

std::tuple<Tensor, Tensor> multi_head_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                                int64_t embed_dim, int64_t num_head, const Tensor& qkv_weight,
                                                const Tensor& qkv_bias, const Tensor& proj_weight,
                                                const Tensor& proj_bias, const OptionalTensor& mask,
                                                bool need_weights, bool average_attn_weights,
                                                std::optional<int64_t> mask_type) {
  static constexpr char kOp[] = "_native_multi_head_attention";
  check_dense(kOp, query, "query");
  check_dense(kOp, key, "key");
  check_dense(kOp, value, "value");
  TORCH_CHECK(query.sizes() == key.sizes() && key.sizes() == value.sizes(), kOp,
              ": query, key and value must have one shape, got ", query.sizes(), ", ", key.sizes(), " and ",
              value.sizes());
  TORCH_CHECK(query.size(2) == embed_dim, kOp, ": passed-in embed_dim ", embed_dim,
              " didn't match last dim of query ", query.size(2));
  TORCH_CHECK(qkv_weight.dim() == 2 && qkv_weight.size(0) == 3 * embed_dim && qkv_weight.size(1) == embed_dim,
              kOp, ": expected `qkv_weight` of shape [", 3 * embed_dim, ", ", embed_dim, "], got ",
              qkv_weight.sizes());
  TORCH_CHECK(qkv_bias.dim() == 1 && qkv_bias.size(0) == 3 * embed_dim, kOp,
              ": expected `qkv_bias` of shape [", 3 * embed_dim, "], got ", qkv_bias.sizes());
  TORCH_CHECK(embed_dim % num_head == 0, kOp, ": `embed_dim` must divide evenly by `num_heads`, got ",
              embed_dim, " and ", num_head);
  const Tensor qkv = project_qkv(query, key, value, embed_dim, qkv_weight);
  const auto [q, k, v] = at::_transform_bias_rescale_qkv(qkv, qkv_bias, num_head);
  const Tensor weights = softmax(bmm4(q, k.transpose(2, 3)), mask, mask_type);
  const Tensor context = bmm4(weights, v).transpose(1, 2).reshape({query.size(0), query.size(1), embed_dim});
  Tensor out = project(context, proj_weight, proj_bias);
  if (!need_weights) return {out, Tensor()};
  return {out, average_attn_weights ? weights.mean(1) : weights};
}

Tensor feed_forward(const Tensor& x, const Tensor& w1, const Tensor& b1, const Tensor& w2, const Tensor& b2,
                    bool use_gelu) {
  Tensor hidden = project(x, w1, b1);
  use_gelu ? at::gelu_(hidden) : at::relu_(hidden);
  return project(hidden, w2, b2);
}

Tensor encoder_layer(const Tensor& src, int64_t embed_dim, int64_t num_heads, const Tensor& qkv_weight,
                     const Tensor& qkv_bias, const Tensor& proj_weight, const Tensor& proj_bias,
                     bool use_gelu, bool norm_first, double eps, const Tensor& norm_weight_1,
                     const Tensor& norm_bias_1, const Tensor& norm_weight_2, const Tensor& norm_bias_2,
                     const Tensor& ffn_weight_1, const Tensor& ffn_bias_1, const Tensor& ffn_weight_2,
                     const Tensor& ffn_bias_2, const OptionalTensor& mask, std::optional<int64_t> mask_type) {
  TORCH_CHECK_NOT_IMPLEMENTED(!src.is_nested(),
                              "_transformer_encoder_layer_fwd: nested src is not available on cdna");
  if (src.numel() == 0) return src.clone();
  const auto norm = [&](const Tensor& x, const Tensor& weight, const Tensor& bias) {
    return at::layer_norm(x, {embed_dim}, weight, bias, eps, true);
  };
  Tensor x = norm_first ? norm(src, norm_weight_1, norm_bias_1) : src;
  x = std::get<0>(multi_head_attention(x, x, x, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight,
                                       proj_bias, mask, false, true, mask_type));
  x.add_(src);
  if (!norm_first) x = norm(x, norm_weight_1, norm_bias_1);
  const Tensor residual = x;
  if (norm_first) x = norm(x, norm_weight_2, norm_bias_2);
  x = feed_forward(x, ffn_weight_1, ffn_bias_1, ffn_weight_2, ffn_bias_2, use_gelu);
  x.add_(residual);
  return norm_first ? x : norm(x, norm_weight_2, norm_bias_2);
}

}  // namespace

void register_composed_attention(torch::Library& m) {
  m.impl("_native_multi_head_attention", TORCH_FN(multi_head_attention));
  m.impl("_transformer_encoder_layer_fwd", TORCH_FN(encoder_layer));
}

}  // namespace mi350::cdna
