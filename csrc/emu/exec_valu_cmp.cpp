// VOPC: comparisons and classes of every type. v_cmpx writes EXEC as well as its scalar pair.
#include "exec_lanes.h"
#include "float_rules.h"

namespace mi350::emu::MI350_EMU_LEVEL {
namespace {

void put_mask(Wave& w, const Inst& i, uint64_t mask) { write_s64(w, i.dst, mask); }
void put_mask_and_exec(Wave& w, const Inst& i, uint64_t mask) {
  write_s64(w, i.dst, mask);
  w.set_exec(mask);
}

}  // namespace

#define COMPARE_PAIR(suffix, kinds, expression) \
  static uint64_t mask_##suffix(Wave& w, const Inst& i) { \
    return lane_mask<kinds>(w, i, [](auto a, auto b) { return expression; }); \
  } \
  void v_cmp_##suffix(Wave& w, const Inst& i) { put_mask(w, i, mask_##suffix(w, i)); } \
  void v_cmpx_##suffix(Wave& w, const Inst& i) { put_mask_and_exec(w, i, mask_##suffix(w, i)); }
#define TWO(kind) kind, kind

#define COMPARE_FLOAT(type, kind) \
  COMPARE_PAIR(f_##type, TWO(kind), (void(a), void(b), false)) \
  COMPARE_PAIR(lt_##type, TWO(kind), a < b) \
  COMPARE_PAIR(eq_##type, TWO(kind), a == b) \
  COMPARE_PAIR(le_##type, TWO(kind), a <= b) \
  COMPARE_PAIR(gt_##type, TWO(kind), a > b) \
  COMPARE_PAIR(lg_##type, TWO(kind), (a < b) | (a > b)) \
  COMPARE_PAIR(ge_##type, TWO(kind), a >= b) \
  COMPARE_PAIR(o_##type, TWO(kind), (a == a) & (b == b)) \
  COMPARE_PAIR(u_##type, TWO(kind), (a != a) | (b != b)) \
  COMPARE_PAIR(nge_##type, TWO(kind), !(a >= b)) \
  COMPARE_PAIR(nlg_##type, TWO(kind), !((a < b) | (a > b))) \
  COMPARE_PAIR(ngt_##type, TWO(kind), !(a > b)) \
  COMPARE_PAIR(nle_##type, TWO(kind), !(a <= b)) \
  COMPARE_PAIR(neq_##type, TWO(kind), !(a == b)) \
  COMPARE_PAIR(nlt_##type, TWO(kind), !(a < b)) \
  COMPARE_PAIR(tru_##type, TWO(kind), (void(a), void(b), true))
COMPARE_FLOAT(f16, F16)
COMPARE_FLOAT(f32, F32)
COMPARE_FLOAT(f64, F64)

#define COMPARE_INT(type, kind) \
  COMPARE_PAIR(f_##type, TWO(kind), (void(a), void(b), false)) \
  COMPARE_PAIR(lt_##type, TWO(kind), a < b) \
  COMPARE_PAIR(eq_##type, TWO(kind), a == b) \
  COMPARE_PAIR(le_##type, TWO(kind), a <= b) \
  COMPARE_PAIR(gt_##type, TWO(kind), a > b) \
  COMPARE_PAIR(ne_##type, TWO(kind), a != b) \
  COMPARE_PAIR(ge_##type, TWO(kind), a >= b) \
  COMPARE_PAIR(t_##type, TWO(kind), (void(a), void(b), true))
COMPARE_INT(i16, I16)
COMPARE_INT(u16, U16)
COMPARE_INT(i32, I32)
COMPARE_INT(u32, U32)
COMPARE_INT(i64, I64)
COMPARE_INT(u64, U64)

// Classes look at the bits as they are, so that no denormal is flushed first.
#define KINDS_CLASS(kind) kind, U32
COMPARE_PAIR(class_f16, KINDS_CLASS(H16), (class_of(a, 5, 10) & b) != 0)
COMPARE_PAIR(class_f32, KINDS_CLASS(U32), (class_of(a, 8, 23) & b) != 0)
COMPARE_PAIR(class_f64, KINDS_CLASS(U64), (class_of(a, 11, 52) & b) != 0)

}  // namespace mi350::emu::MI350_EMU_LEVEL
