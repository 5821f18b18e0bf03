// The instruction table, its parsed columns, and the choice of the handler table by the host's CPU.
#include "isa.h"

#include <array>
#include <cctype>
#include <iterator>
#include <string_view>
#include <vector>

namespace mi350::emu {

const IsaRow kIsa[] = {
#define ROW(mnemonic, encoding, opcode, operands, timing, forms) \
  {#mnemonic, Encoding::encoding, opcode, operands, IsaClass::timing, forms},
#include "isa.def"
#undef ROW
};
const size_t kIsaRows = std::size(kIsa);

namespace {

constexpr unsigned kVop2InVop3 = 256, kVop1InVop3 = 320;

unsigned number(const char*& s) {
  unsigned v = 0;
  while (std::isdigit(static_cast<unsigned char>(*s))) v = v * 10 + (*s++ - '0');
  return v;
}

void parse_operands(const char* s, RowForm& form) {
  while (*s) {
    OperandForm& op = form.operands[form.operand_count++];
    op.kind = *s++;
    op.dwords = static_cast<uint8_t>(number(s));
    if (*s && *s != ' ') op.suffix = *s++;
    while (*s == ' ') ++s;
  }
}

void parse_forms(const char* s, RowForm& form) {
  while (*s) {
    switch (*s++) {
      case 'E': form.vop3 = true; break;
      case 'D': form.dpp = true; break;
      case 'S': form.sdwa = true; break;
      case 'W': form.sdwa = form.sdwa_source_only = true; break;
      case 'U': form.no_suffix = true; break;
      case 'n': form.neg_mask = form.abs_mask = static_cast<uint8_t>(number(s)); break;
      case 'N': form.neg_mask = static_cast<uint8_t>(number(s)); break;
      case 'c': form.clamp = true; break;
      case 'm': form.omod = true; break;
      case 'o': form.op_sel_mask = static_cast<uint8_t>(number(s)); break;
      case 'p': case 'q': case 'x': case 's': form.packed = s[-1]; break;
      case '2': form.two_offsets = true; break;
      case 'z': form.swizzle = true; break;
      case 'g': form.gds = true; break;
      case 'l': form.may_lds = true; break;
      default: break;
    }
  }
}

struct Tables {
  std::vector<RowForm> forms;
  std::array<std::array<const IsaRow*, 1024>, 19> by_opcode{};

  Tables() : forms(kIsaRows) {
    for (size_t r = 0; r < kIsaRows; ++r) {
      parse_operands(kIsa[r].operands, forms[r]);
      parse_forms(kIsa[r].forms, forms[r]);
      insert(kIsa[r], forms[r]);
    }
  }

  void insert(const IsaRow& row, const RowForm& form) {
    auto& vop3 = by_opcode[static_cast<size_t>(Encoding::kVop3)];
    by_opcode[static_cast<size_t>(row.encoding)][row.opcode] = &row;
    if (row.encoding == Encoding::kVop3sd) vop3[row.opcode] = &row;
    if (!form.vop3) return;
    if (row.encoding == Encoding::kVop1) vop3[kVop1InVop3 + row.opcode] = &row;
    if (row.encoding == Encoding::kVop2) vop3[kVop2InVop3 + row.opcode] = &row;
    if (row.encoding == Encoding::kVopc) vop3[row.opcode] = &row;
  }
};

const Tables& tables() {
  static const Tables t;
  return t;
}

}  // namespace

const OperandForm* RowForm::find(char kind) const {
  for (unsigned i = 0; i < operand_count; ++i)
    if (operands[i].kind == kind) return &operands[i];
  return nullptr;
}

const char* refusal(const IsaRow& row) {
  const std::string_view name = row.mnemonic;
  if (name.starts_with("ds_gws_")) return "global wave sync: no queue here is given its hardware";
  if (name.starts_with("s_rfe_")) return "returns from a trap handler, in which no kernel runs here";
  if (name == "v_mfma_ld_scale_b32") return "scales without the v_mfma_*_f8f6f4 that has to follow them";
  return nullptr;
}

const IsaRow* find_row(Encoding encoding, unsigned opcode) {
  const auto& rows = tables().by_opcode[static_cast<size_t>(encoding)];
  return opcode < rows.size() ? rows[opcode] : nullptr;
}

const RowForm& form_of(const IsaRow& row) { return tables().forms[static_cast<size_t>(&row - kIsa)]; }

namespace base { extern const Handler kHandlers[]; }
#ifdef MI350_EMU_X86_LEVELS
namespace v3 { extern const Handler kHandlers[]; }
namespace v4 { extern const Handler kHandlers[]; }

const Handler* handlers() {
  static const Handler* const table = [] {
    __builtin_cpu_init();
    const bool has_v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                        __builtin_cpu_supports("bmi2");
    const bool has_v4 = has_v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                        __builtin_cpu_supports("avx512cd");
    return has_v4 ? v4::kHandlers : has_v3 ? v3::kHandlers : base::kHandlers;
  }();
  return table;
}
#else
const Handler* handlers() { return base::kHandlers; }
#endif

}  // namespace mi350::emu
