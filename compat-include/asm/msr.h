/* SPDX-License-Identifier: GPL-2.0 */
/* 6.16 made rdpmc() a function that returns the value. Can go with 6.15. */
#ifndef _PMUK_COMPAT_ASM_MSR_H
#define _PMUK_COMPAT_ASM_MSR_H

#include_next <asm/msr.h>

/* A macro rdpmc() is the old one, with halves to fill in, and rdpmcl() is beside it. */
#ifdef rdpmc
#undef rdpmc
static __always_inline u64 rdpmc(int counter)
{
	u64 value;

	rdpmcl(counter, value);
	return value;
}
#endif

#endif /* _PMUK_COMPAT_ASM_MSR_H */
