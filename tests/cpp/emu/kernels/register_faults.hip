// Pairs of kernels: the first of each pair has exactly one fault that a register checker must find, the second,
// named ..._ok, is the same code without it. Operands: v2 = 4 * lane, s[4:5] = in, s[6:7] = out. Nothing writes
// v60 to v67 and s60 to s75 before the text of the kernel.
#include "device.h"

#define SETTLED "s_waitcnt vmcnt(0) lgkmcnt(0)\n s_nop 15\n s_nop 15\n"
#define USED                                                                                                     \
  "memory", "vcc", "scc", "v10", "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21",    \
      "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31", "v32", "v33", "v34", "v35", "v36",   \
      "v37", "v38", "v39", "v60", "v61", "v62", "v63", "v64", "v65", "v66", "v67", "s60", "s61", "s62", "s63",   \
      "s64", "s65", "s66", "s67", "s68", "s69", "s70", "s71", "s72", "s73", "s74", "s75"

#define CASE(name, text)                                                                                 \
  KERNEL name(u32* out, const u32* in) {                                                                 \
    __shared__ u32 lds[1024];                                                                            \
    asm volatile(SETTLED text "\n" SETTLED                                                               \
                 :                                                                                       \
                 : "{v2}"(4 * __builtin_amdgcn_workitem_id_x()), "{s[4:5]}"(in), "{s[6:7]}"(out), "s"(lds) \
                 : USED);                                                                                \
  }
