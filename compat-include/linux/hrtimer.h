/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _PMUK_COMPAT_LINUX_HRTIMER_H
#define _PMUK_COMPAT_LINUX_HRTIMER_H

#include_next <linux/hrtimer.h>
#include <linux/version.h>

/* 6.13 has one call for what are two before it. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*function)(struct hrtimer *),
				 clockid_t clock_id, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock_id, mode);
	timer->function = function;
}
#endif

#endif /* _PMUK_COMPAT_LINUX_HRTIMER_H */
