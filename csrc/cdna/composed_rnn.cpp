// LSTM and GRU cells, which torch asks of a device as fused ops with a workspace.
//
//   LSTM   i, f, g, o = gates     c' = f c + i g     h' = o tanh(c')    workspace (b, 4h): i f g o, activated
//   GRU    r, z, n    = gates     h' = n + z (h - n)                      workspace (b, 5h): r z n h hn
#include <tuple>

#include <ATen/core/Tensor.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/sigmoid_backward.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/tanh_backward.h>
#include <ATen/ops/zeros_like.h>

#include "cdna/composed.h"

namespace mi350::cdna {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

bool given(const OptionalTensor& t) { return t && t->defined(); }

Tensor with_bias(const Tensor& gates, const OptionalTensor& bias) {
  return given(bias) ? gates.add(*bias) : gates;
}

void check_gates(const char* op, const Tensor& input, const Tensor& hidden, const Tensor& state,
                 int64_t per_state) {
  TORCH_CHECK(input.dim() == 2 && state.dim() == 2 && input.sizes() == hidden.sizes() &&
                  input.size(1) == per_state * state.size(1) && input.size(0) == state.size(0),
              op, ": expected gates of shape [", state.size(0), ", ", per_state * state.size(1), "], got ",
              input.sizes(), " and ", hidden.sizes());
}

std::tuple<Tensor, Tensor, Tensor> lstm_cell(const Tensor& input_gates, const Tensor& hidden_gates,
                                             const Tensor& cx, const OptionalTensor& input_bias,
                                             const OptionalTensor& hidden_bias) {
  check_gates("_thnn_fused_lstm_cell", input_gates, hidden_gates, cx, 4);
  Tensor gates = with_bias(hidden_gates, hidden_bias).add(with_bias(input_gates, input_bias));
  const auto raw = gates.chunk(4, 1);
  const Tensor i = at::sigmoid(raw[0]), f = at::sigmoid(raw[1]), g = at::tanh(raw[2]),
               o = at::sigmoid(raw[3]);
  Tensor cy = f.mul(cx).add_(i.mul(g));
  Tensor hy = o.mul(at::tanh(cy));
  return {hy, cy, at::cat({i, f, g, o}, 1)};
}

std::tuple<Tensor, Tensor, Tensor> lstm_cell_backward(const OptionalTensor& grad_hy,
                                                      const OptionalTensor& grad_cy, const Tensor& cx,
                                                      const Tensor& cy, const Tensor& workspace,
                                                      bool has_bias) {
  if (!given(grad_hy) && !given(grad_cy)) return {};
  const auto act = workspace.chunk(4, 1);
  const Tensor &i = act[0], &f = act[1], &g = act[2], &o = act[3];
  const Tensor tanh_c = at::tanh(cy);
  Tensor grad_c = given(grad_cy) ? *grad_cy : at::zeros_like(cy);
  Tensor grad_o = at::zeros_like(o);
  if (given(grad_hy)) {
    grad_o = at::sigmoid_backward(grad_hy->mul(tanh_c), o);
    grad_c = grad_c.add(at::tanh_backward(grad_hy->mul(o), tanh_c));
  }
  Tensor grad_gates =
      at::cat({at::sigmoid_backward(grad_c.mul(g), i), at::sigmoid_backward(grad_c.mul(cx), f),
               at::tanh_backward(grad_c.mul(i), g), grad_o},
              1);
  return {grad_gates, grad_c.mul(f), has_bias ? grad_gates.sum(0) : Tensor()};
}

std::tuple<Tensor, Tensor> gru_cell(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& hx,
                                    const OptionalTensor& input_bias, const OptionalTensor& hidden_bias) {
  check_gates("_thnn_fused_gru_cell", input_gates, hidden_gates, hx, 3);
  const auto in = with_bias(input_gates, input_bias).chunk(3, 1);
  const auto hid = with_bias(hidden_gates, hidden_bias).chunk(3, 1);
  const Tensor r = at::sigmoid(hid[0].add(in[0])), z = at::sigmoid(hid[1].add(in[1]));
  const Tensor n = at::tanh(in[2].add(hid[2].mul(r)));
  Tensor hy = hx.sub(n).mul_(z).add_(n);
  return {hy, at::cat({r, z, n, hx, hid[2]}, 1)};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> gru_cell_backward(const Tensor& grad_hy,
                                                                     const Tensor& workspace, bool has_bias) {
  const auto saved = workspace.chunk(5, 1);
  const Tensor &r = saved[0], &z = saved[1], &n = saved[2], &hx = saved[3], &hn = saved[4];
  const Tensor grad_z = at::sigmoid_backward(grad_hy.mul(hx.sub(n)), z);
  const Tensor grad_in = at::tanh_backward(grad_hy.mul(z.neg().add_(1)), n);
  const Tensor grad_r = at::sigmoid_backward(grad_in.mul(hn), r);
  Tensor input = at::cat({grad_r, grad_z, grad_in}, 1);
  Tensor hidden = at::cat({grad_r, grad_z, grad_in.mul(r)}, 1);
  if (!has_bias) return {input, hidden, grad_hy.mul(z), Tensor(), Tensor()};
  return {input, hidden, grad_hy.mul(z), input.sum(0), hidden.sum(0)};
}

}  // namespace

void register_composed_rnn(torch::Library& m) {
  m.impl("_thnn_fused_lstm_cell", TORCH_FN(lstm_cell));
  m.impl("_thnn_fused_lstm_cell_backward_impl", TORCH_FN(lstm_cell_backward));
  m.impl("_thnn_fused_gru_cell", TORCH_FN(gru_cell));
  m.impl("_thnn_fused_gru_cell_backward", TORCH_FN(gru_cell_backward));
}

}  // namespace mi350::cdna
