// SPDX-License-Identifier: GPL-2.0
/* pmuk/watchdog in debugfs shows what the watchdog costs, and how late its reports are. */
#include <linux/atomic.h>
#include <linux/cpumask.h>
#include <linux/dcache.h>
#include <linux/debugfs.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/seq_file.h>

#include "wdt.h"

static struct dentry *pmuk_wdt_file;

static void pmuk_wdt_show_cpu(struct seq_file *m, int cpu)
{
	const struct pmuk_wdt_cpu *c = pmuk_wdt_of(cpu);
	u64 nmis = READ_ONCE(c->nmis), cost = READ_ONCE(c->cost_ns);
	u64 khz = pmuk_wdt_khz(READ_ONCE(c->clock.rate));
	u64 top = pmuk_wdt_khz(READ_ONCE(c->clock.top));

	seq_printf(m, "cpu%d %s nmis %llu cost_ns %llu cost_max_ns %llu clock_khz %llu top_khz %llu armed_ns %llu reports %d timer_nmis %llu\n",
		   cpu, pmuk_wdt_level_name(pmuk_wdt_level(cpu)), nmis,
		   nmis ? div64_u64(cost, nmis) : 0, READ_ONCE(c->cost_max_ns), khz, top,
		   READ_ONCE(c->armed_ns), atomic_read(&c->reports), READ_ONCE(c->timer_nmis));
}

/* Prints how late reports came, in thresholds since the latest possible begin of the lockup. */
static void pmuk_wdt_show_latency(struct seq_file *m)
{
	unsigned int i, nr;
	int cpu;

	for (i = 0; i < PMUK_WDT_BUCKETS; i++) {
		nr = 0;
		for_each_possible_cpu(cpu)
			nr += atomic_read(&pmuk_wdt_of(cpu)->late[i]);
		if (nr)
			seq_printf(m, "latency %u.%02u %u\n", 1 + i / 32, i % 32 * 100 / 32, nr);
	}
}

static int pmuk_wdt_debugfs_show(struct seq_file *m, void *unused)
{
	int cpu;

	seq_printf(m, "threshold_ns %llu bytes_per_cpu %zu\n",
		   READ_ONCE(pmuk_wdt.times.threshold), sizeof(struct pmuk_wdt_cpu));
	for_each_online_cpu(cpu)
		pmuk_wdt_show_cpu(m, cpu);
	pmuk_wdt_show_latency(m);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(pmuk_wdt_debugfs);

/* Uses the debugfs directory of pmuk, which stays as long as this module is loaded. */
void pmuk_wdt_debugfs_init(void)
{
	struct dentry *dir = debugfs_lookup("pmuk", NULL);

	if (!dir)
		return;
	pmuk_wdt_file = debugfs_create_file("watchdog", 0400, dir, NULL, &pmuk_wdt_debugfs_fops);
	dput(dir);
}

void pmuk_wdt_debugfs_exit(void)
{
	debugfs_remove(pmuk_wdt_file);
}
