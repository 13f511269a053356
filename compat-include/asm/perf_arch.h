/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _PMUK_COMPAT_ASM_PERF_ARCH_H
#define _PMUK_COMPAT_ASM_PERF_ARCH_H

/* The kernel's build generates this header for an architecture without one. */
#if __has_include_next(<asm/perf_arch.h>)
#include_next <asm/perf_arch.h>
#else
#include <asm-generic/perf_arch.h>
#endif
#include <linux/version.h>

/* 7.3 has x86 count NMIs beside its other interrupts. */
#if defined(CONFIG_X86) && LINUX_VERSION_CODE < KERNEL_VERSION(7, 3, 0)
#undef perf_arch_nmis
#define perf_arch_nmis()	raw_cpu_read(irq_stat.__nmi_count)
#endif

#endif /* _PMUK_COMPAT_ASM_PERF_ARCH_H */