#define PAIR(name, before, gap, after) CASE(name, before "\n" after) CASE(name##_ok, before "\n" gap "\n" after)
#define WAITS(name, before, too_short, enough, after) \
  CASE(name, before "\n" too_short "\n" after) CASE(name##_ok, before "\n" enough "\n" after)
#define STORE(reg) "global_store_dword v2, " reg ", s[6:7]\n"

// Loads in flight.
PAIR(vmem_read, "global_load_dword v10, v2, s[4:5]", "s_waitcnt vmcnt(0)", "v_add_u32 v11, 1, v10\n" STORE("v11"))
WAITS(vmem_short, "global_load_dword v10, v2, s[4:5]\n global_load_dword v11, v2, s[4:5] offset:4", "s_waitcnt vmcnt(1)",
      "s_waitcnt vmcnt(0)", "v_add_u32 v12, 1, v11\n" STORE("v12"))
PAIR(vmem_overwritten, "global_load_dword v10, v2, s[4:5]", "s_waitcnt vmcnt(0)", "v_mov_b32 v10, 7\n" STORE("v10"))
PAIR(vmem_address, "global_load_dword v10, v2, s[4:5]", "s_waitcnt vmcnt(0)", "global_load_dword v11, v10, s[4:5]")
PAIR(lds_read, "ds_write_b32 v2, v2\n ds_read_b32 v10, v2", "s_waitcnt lgkmcnt(0)", "v_add_u32 v11, 1, v10\n" STORE("v11"))
WAITS(lds_short, "ds_write_b32 v2, v2\n ds_read_b32 v10, v2\n ds_read_b32 v11, v2\n ds_read_b32 v12, v2",
      "s_waitcnt lgkmcnt(2)", "s_waitcnt lgkmcnt(1)", "v_add_u32 v13, 1, v11\n" STORE("v13"))
PAIR(smem_read, "s_load_dword s60, s[4:5], 0", "s_waitcnt lgkmcnt(0)", "s_add_u32 s61, s60, 1")
WAITS(smem_short, "s_load_dword s60, s[4:5], 0\n s_load_dword s61, s[4:5], 4", "s_waitcnt lgkmcnt(1)",
      "s_waitcnt lgkmcnt(0)", "s_add_u32 s62, s60, 1")
PAIR(smem_overwritten, "s_load_dword s60, s[4:5], 0", "s_waitcnt lgkmcnt(0)", "s_mov_b32 s60, 1")
WAITS(flat_short, "v_mov_b32 v12, s4\n v_mov_b32 v13, s5\n flat_load_dword v10, v[12:13]", "s_waitcnt vmcnt(0)",
      "s_waitcnt vmcnt(0) lgkmcnt(0)", "v_add_u32 v11, 1, v10\n" STORE("v11"))

// Wait states.
#define DESCRIPTOR "s_mov_b32 s64, s4\n s_mov_b32 s65, s5\n s_mov_b32 s66, 64\n s_mov_b32 s67, 0x20000\n"
WAITS(sgpr_to_vmem, DESCRIPTOR "v_readfirstlane_b32 s60, v2", "s_nop 3", "s_nop 4",
      "buffer_load_dword v10, v2, s[64:67], s60 offen")
WAITS(lane_select, "v_readfirstlane_b32 s60, v2", "s_nop 2", "s_nop 3", "v_readlane_b32 s61, v2, s60")
WAITS(div_fmas, "v_mov_b32 v10, 1.0\n v_cmp_eq_u32 vcc, 1, v2", "s_nop 2", "s_nop 3", "v_div_fmas_f32 v11, v10, v10, v10")
WAITS(sgpr_constant, "v_readfirstlane_b32 s60, v2", "s_nop 0", "s_nop 1", "v_add_u32 v10, s60, v2\n" STORE("v10"))
WAITS(exec_to_dpp, "v_cmpx_ge_u32 vcc, v2, v2", "s_nop 3", "s_nop 4", "v_mov_b32_dpp v10, v2 quad_perm:[0,0,0,0]")
WAITS(vgpr_to_dpp, "v_mov_b32 v10, v2", "s_nop 0", "s_nop 1", "v_mov_b32_dpp v11, v10 quad_perm:[0,0,0,0]")
PAIR(vgpr_to_readlane, "v_mov_b32 v10, v2", "s_nop 0", "v_readlane_b32 s60, v10, 3")
WAITS(vgpr_to_permlane, "v_mov_b32 v11, v2\n v_mov_b32 v10, v2", "s_nop 0", "s_nop 1", "v_permlane32_swap_b32 v10, v11")
WAITS(cmpx_to_constant, "v_cmpx_ge_u32 vcc, v2, v2", "s_nop 0", "s_nop 1", "v_mov_b32 v10, exec_lo")
WAITS(cmpx_to_lane, "v_cmpx_ge_u32 vcc, v2, v2", "s_nop 2", "s_nop 3", "v_readfirstlane_b32 s60, v2")
PAIR(m0_to_dma, "s_mov_b32 m0, 0", "s_nop 0", "global_load_lds_dword v2, s[4:5]")
PAIR(trans_result, "v_exp_f32 v10, v2", "s_nop 0", "v_add_f32 v11, 1.0, v10\n" STORE("v11"))
PAIR(partial_write, "v_mov_b32 v10, 0\n v_add_f16_sdwa v10, v2, v2 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:DWORD src1_sel:DWORD",
     "s_nop 0", "v_add_u32 v11, 1, v10\n" STORE("v11"))
WAITS(wide_store, "v_mov_b32 v10, 0\n v_mov_b32 v11, 0\n v_mov_b32 v12, 0\n v_mov_b32 v13, 0\n global_store_dwordx4 v2, v[10:13], s[6:7]",
      "s_nop 0", "s_nop 1", "v_mov_b32 v12, 1")
WAITS(setreg, "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 0", "s_nop 0", "s_nop 1", "s_getreg_b32 s60, hwreg(HW_REG_MODE)")
#define ZEROS                                                                                       \
  "v_mov_b32 v10, 0\n v_mov_b32 v11, 0\n v_mov_b32 v12, 0\n v_mov_b32 v13, 0\n v_mov_b32 v14, 0\n" \
  "v_mov_b32 v15, 0\n v_mov_b32 v16, 0\n v_mov_b32 v17, 0\n s_nop 15\n"
#define MFMA "v_mfma_f32_16x16x16_f16 v[14:17], v[10:11], v[12:13], v[14:17]\n"
WAITS(vgpr_to_mfma, ZEROS "v_mov_b32 v10, 0", "s_nop 0", "s_nop 1", MFMA)
WAITS(mfma_to_valu, ZEROS MFMA, "s_nop 6", "s_nop 7", "v_add_f32 v20, 1.0, v14\n")
WAITS(mfma_to_store, ZEROS MFMA, "s_nop 6", "s_nop 7", STORE("v15"))
WAITS(mfma_to_operand, ZEROS MFMA, "s_nop 6", "s_nop 7", "v_mfma_f32_16x16x16_f16 v[20:23], v[14:15], v[12:13], 0")
WAITS(mfma_overlaps_c, ZEROS "v_mov_b32 v18, 0\n v_mov_b32 v19, 0\n s_nop 7\n" MFMA, "s_nop 4", "s_nop 5",
      "v_mfma_f32_16x16x16_f16 v[16:19], v[10:11], v[12:13], v[16:19]")
WAITS(mfma_overwritten, ZEROS MFMA, "s_nop 6", "s_nop 7", "v_mov_b32 v17, 0")
WAITS(mfma_c_overwritten, ZEROS "v_mfma_f32_16x16x16_f16 v[20:23], v[10:11], v[12:13], v[14:17]", "s_nop 1", "s_nop 2",
      "v_mov_b32 v14, 1")
WAITS(mfma_16_passes, ZEROS "v_mov_b32 v18, 0\n v_mov_b32 v19, 0\n v_mov_b32 v20, 0\n v_mov_b32 v21, 0\n s_nop 7\n"
      "v_mfma_f32_32x32x64_f8f6f4 v[22:37], v[10:17], v[14:21], 0", "s_nop 15\n s_nop 2", "s_nop 15\n s_nop 3",
      "v_add_f32 v38, 1.0, v22")
// Over the edge of a loop: the jump is one slot.
CASE(wait_over_jump, "s_mov_b32 s60, 2\n v_mov_b32 v10, v2\n s_nop 3\n .Lwait_again:\n v_readlane_b32 s61, v10, 3\n s_nop 3\n"
     "s_sub_u32 s60, s60, 1\n s_cmp_lg_u32 s60, 0\n v_exp_f32 v10, v2\n .Lwait_back:\n s_cbranch_scc0 .Lwait_out\n"
     "s_branch .Lwait_again\n .Lwait_out:\n s_nop 3")
CASE(wait_over_jump_short, "s_mov_b32 s60, 2\n v_mov_b32 v10, v2\n s_nop 3\n .Lshort_again:\n v_mov_b32_dpp v11, v10 quad_perm:[0,0,0,0]\n"
     "s_nop 3\n s_sub_u32 s60, s60, 1\n s_cmp_lg_u32 s60, 0\n v_mov_b32 v10, v2\n s_cbranch_scc1 .Lshort_again\n s_nop 3")

// EXEC.
#define LOW_LANES "s_mov_b64 s[70:71], exec\n s_mov_b64 exec, 0xffff\n"
#define ALL_LANES "s_mov_b64 exec, s[70:71]\n"
#define TRANSPOSE "v_lshlrev_b32 v10, 1, v2\n ds_write_b64 v10, v[10:11]\n s_waitcnt lgkmcnt(0)\n"
CASE(exec_transpose, "v_mov_b32 v11, 0\n" TRANSPOSE LOW_LANES "ds_read_b64_tr_b16 v[12:13], v10\n" ALL_LANES)
CASE(exec_transpose_ok, "v_mov_b32 v11, 0\n" TRANSPOSE LOW_LANES ALL_LANES "ds_read_b64_tr_b16 v[12:13], v10\n")
CASE(exec_mfma, ZEROS LOW_LANES "s_nop 3\n" MFMA ALL_LANES)
CASE(exec_mfma_ok, ZEROS LOW_LANES ALL_LANES "s_nop 3\n" MFMA)

// Undefined data.
PAIR(undefined_store, "", "v_mov_b32 v60, 1", STORE("v60"))
CASE(undefined_lane, LOW_LANES "v_mov_b32 v60, 1\n" ALL_LANES STORE("v60"))
CASE(undefined_lane_ok, LOW_LANES "v_mov_b32 v60, 1\n" STORE("v60") ALL_LANES)
PAIR(undefined_sum, "", "v_mov_b32 v60, 1", "v_add_u32 v61, 1, v60\n" STORE("v61"))
PAIR(undefined_scc, "", "s_mov_b32 s72, 3", "s_cmp_eq_u32 s72, 5\n s_cbranch_scc1 .Lscc%=\n .Lscc%=:")
PAIR(undefined_vcc, "", "v_mov_b32 v60, v2", "v_cmp_eq_u32 vcc, 5, v60\n s_nop 4\n s_cbranch_vccz .Lvcc%=\n .Lvcc%=:")
CASE(undefined_exec, "s_mov_b64 s[70:71], exec\n s_and_b64 exec, exec, s[72:73]\n" ALL_LANES)
CASE(undefined_exec_ok, "s_mov_b64 s[72:73], exec\n s_mov_b64 s[70:71], exec\n s_and_b64 exec, exec, s[72:73]\n" ALL_LANES)
CASE(undefined_address, "v_and_b32 v61, 0xfc, v60\n global_load_dword v10, v61, s[4:5]")
CASE(undefined_address_ok, "v_and_b32 v61, 0, v60\n global_load_dword v10, v61, s[4:5]")
PAIR(undefined_m0, "", "s_mov_b32 s72, 0", "s_mov_b32 m0, s72")
PAIR(undefined_descriptor, "s_mov_b32 s64, s4\n s_mov_b32 s65, s5\n s_mov_b32 s67, 0x20000", "s_mov_b32 s66, 64",
     "buffer_load_dword v10, v2, s[64:67], 0 offen")
CASE(undefined_lds, "ds_read_b32 v10, v2\n s_waitcnt lgkmcnt(0)\n" STORE("v10"))
CASE(undefined_lds_ok, "ds_write_b32 v2, v2\n s_waitcnt lgkmcnt(0)\n ds_read_b32 v10, v2\n s_waitcnt lgkmcnt(0)\n" STORE("v10"))
CASE(undefined_lds_byte, "ds_write_b8 v2, v2 offset:1\n ds_read_b32 v10, v2\n s_waitcnt lgkmcnt(0)\n" STORE("v10"))
CASE(undefined_lds_byte_ok, "ds_write_b8 v2, v2 offset:1\n ds_read_u8 v10, v2 offset:1\n s_waitcnt lgkmcnt(0)\n" STORE("v10"))
// A transpose read carries the one undefined row to other lanes.
#define ALL_BUT_LANE_5 "s_mov_b64 s[70:71], exec\n s_andn2_b64 exec, exec, 32\n"
CASE(undefined_transpose, "v_mov_b32 v11, 0\n v_lshlrev_b32 v10, 1, v2\n" ALL_BUT_LANE_5 "ds_write_b64 v10, v[10:11]\n" ALL_LANES
     "ds_read_b64_tr_b16 v[12:13], v10\n s_waitcnt lgkmcnt(0)\n" STORE("v12"))
CASE(undefined_transpose_ok, "v_mov_b32 v11, 0\n v_lshlrev_b32 v10, 1, v2\n" ALL_BUT_LANE_5 "ds_write_b64 v10, v[10:11]\n" ALL_LANES
     "ds_read_b64_tr_b16 v[12:13], v10\n s_waitcnt lgkmcnt(0)\n" STORE("v13"))
CASE(undefined_readlane, LOW_LANES "v_mov_b32 v60, 1\n" ALL_LANES "v_readlane_b32 s72, v60, 16\n s_mov_b32 m0, s72")
CASE(undefined_readlane_ok, LOW_LANES "v_mov_b32 v60, 1\n" ALL_LANES "v_readlane_b32 s72, v60, 15\n s_mov_b32 m0, s72")
CASE(undefined_bits, "v_or_b32 v61, 0xff00ffff, v60\n" STORE("v61"))
CASE(undefined_bits_ok, "v_xor_b32 v61, v60, v60\n v_or_b32 v62, -1, v60\n v_bfi_b32 v63, -1, v2, v60\n"
     "v_lshlrev_b32 v64, 16, v60\n v_and_b32 v64, 0xffff, v64\n v_add_u32 v61, v61, v62\n v_add_u32 v63, v63, v64\n"
     "v_add_u32 v61, v61, v63\n" STORE("v61"))
#define LOW_LANES_SET LOW_LANES "v_mov_b32 v60, 1\n" ALL_LANES
CASE(undefined_bpermute, LOW_LANES_SET "v_mov_b32 v10, 80\n ds_bpermute_b32 v11, v10, v60\n s_waitcnt lgkmcnt(0)\n" STORE("v11"))
CASE(undefined_bpermute_ok, LOW_LANES_SET "v_mov_b32 v10, 12\n ds_bpermute_b32 v11, v10, v60\n s_waitcnt lgkmcnt(0)\n" STORE("v11"))
CASE(undefined_dpp, LOW_LANES_SET "s_nop 1\n v_mov_b32_dpp v10, v60 row_bcast:31\n s_mov_b32 exec_lo, 0\n" STORE("v10") ALL_LANES)
CASE(undefined_dpp_ok, LOW_LANES_SET "s_nop 1\n v_mov_b32_dpp v10, v60 row_shr:1 bound_ctrl:0\n s_mov_b64 exec, 0xffff\n" STORE("v10") ALL_LANES)
// The low half of v61 is defined.
#define HALF "s_mov_b32 s60, 0xffff\n v_bfi_b32 v61, s60, v2, v60\n"
#define SDWA_SUM(word) HALF "v_add_u32_sdwa v62, v61, v2 dst_sel:DWORD src0_sel:" word " src1_sel:DWORD\n" STORE("v62")
CASE(undefined_sdwa, SDWA_SUM("WORD_1"))
CASE(undefined_sdwa_ok, SDWA_SUM("WORD_0"))
CASE(undefined_select, "v_mov_b32 v61, 1\n s_mov_b64 vcc, 0xff\n v_cndmask_b32 v62, v61, v60, vcc\n" STORE("v62"))
CASE(undefined_select_ok, "v_mov_b32 v61, 1\n s_mov_b64 vcc, 0\n v_cndmask_b32 v62, v61, v60, vcc\n" STORE("v62"))
PAIR(undefined_lds_atomic, "", "ds_write_b32 v2, v2", "ds_add_u32 v2, v2\n ds_read_b32 v10, v2\n s_waitcnt lgkmcnt(0)\n" STORE("v10"))
#define LOW_HALF "global_load_short_d16 v60, v2, s[4:5]\n s_waitcnt vmcnt(0)\n"
CASE(undefined_d16, LOW_HALF STORE("v60"))
CASE(undefined_d16_ok, LOW_HALF "global_store_short v2, v60, s[6:7]\n")
CASE(undefined_reload, STORE("v60") "s_waitcnt vmcnt(0)\n global_load_dword v10, v2, s[6:7]\n s_waitcnt vmcnt(0)\n"
     "v_and_b32 v11, 4, v10\n global_load_dword v12, v11, s[4:5]\n")
// Row 3 of A is undefined: D holds it in register 3 of lanes 0-15, the other registers are clean.
#define ROW_3_MISSING                                                                             \
  "v_mov_b32 v12, 0\n v_mov_b32 v13, 0\n s_mov_b64 s[70:71], exec\n s_andn2_b64 exec, exec, 8\n"  \
  "v_mov_b32 v60, 0\n v_mov_b32 v61, 0\n" ALL_LANES "s_nop 3\n"                                 \
  "v_mfma_f32_16x16x16_f16 v[20:23], v[60:61], v[12:13], 0\n s_nop 15\n"
CASE(undefined_mfma_row, ROW_3_MISSING STORE("v23"))
CASE(undefined_mfma_row_ok, ROW_3_MISSING STORE("v20") STORE("v21") STORE("v22"))

KERNEL undefined_scratch(u32* out, u32 n) {
  volatile u32 a[4];
  if (n != 0) a[0] = n;
  out[lane_x()] = a[0];
}
