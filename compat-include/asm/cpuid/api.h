/* SPDX-License-Identifier: GPL-2.0 */
/* Kernels before 6.16 have cpuid_eax() and its kin in asm/cpuid.h. */
#ifndef _COMPAT_ASM_CPUID_API_H
#define _COMPAT_ASM_CPUID_API_H

#if __has_include_next(<asm/cpuid/api.h>)
#include_next <asm/cpuid/api.h>
#else
#include <asm/cpuid.h>
#endif

#endif
