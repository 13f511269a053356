/* SPDX-License-Identifier: GPL-2.0 */
/*
 * BPF programs made by hand, for the programs here that measure beside them: one needs
 * neither a compiler for them nor a library.
 */
#ifndef _PMUK_SELFTEST_BENCH_BPF_H
#define _PMUK_SELFTEST_BENCH_BPF_H

#include <linux/bpf.h>

#include "bench.h"

#define INSN(c, dst, src, offset, value)	\
	{ .code = (c), .dst_reg = (dst), .src_reg = (src), .off = (offset), .imm = (value) }
#define MOV(dst, value)		INSN(BPF_ALU64 | BPF_MOV | BPF_K, dst, 0, 0, value)
#define MOV_REG(dst, src)	INSN(BPF_ALU64 | BPF_MOV | BPF_X, dst, src, 0, 0)
#define ADD(dst, value)		INSN(BPF_ALU64 | BPF_ADD | BPF_K, dst, 0, 0, value)
#define ADD_REG(dst, src)	INSN(BPF_ALU64 | BPF_ADD | BPF_X, dst, src, 0, 0)
#define SUB_REG(dst, src)	INSN(BPF_ALU64 | BPF_SUB | BPF_X, dst, src, 0, 0)
#define GET(dst, src, offset)	INSN(BPF_LDX | BPF_MEM | BPF_DW, dst, src, offset, 0)
#define PUT(dst, offset, src)	INSN(BPF_STX | BPF_MEM | BPF_DW, dst, src, offset, 0)
#define PUT_W(dst, offset, src)	INSN(BPF_STX | BPF_MEM | BPF_W, dst, src, offset, 0)
#define CALL(function)		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_##function)
#define EXIT			INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)
/* LOAD_MAP and LOAD_MAP_END are the two halves of one instruction. */
#define LOAD_MAP(dst, fd)	INSN(BPF_LD | BPF_DW | BPF_IMM, dst, BPF_PSEUDO_MAP_FD, 0, fd)
#define LOAD_MAP_END		INSN(0, 0, 0, 0, 0)

static inline int sys_bpf(int cmd, union bpf_attr *attr)
{
	return syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

static inline int bpf_load(int type, const struct bpf_insn *insns, int nr)
{
	union bpf_attr attr = {
		.prog_type	= type,
		.insns		= (uintptr_t)insns,
		.insn_cnt	= nr,
		.license	= (uintptr_t)"GPL",
	};

	return need(sys_bpf(BPF_PROG_LOAD, &attr), "BPF_PROG_LOAD");
}

static inline int bpf_make_map(int type, int key_size, int value_size, int entries)
{
	union bpf_attr attr = {
		.map_type	= type,
		.key_size	= key_size,
		.value_size	= value_size,
		.max_entries	= entries,
	};

	return need(sys_bpf(BPF_MAP_CREATE, &attr), "BPF_MAP_CREATE");
}

#endif /* _PMUK_SELFTEST_BENCH_BPF_H */
