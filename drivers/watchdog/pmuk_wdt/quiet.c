// SPDX-License-Identifier: GPL-2.0
/*
 * Reasons why a CPU may be silent without being stuck: all CPUs are silent on purpose, as in kgdb
 * or a panic, or touch_nmi_watchdog() was called on the CPU.
 */
#include <linux/atomic.h>
#include <linux/kernel.h>
#include <linux/kgdb.h>
#include <linux/nmi.h>
#include <linux/panic.h>
#include <linux/timekeeping.h>

#include "wdt.h"

bool pmuk_wdt_is_in_kgdb(void)
{
#ifdef CONFIG_KGDB
	return atomic_read(&kgdb_active) != -1;
#else
	return false;
#endif
}

/*
 * Returns whether CPUs are silent on purpose: in a panic, in kgdb, or as the machine halts or
 * restarts.
 */
bool pmuk_wdt_is_quiet(void)
{
	return READ_ONCE(pmuk_wdt.panicking) || panic_in_progress() || pmuk_wdt_is_in_kgdb() ||
	       READ_ONCE(system_state) > SYSTEM_RUNNING;
}

/*
 * Returns when the latest call of touch_nmi_watchdog() on @cpu was noticed. The CPU's own NMI and
 * the beats of its neighbours share that time.
 */
u64 pmuk_wdt_touched_at(struct pmuk_wdt_cpu *c, int cpu)
{
	unsigned int touches = nmi_watchdog_touches(cpu);

	if (touches != smp_load_acquire(&c->touches)) {	/* LMM(pmuk_wdt_touched_at:A) */
		WRITE_ONCE(c->touched_at, ktime_get_mono_fast_ns());
		smp_store_release(&c->touches, touches);	/* LMM(pmuk_wdt_touched_at:B) */
	}
	return READ_ONCE(c->touched_at);
}
