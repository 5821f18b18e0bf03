// Tensors -> GemmProblem -> plan -> launch, for mm, addmm, bmm and baddbmm.
#include "ops/gemm.h"

#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <map>
#include <mutex>
#include <vector>

#include <ATen/Context.h>

#include "gemm/gemm.h"
#include "route/plan_cache.h"

namespace mi350::ops {
namespace {

using gemm::GemmProblem;
using route::Call;
using route::Decision;
using route::ReasonId;

constexpr uint64_t kAlignment = 16;  // bytes: what the planner can tell apart in an address

// All that the planner's answer depends on.
struct Key {
  int64_t batch, m, n, k;
  int64_t strides[4][3];  // a b c d: batch, row, column
  uint32_t alpha, beta;   // bits
  uint8_t alignment[4];   // address mod kAlignment
  uint8_t in, out, flags, op;
  int32_t cus, xcds;
  uint64_t pin_generation;
};

// The planner sees no real address, only the operand's number and its alignment, so that an answer holds for
// every problem of equal key. It may swap operands (a mirrored product): `source` says which goes where.
constexpr int kOperands = 4;  // a b c d
constexpr uint64_t kTag = uint64_t{1} << 20;

struct Planned {
  ReasonId refused = nullptr;
  gemm::Plan plan;
  std::array<uint8_t, kOperands> source{};
};

std::array<gemm::Operand*, kOperands> operands_of(GemmProblem& p) { return {&p.a, &p.b, &p.c, &p.d}; }
std::array<uint64_t*, kOperands> addresses_of(gemm::GemmArgs& g) { return {&g.a, &g.b, &g.c, &g.d}; }

// TORCH_MI350_CONFIG, by op name. The generation enters the key, so that a change takes effect.
std::atomic<uint64_t> pin_generation{0};
std::mutex& pin_mutex() {
  static std::mutex m;
  return m;
}
std::map<std::string, std::pair<std::string, std::vector<int>>>& pins() {
  static auto* const all = new std::map<std::string, std::pair<std::string, std::vector<int>>>;
  return *all;
}

int first_kernel() {
  static const int first = [] {
    std::vector<runtime::KernelName> names;
    for (int i = 0; i < gemm::kConfigCount; ++i)
      names.push_back({gemm::kConfigs[i].symbol, gemm::kConfigs[i].object});
    return runtime::add_kernels(names.data(), static_cast<int>(names.size()));
  }();
  return first;
}

std::optional<DType> dtype_of(at::ScalarType type) {
  if (type == at::kBFloat16) return DType::kBF16;
  if (type == at::kHalf) return DType::kF16;
  if (type == at::kFloat) return DType::kF32;
  return std::nullopt;
}

std::string dtype_text(at::ScalarType type) {
  const auto known = dtype_of(type);
  return known.has_value() ? name(*known) : c10::toString(type);
}

// A number that a kernel argument can hold as torch would.
std::optional<float> as_float(const at::Scalar* scalar, float absent) {
  if (scalar == nullptr) return absent;
  if (scalar->isComplex() || scalar->isSymbolic()) return std::nullopt;
  const double wide = scalar->toDouble();
  const float narrow = static_cast<float>(wide);
  if (std::isfinite(wide) && !std::isfinite(narrow)) return std::nullopt;
  return narrow;
}

// Reasons that name two dtypes. Each text is made once: an examined miss must stay cheap.
enum class DtypeFault { kNotServed, kDiffer, kOut, kAddend };
constexpr int kDtypeFaults = 4;

std::string dtype_fault_text(DtypeFault fault, at::ScalarType x, at::ScalarType y) {
  switch (fault) {
    case DtypeFault::kNotServed:
      return "dtype " + dtype_text(x) + ", served are bf16, f16 and f32";
    case DtypeFault::kDiffer:
      return "dtypes " + dtype_text(x) + " and " + dtype_text(y) + " differ";
    case DtypeFault::kOut:
      return "out_dtype " + dtype_text(y) + " for " + dtype_text(x);
    case DtypeFault::kAddend:
      return "addend is " + dtype_text(x) + ", result is " + dtype_text(y);
  }
  return {};
}

ReasonId dtype_fault(DtypeFault fault, at::ScalarType x, at::ScalarType y) {
  constexpr int kTypes = static_cast<int>(at::ScalarType::NumOptions);
  static std::array<std::atomic<ReasonId>, kDtypeFaults * kTypes * kTypes> known{};
  auto& slot = known[(static_cast<int>(fault) * kTypes + static_cast<int>(x)) * kTypes + static_cast<int>(y)];
  ReasonId reason = slot.load(std::memory_order_relaxed);
  if (reason == nullptr) slot.store(reason = route::intern(dtype_fault_text(fault, x, y)));
  return reason;
}

ReasonId refuse_dtype(const GemmInputs& in) {
  const at::ScalarType type = in.a->scalar_type();
  if (!dtype_of(type).has_value()) return dtype_fault(DtypeFault::kNotServed, type, type);
  if (in.b->scalar_type() != type) return dtype_fault(DtypeFault::kDiffer, type, in.b->scalar_type());
  const at::ScalarType out = in.out_dtype.value_or(type);
  if (out != type && out != at::kFloat) return dtype_fault(DtypeFault::kOut, type, out);
  if (in.c != nullptr && in.c->scalar_type() != out)
    return dtype_fault(DtypeFault::kAddend, in.c->scalar_type(), out);
  return nullptr;
}

bool expands_to(at::IntArrayRef from, at::IntArrayRef to) {
  if (from.size() > to.size()) return false;
  const size_t lead = to.size() - from.size();
  for (size_t d = 0; d < from.size(); ++d) {
    if (from[d] != 1 && from[d] != to[lead + d]) return false;
  }
  return true;
}

ReasonId refuse_shape(const GemmInputs& in, int64_t rank) {
  static const ReasonId mismatch = route::intern("shapes that stock rejects");
  const at::Tensor &a = *in.a, &b = *in.b;
  if (a.dim() != rank || b.dim() != rank) return mismatch;
  if (a.size(rank - 1) != b.size(rank - 2)) return mismatch;
  return rank == 3 && a.size(0) != b.size(0) ? mismatch : nullptr;
}

// Strides of `t`, seen as a (batch, rows, columns) block that it broadcasts to.
gemm::Operand operand(const at::Tensor& t, uint64_t address) {
  gemm::Operand o;
  o.address = address;
  const int64_t rank = t.dim();
  const auto stride = [&](int64_t from_end) -> int64_t {
    return rank < from_end || t.size(rank - from_end) == 1 ? 0 : t.stride(rank - from_end);
  };
  o.stride_col = stride(1);
  o.stride_row = stride(2);
  o.stride_batch = stride(3);
  return o;
}

// A dimension of extent 1 has no stride of its own: the layout is what the other one says.
void settle_unit_strides(gemm::Operand& o, int64_t rows, int64_t cols) {
  if (cols == 1 && rows == 1) o.stride_col = o.stride_row = 1;
  else if (cols == 1) o.stride_col = o.stride_row == 1 ? rows : 1;
  else if (rows == 1) o.stride_row = o.stride_col == 1 ? cols : 1;
}

GemmProblem make_problem(const Call& call, const GemmInputs& in, int64_t rank, float alpha, float beta) {
  GemmProblem p;
  p.in = *dtype_of(in.a->scalar_type());
  p.out = *dtype_of(in.out_dtype.value_or(in.a->scalar_type()));
  p.batch = rank == 3 ? in.a->size(0) : 1;
  p.m = in.a->size(rank - 2);
  p.k = in.a->size(rank - 1);
  p.n = in.b->size(rank - 1);
  p.alpha = alpha;
  p.beta = beta;
  p.a = operand(*in.a, call.address(*in.a));
  p.b = operand(*in.b, call.address(*in.b));
  settle_unit_strides(p.a, p.m, p.k);
  settle_unit_strides(p.b, p.k, p.n);
  if (beta != 0) p.c = operand(*in.c, call.address(*in.c));
  const auto strides = call.output_strides();
  p.d.address = call.output_address();
  p.d.stride_col = strides[rank - 1];
  p.d.stride_row = strides[rank - 2];
  p.d.stride_batch = p.batch == 1 ? 0 : strides[0];
  return p;
}

Flags process_flags(DType in) {
  const auto& context = at::globalContext();
  const auto reduction =
      in == DType::kF16 ? context.allowFP16ReductionCuBLAS() : context.allowBF16ReductionCuBLAS();
  Flags flags;
  flags.deterministic = context.deterministicAlgorithms();
  flags.allow_reduced_precision_reduction =
      reduction == at::CuBLASReductionOption::AllowReducedPrecisionWithSplitK;
  return flags;
}

Key make_key(const GemmProblem& p, const Device& device, const Flags& flags, int op) {
  Key key{};
  key.batch = p.batch, key.m = p.m, key.n = p.n, key.k = p.k;
  const gemm::Operand* operands[] = {&p.a, &p.b, &p.c, &p.d};
  for (int i = 0; i < 4; ++i) {
    key.strides[i][0] = operands[i]->stride_batch;
    key.strides[i][1] = operands[i]->stride_row;
    key.strides[i][2] = operands[i]->stride_col;
    key.alignment[i] = uint8_t(operands[i]->address % kAlignment);
  }
  key.alpha = std::bit_cast<uint32_t>(p.alpha), key.beta = std::bit_cast<uint32_t>(p.beta);
  key.in = uint8_t(p.in), key.out = uint8_t(p.out);
  key.flags =
      uint8_t(flags.deterministic | flags.allow_tf32 << 1 | flags.allow_reduced_precision_reduction << 2);
  key.op = uint8_t(op);
  key.cus = device.cus, key.xcds = device.xcds;
  key.pin_generation = pin_generation.load(std::memory_order_relaxed);
  return key;
}

// Asks the planner; a pinned op tries only its pinned rows.
Reason ask_rows(const GemmProblem& p, const Device& device, const Flags& flags, const char* op,
                gemm::Plan& plan) {
  const std::lock_guard<std::mutex> lock(pin_mutex());
  const auto pinned = pins().find(op);
  if (pinned == pins().end()) return gemm::plan(p, device, flags, plan);
  Reason first;
  for (const int row : pinned->second.second) {
    const Reason reason = gemm::plan(p, device, flags, plan, row);
    if (reason.empty()) return reason;
    if (first.empty()) first = reason;
  }
  return "pinned config " + pinned->second.first + ": " + first;
}

ReasonId ask_planner(GemmProblem problem, const Device& device, const Flags& flags, const char* op,
                     Planned& made) {
  const auto operands = operands_of(problem);
  for (int i = 0; i < kOperands; ++i)
    operands[i]->address = (i + 1) * kTag + operands[i]->address % kAlignment;
  const Reason reason = ask_rows(problem, device, flags, op, made.plan);
  if (!reason.empty()) return route::intern(reason);
  const auto addresses = addresses_of(made.plan.args);
  for (int i = 0; i < kOperands; ++i) made.source[i] = uint8_t(*addresses[i] / kTag - 1);
  return nullptr;
}

void record_candidates(Call& call, const GemmProblem& p, const Flags& flags) {
  for (int i = 0; i < gemm::kConfigCount; ++i) {
    if (gemm::kConfigs[i].in != p.in) continue;
    route::Candidate candidate{gemm::kConfigs[i].symbol, gemm::why_not(p, i), 0};
    gemm::Plan plan;
    if (candidate.refused.empty() && gemm::plan(p, call.device(), flags, plan, i).empty())
      candidate.cost = plan.predicted_cost;
    call.explanation()->consider(std::move(candidate));
  }
}

void launch_plan(Call& call, const Planned& planned, const GemmProblem& p) {
  gemm::GemmArgs args = planned.plan.args;
  const uint64_t actual[kOperands] = {p.a.address, p.b.address, p.c.address, call.output_address()};
  const auto addresses = addresses_of(args);
  for (int i = 0; i < kOperands; ++i) *addresses[i] = actual[planned.source[i]];
  const Launch& shape = planned.plan.launch[0];
  call.launch(first_kernel() + shape.kernel, shape, &args, sizeof args);
}

std::string shape_text(const at::Tensor& t) {
  std::string text;
  for (const int64_t size : t.sizes()) text += (text.empty() ? "" : "x") + std::to_string(size);
  return text.empty() ? "scalar" : text;
}

// n: the last dimension is contiguous, t: the one before it, s: neither.
char layout_letter(const at::Tensor& t) {
  const int64_t rank = t.dim();
  const bool rows = t.stride(rank - 1) == 1 || t.size(rank - 1) == 1;
  const bool columns = t.stride(rank - 2) == 1 || t.size(rank - 2) == 1;
  return rows ? 'n' : columns ? 't' : 's';
}

}  // namespace

std::string describe_gemm(const GemmInputs& in) {
  const at::Tensor &a = *in.a, &b = *in.b;
  const int64_t rank = a.dim();
  if (rank < 2 || b.dim() != rank || a.scalar_type() != b.scalar_type() ||
      a.size(rank - 1) != b.size(rank - 2)) {
    return dtype_text(a.scalar_type()) + " " + shape_text(a) + " @ " + dtype_text(b.scalar_type()) + " " +
           shape_text(b);
  }
  std::string text = dtype_text(a.scalar_type());
  if (in.out_dtype.has_value()) text += "->" + dtype_text(*in.out_dtype);
  text += " ";
  for (int64_t d = 0; d < rank - 2; ++d) text += std::to_string(a.size(d)) + "x";
  text += std::to_string(a.size(rank - 2)) + "x" + std::to_string(b.size(rank - 1)) + "x" +
          std::to_string(a.size(rank - 1));
  return text + " " + layout_letter(a) + layout_letter(b);
}

Decision gemm(Call& call, const GemmInputs& in, int64_t rank) {
  static const ReasonId bad_scalar = route::intern("alpha or beta is not a float32 number");
  static const ReasonId bad_addend = route::intern("addend does not broadcast to the result");
  if (ReasonId reason = refuse_dtype(in)) return Decision::miss(reason);
  if (ReasonId reason = refuse_shape(in, rank)) return Decision::miss(reason);
  const auto alpha = as_float(in.alpha, 1.0f), beta = as_float(in.beta, in.c == nullptr ? 0.0f : 1.0f);
  if (!alpha.has_value() || !beta.has_value()) return Decision::miss(bad_scalar);

  c10::SmallVector<int64_t, 3> sizes;
  if (rank == 3) sizes.push_back(in.a->size(0));
  sizes.push_back(in.a->size(rank - 2));
  sizes.push_back(in.b->size(rank - 1));
  if (in.c != nullptr && !expands_to(in.c->sizes(), sizes)) return Decision::miss(bad_addend);
  if (ReasonId reason = call.declare_output(sizes, in.out_dtype.value_or(in.a->scalar_type())))
    return Decision::miss(reason);
  for (const int64_t size : sizes) {
    if (size == 0) return call.answer_empty();
  }

  const GemmProblem problem = make_problem(call, in, rank, *alpha, *beta);
  const Flags flags = process_flags(problem.in);
  static thread_local route::PlanCache<Key, Planned> cache;
  const Planned& planned = cache.find(
      make_key(problem, call.device(), flags, call.op_id()),
      [&](Planned& made) { made.refused = ask_planner(problem, call.device(), flags, call.op(), made); });
  if (call.explaining_only()) record_candidates(call, problem, flags);
  if (planned.refused != nullptr) return Decision::miss(planned.refused);
  const int kernel = first_kernel() + planned.plan.launch[0].kernel;
  if (call.explaining_only()) return Decision::hit(kernel);
  if (ReasonId reason = call.prepare(kernel)) return Decision::miss(reason);
  call.output();
  launch_plan(call, planned, problem);
  return Decision::hit(kernel);
}

void pin_gemm(const std::string& op, const std::string& config) {
  const std::lock_guard<std::mutex> lock(pin_mutex());
  pin_generation.fetch_add(1);
  pins().erase(op);
  if (config.empty()) return;
  std::vector<int> rows;
  std::string known;
  for (int i = 0; i < gemm::kConfigCount; ++i) {
    const std::string symbol = gemm::kConfigs[i].symbol, tail = "_" + config;
    known += "\n  " + symbol;
    const bool ends =
        symbol.size() > tail.size() && symbol.compare(symbol.size() - tail.size(), tail.size(), tail) == 0;
    if (symbol == config || ends) rows.push_back(i);
  }
  TORCH_CHECK_VALUE(!rows.empty(), "torch_mi350: TORCH_MI350_CONFIG pins ", op, " to '", config,
                    "', known configs are", known);
  pins()[op] = {config, rows};
}

}  // namespace mi350::ops
