/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Up to PMUK_RIDERS pinned counters of a CPU that count the same share one perf event, their host,
 * and so one register. Further ones share another host. Counters with PMUK_PRIVATE have none.
 *
 * Each such counter, a rider, has a perf event of its own, too. All riders are events of
 * pmuk_rider_pmu, whose driver reads the host's count where other drivers read a register. So perf
 * core keeps the rider's count, times and state as it does for any event, and all calls on a
 * counter work on riders.
 */
#ifndef _PMU_KAPI_SHARE_H
#define _PMU_KAPI_SHARE_H

#include <linux/atomic.h>
#include <linux/irq_work.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/perf_event.h>

#include "counter.h"
#include "riders.h"

/*
 * A callback of CPU hotplug may create and destroy counters, and perf core may wait for CPU hotplug
 * when it creates an event with branches. So no host's event is created while this mutex is held.
 */
extern struct mutex pmuk_hosts_lock;

/* "Owner" is the host's CPU, with interrupts off or in NMI. */
struct pmuk_host {
	struct perf_event *event;	/* const */
	u64 mask;			/* const: bits of the register; 0: read by the driver */
	u64 frozen;			/* owner: the count while ->moving */
	bool moving;			/* owner: the register is being loaded */
	bool marks;			/* const: as pmuk_counter::marks */
	bool core;			/* const: as pmuk_counter::core */
	u32 loads;			/* owner: see pmuk_host_loads() */
	atomic_t asks;			/* owner: pmuk_host_claim() calls since a period was set */
	struct pmuk_riders riders;
	/* Arrays by seat. */
	struct pmuk_counter *counters[PMUK_RIDERS];	/* owner: riders that are on their PMU */
	unsigned long *group_ticks[PMUK_RIDERS];	/* const while a group is shown: its tick */
	u64 raw[PMUK_RIDERS];		/* owner: the register at the latest update of each rider */
	u32 paused_loads[PMUK_RIDERS];	/* owner: ->loads at each rider's pause */

	struct pmuk_attr attr;		/* const: the event, its excludes and hardware's fields */
	int cpu;			/* const */
	struct irq_work settle;		/* starts the event if perf core has throttled it */
	struct list_head node __guarded_by(&pmuk_hosts_lock);
	unsigned long seats __guarded_by(&pmuk_hosts_lock);	/* bit per seat: taken */
	struct mutex lock;
	unsigned long riding __guarded_by(&lock);	/* bit per seat: the rider is enabled */
	unsigned long kept __guarded_by(&lock);	/* bit per seat: the rider is a reservation's */
	s8 ranks[PMUK_RIDERS] __guarded_by(&lock);	/* by seat */
	unsigned long grace;		/* ->lock writes: RCU's state at the latest disable */
	u64 since;			/* ->lock writes: as &pmuk_counter.since */
	unsigned long refused;		/* atomic bit per seat: the enabling has failed */
};

/*
 * If two calls return the same number, no start and no overflow has loaded the host's register in
 * between. The function marks the host, and a start or an overflow removes the mark. Where hosts
 * cannot have marks, each call returns a new number. A driver's load at a wrap that is no overflow
 * leaves the mark, see pmuk_counted_since().
 */
static inline u32 pmuk_host_loads(struct pmuk_host *host)
{
	if (host->marks && perf_local_is_marked(host->event))
		return host->loads;
	if (host->marks)
		perf_local_mark(host->event);
	return ++host->loads;
}

/* share.c */
int pmuk_host_join(struct pmuk_counter *c, const struct pmuk_attr *attr);
void pmuk_host_leave(struct pmuk_counter *c);
int pmuk_host_try(struct pmuk_counter *c);
bool pmuk_host_serves(const struct pmuk_host *host, const struct pmuk_attr *attr, int cpu);
int pmuk_rider_enable(struct pmuk_counter *c);
bool pmuk_counter_is_probed(const struct pmuk_counter *c);
void pmuk_host_hold(struct pmuk_counter *c);
bool pmuk_rider_refuse(struct pmuk_counter *c);
bool pmuk_rider_is_refused(const struct pmuk_counter *c);
void pmuk_host_follow(struct pmuk_counter *c);
bool pmuk_sharers_give_way(struct pmuk_counter *c, int rank);
bool pmuk_sharers_are_kept(struct pmuk_counter *c);

/* rider.c */
extern struct pmu pmuk_rider_pmu;
bool pmuk_host_claim(struct pmuk_host *host);
void pmuk_host_release(struct pmuk_host *host);
void pmuk_rider_close(struct pmuk_counter *c);
void pmuk_rider_overflow(struct pmuk_counter *c, struct perf_sample_data *data,
			 struct pt_regs *regs);

#endif /* _PMU_KAPI_SHARE_H */
