// Chooses a row of gemm_configs.def for a problem, and fills its launch. Pure: no GPU, no torch.
//
// A problem may also be run mirrored, d^T = b^T a^T: that turns a column-major d into a row-major one, and
// a tall problem of few columns into the small-m configs.
#include "gemm.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "../mainloop/cost.h"

namespace mi350::gemm {

#define GEMM_ROW(in, type, layout, bm, bn, bk, wm, wn, stages, mfma)                       \
  {"mi350_gemm_" #in "_" #layout "_" #bm "x" #bn "x" #bk "_s" #stages,                     \
   "gemm_" #in "_" #bm "x" #bn "x" #bk ".hsaco", type, #layout, bm, bn, bk, wm * wn, stages},
#define GEMM_LAYOUTS_vector(...) \
  GEMM_ROW_OF(nn, __VA_ARGS__) GEMM_ROW_OF(nt, __VA_ARGS__) GEMM_ROW_OF(tn, __VA_ARGS__) GEMM_ROW_OF(tt, __VA_ARGS__)
#define GEMM_LAYOUTS_all(...) GEMM_LAYOUTS_vector(__VA_ARGS__) GEMM_ROW_OF(ss, __VA_ARGS__)
#define GEMM_ROW_OF(layout, in, type, ...) GEMM_ROW(in, type, layout, __VA_ARGS__)
#define GEMM_TYPE_bf16 DType::kBF16
#define GEMM_TYPE_f16 DType::kF16
#define GEMM_TYPE_f32 DType::kF32
#define GEMM_CONFIG(in, bm, bn, bk, wm, wn, stages, mfma, layouts) \
  GEMM_LAYOUTS_##layouts(in, GEMM_TYPE_##in, bm, bn, bk, wm, wn, stages, mfma)

const GemmConfig kConfigs[] = {
#include "gemm_configs.def"
};
const int kConfigCount = sizeof(kConfigs) / sizeof(kConfigs[0]);

int config_index(const char* symbol) {
  for (int i = 0; i < kConfigCount; ++i)
    if (std::strcmp(kConfigs[i].symbol, symbol) == 0) return i;
  return -1;
}

namespace {

static_assert(static_cast<int>(DType::kF32) == 2, "kOutF32 of gemm_kernel.h");

constexpr int64_t kSpanLimit = int64_t{1} << 31;  // bytes that a lane's 32-bit offset may reach within a tile
constexpr int64_t kMaxExtent = std::numeric_limits<int32_t>::max();

std::string text(int64_t v) { return std::to_string(v); }
int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

bool is_vector(const GemmConfig& c) { return c.layout[0] != 's'; }

// alpha = 0 leaves a and b unread: their NaN must not reach d.
int64_t effective_k(const GemmProblem& p) { return p.alpha == 0.0f ? 0 : p.k; }

GemmProblem mirrored(const GemmProblem& p) {
  const auto transposed = [](Operand o) { std::swap(o.stride_row, o.stride_col); return o; };
  GemmProblem q = p;
  q.m = p.n;
  q.n = p.m;
  q.a = transposed(p.b);
  q.b = transposed(p.a);
  q.c = transposed(p.c);
  q.d = transposed(p.d);
  return q;
}

// An operand as the main loop reads it: extent (m or n) by k.
struct Side {
  const char* name;
  const char* extent_name;
  uint64_t address;
  int64_t extent, k, stride_batch, stride_extent, stride_k;
};
Side side_a(const GemmProblem& p) {
  return {"a", "m", p.a.address, p.m, p.k, p.batch > 1 ? p.a.stride_batch : 0, p.a.stride_row, p.a.stride_col};
}
Side side_b(const GemmProblem& p) {
  return {"b", "n", p.b.address, p.n, p.k, p.batch > 1 ? p.b.stride_batch : 0, p.b.stride_col, p.b.stride_row};
}

// 16-byte loads: unit stride along the contiguous axis, whole and aligned chunks.
Reason vector_why_not(const Side& s, bool k_contiguous, int element_bytes) {
  const int64_t chunk = 16 / element_bytes;
  const int64_t unit = k_contiguous ? s.stride_k : s.stride_extent,
                line = k_contiguous ? s.stride_extent : s.stride_k;
  const int64_t length = k_contiguous ? s.k : s.extent, lines = k_contiguous ? s.extent : s.k;
  const char* axis = k_contiguous ? "k" : s.extent_name;
  if (unit != 1 && length > 1)
    return std::string(s.name) + " is not contiguous along " + axis + " (stride " + text(unit) + ")";
  if (length % chunk != 0) return std::string(axis) + "=" + text(length) + " is not a multiple of " + text(chunk);
  if (s.address % 16 != 0)
    return std::string(s.name) + " is not 16-byte aligned (address mod 16 = " + text(s.address % 16) + ")";
  if (lines > 1 && line % chunk != 0)
    return std::string(s.name) + " has stride " + text(line) + ", not a multiple of " + text(chunk);
  if (s.stride_batch % chunk != 0)
    return std::string(s.name) + " has batch stride " + text(s.stride_batch) + ", not a multiple of " + text(chunk);
  return {};
}

// Bytes between the first and the end of the last element of a block_rows x block_cols window.
int64_t window_bytes(int64_t rows, int64_t cols, int64_t block_rows, int64_t block_cols, int64_t stride_row,
                     int64_t stride_col, int element_bytes) {
  const long double bytes = (static_cast<long double>(std::min(rows, block_rows) - 1) * stride_row +
                             static_cast<long double>(std::min(cols, block_cols) - 1) * stride_col + 1) *
                            element_bytes;
  return bytes < 9.0e18L ? static_cast<int64_t>(bytes) : std::numeric_limits<int64_t>::max();
}

Reason span_why_not(const char* operand, int64_t bytes) {
  if (bytes < kSpanLimit) return {};
  return std::string("a tile of ") + operand + " spans " + text(bytes) + " bytes, the limit is " +
         text(kSpanLimit - 1);
}

// For the problem as written; the mirrored form is asked separately.
Reason why_not_oriented(const GemmProblem& p, const GemmConfig& c) {
  const int in_bytes = size_bytes(c.in), out_bytes = size_bytes(p.out);
  const Side a = side_a(p), b = side_b(p);
  if (effective_k(p) > 0 && p.m > 0 && p.n > 0) {
    if (is_vector(c)) {
      if (Reason r = vector_why_not(a, c.layout[0] == 'n', in_bytes); !r.empty()) return r;
      if (Reason r = vector_why_not(b, c.layout[1] == 't', in_bytes); !r.empty()) return r;
    }
    for (const auto& [s, block] : {std::pair{&a, c.block_m}, std::pair{&b, c.block_n}})
      if (Reason r = span_why_not(
              s->name, window_bytes(s->extent, s->k, block, c.block_k, s->stride_extent, s->stride_k, in_bytes));
          !r.empty())
        return r;
  }
  if (p.m > 0 && p.n > 0) {
    if (Reason r = span_why_not(
            "d", window_bytes(p.m, p.n, c.block_m, c.block_n, p.d.stride_row, p.d.stride_col, out_bytes));
        !r.empty())
      return r;
    if (p.beta != 0.0f)
      if (Reason r = span_why_not(
              "c", window_bytes(p.m, p.n, c.block_m, c.block_n, p.c.stride_row, p.c.stride_col, out_bytes));
          !r.empty())
        return r;
  }
  const int64_t tiles = ceil_div(p.m, c.block_m) * ceil_div(p.n, c.block_n);
  const int64_t limit = std::numeric_limits<int32_t>::max();
  if (tiles > limit || (p.batch > 0 && tiles > limit / p.batch))
    return "batch=" + text(p.batch) + " times " + text(tiles) + " tiles exceed " + text(limit) + " workgroups";
  return {};
}

Reason extents_why_not(const GemmProblem& p) {
  for (const auto& [letter, v] :
       {std::pair{"m", p.m}, std::pair{"n", p.n}, std::pair{"k", p.k}, std::pair{"batch", p.batch}})
    if (v < 0 || v > kMaxExtent) return std::string(letter) + "=" + text(v) + " is outside 0.." + text(kMaxExtent);
  for (const auto& [letter, o] :
       {std::pair{"a", &p.a}, std::pair{"b", &p.b}, std::pair{"c", &p.c}, std::pair{"d", &p.d}})
    if (o->stride_batch < 0 || o->stride_row < 0 || o->stride_col < 0)
      return std::string(letter) + " has a negative stride (" + text(o->stride_batch) + ", " + text(o->stride_row) +
             ", " + text(o->stride_col) + ")";
  if (p.out != p.in && p.out != DType::kF32)
    return std::string("output ") + name(p.out) + " from input " + name(p.in) + ": only " + name(p.in) + " or f32";
  for (const auto& [letter, o] : {std::pair{"c", &p.c}, std::pair{"d", &p.d}})
    if ((*letter == 'd' || p.beta != 0.0f) && o->address % size_bytes(p.out) != 0)
      return std::string(letter) + " is not aligned to its elements (address mod " + text(size_bytes(p.out)) +
             " = " + text(o->address % size_bytes(p.out)) + ")";
  return {};
}

// Microseconds, roughly: rounds of tiles over the CUs, each limited by matrix rate or loads; not below the
// time to move the operands once. Gathers and element stores are charged for.
double cost_of(const GemmProblem& p, const GemmConfig& c, const Device& device) {
  using namespace cost;
  const int bytes = size_bytes(c.in);
  const double tiles =
      static_cast<double>(ceil_div(p.m, c.block_m)) * ceil_div(p.n, c.block_n) * std::max<int64_t>(p.batch, 1);
  const double rounds = std::max(1.0, std::ceil(tiles / device.cus));
  const double steps = ceil_div(effective_k(p), c.block_k);
  const double block = static_cast<double>(c.block_m) * c.block_n;
  const int accumulators = c.block_m * c.block_n / c.waves / (c.block_m >= 32 ? 1024 : 256);
  const double macs_per_clk = c.in == DType::kF32 ? kMacsPerClk32 : kMacsPerClk16;
  const double math = block * c.block_k / (macs_per_clk * mfma_share(c.waves, accumulators));
  const double elements = static_cast<double>(c.block_m + c.block_n) * c.block_k;
  const double load = is_vector(c) ? elements * bytes / kLoadBytesPerClk : elements / kGatherElementsPerClk;
  const bool wide = p.d.stride_col == 1 && p.d.stride_row * size_bytes(p.out) % 16 == 0 && p.d.address % 16 == 0;
  const double store = block * size_bytes(p.out) / kStoreBytesPerClk * (wide ? 1 : kElementStoreFactor);
  const double clk = rounds * (kTileFixedClk + steps * std::max(math, load) + store);
  const double moved = (static_cast<double>(p.m + p.n) * effective_k(p) * bytes +
                        static_cast<double>(p.m) * p.n * size_bytes(p.out)) *
                       std::max<int64_t>(p.batch, 1);
  return std::max(clk / (kClockGhz * 1e3), moved / (kHbmBytesPerUs * device.cus)) + clk * 1e-7;
}

GemmArgs arguments(const GemmProblem& p, const GemmConfig& c, const Device& device) {
  GemmArgs g{};
  g.a = p.a.address; g.b = p.b.address; g.c = p.c.address; g.d = p.d.address;
  g.a_stride_batch = p.a.stride_batch; g.b_stride_batch = p.b.stride_batch;
  g.c_stride_batch = p.c.stride_batch; g.d_stride_batch = p.d.stride_batch;
  g.a_stride_row = p.a.stride_row; g.a_stride_col = p.a.stride_col;
  g.b_stride_row = p.b.stride_row; g.b_stride_col = p.b.stride_col;
  g.c_stride_row = p.c.stride_row; g.c_stride_col = p.c.stride_col;
  g.d_stride_row = p.d.stride_row; g.d_stride_col = p.d.stride_col;
  g.m = static_cast<int32_t>(p.m); g.n = static_cast<int32_t>(p.n);
  g.k = static_cast<int32_t>(effective_k(p)); g.batch = static_cast<int32_t>(p.batch);
  g.tiles_m = static_cast<int32_t>(ceil_div(p.m, c.block_m));
  g.tiles_n = static_cast<int32_t>(ceil_div(p.n, c.block_n));
  g.alpha = g.k == 0 ? 0.0f : p.alpha;  // an empty product is 0 for any alpha, infinity too
  g.beta = p.beta;
  g.out_dtype = static_cast<uint32_t>(p.out);
  g.xcds = static_cast<uint32_t>(std::max(device.xcds, 1));
  return g;
}

void fill(Plan& plan, const GemmProblem& p, int row, const Device& device, double cost) {
  const GemmConfig& c = kConfigs[row];
  plan = Plan{};
  plan.args = arguments(p, c, device);
  plan.predicted_cost = cost;
  const int64_t workgroups = static_cast<int64_t>(plan.args.tiles_m) * plan.args.tiles_n * p.batch;
  if (workgroups == 0) return;  // nothing to write: no launch
  Launch& launch = plan.launch[0];
  launch.kernel = static_cast<uint16_t>(row);
  launch.block = static_cast<uint32_t>(c.waves) * 64;
  const int64_t width = max_grid_x(launch.block);
  launch.grid = {static_cast<uint32_t>(std::min(workgroups, width)),
                 static_cast<uint32_t>(ceil_div(workgroups, width)), 1};
  plan.launches = 1;
}

}  // namespace

Reason why_not(const GemmProblem& problem, int config) {
  if (config < 0 || config >= kConfigCount) return "no config " + text(config) + " among " + text(kConfigCount);
  const GemmConfig& c = kConfigs[config];
  if (problem.in != c.in) return std::string(c.symbol) + " takes " + name(c.in) + ", got " + name(problem.in);
  if (Reason r = extents_why_not(problem); !r.empty()) return r;
  Reason reason = why_not_oriented(problem, c);
  return reason.empty() || why_not_oriented(mirrored(problem), c).empty() ? Reason{} : reason;
}

Reason plan(const GemmProblem& problem, const Device& device, const Flags&, Plan& plan, int pinned) {
  if (pinned >= kConfigCount) return "no config " + text(pinned) + " among " + text(kConfigCount);
  if (Reason r = extents_why_not(problem); !r.empty()) return r;
  const GemmProblem both[2] = {problem, mirrored(problem)};
  double best = std::numeric_limits<double>::infinity();
  int best_row = -1, best_form = 0;
  Reason refusal;  // of the row that takes most: any strides, as written
  for (int row = pinned >= 0 ? pinned : 0; row < (pinned >= 0 ? pinned + 1 : kConfigCount); ++row) {
    if (kConfigs[row].in != problem.in) {
      if (pinned >= 0) refusal = why_not(problem, row);
      continue;
    }
    for (int form = 0; form < 2; ++form) {
      Reason r = why_not_oriented(both[form], kConfigs[row]);
      if (!r.empty()) {
        if (refusal.empty() || (form == 0 && !is_vector(kConfigs[row]))) refusal = std::move(r);
        continue;
      }
      const double cost = cost_of(both[form], kConfigs[row], device);
      if (cost < best) best = cost, best_row = row, best_form = form;
    }
  }
  if (best_row < 0) return refusal;
  fill(plan, both[best_form], best_row, device, best);
  return {};
}

}  // namespace mi350::gemm
