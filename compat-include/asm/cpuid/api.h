/* SPDX-License-Identifier: GPL-2.0 */
/* Until 6.16 cpuid_eax() and its kin were in asm/cpuid.h. */
#ifndef _COMPAT_ASM_CPUID_API_H
#define _COMPAT_ASM_CPUID_API_H

#if __has_include_next(<asm/cpuid/api.h>)
#include_next <asm/cpuid/api.h>
#else
#include <asm/cpuid.h>
#endif

#endif
