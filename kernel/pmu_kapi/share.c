// SPDX-License-Identifier: GPL-2.0
/*
 * The life of hosts: the perf events that have the registers of shared counters. A host is created
 * for the first counter that needs it, enabled while one of its riders is, and ends with the last.
 */
#include <kunit/visibility.h>
#include <linux/bitops.h>
#include <linux/cleanup.h>
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/irqflags.h>
#include <linux/list.h>
#include <linux/lockdep.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/smp.h>

#include "event.h"
#include "hw.h"
#include "share.h"

DEFINE_MUTEX(pmuk_hosts_lock);	/* held when hosts and their seats come and go */
EXPORT_SYMBOL_IF_KUNIT(pmuk_hosts_lock);
static LIST_HEAD(pmuk_hosts);

/* ---- overflows ---- */

/*
 * Returns true if a throttled host is to be started again. If pmuk is built in, perf core throttles
 * each rider by itself, so the host must go on. If pmuk is a module, perf core throttles the host,
 * and so all riders, see pmuk_host_flags().
 */
static bool pmuk_host_is_unthrottled(const struct pmuk_host *host)
{
	return !IS_MODULE(CONFIG_PMU_KAPI) || (host->attr.flags & PMUK_NO_THROTTLE);
}

static void pmuk_host_settle(struct irq_work *irq_work)
{
	struct pmuk_host *host = container_of(irq_work, struct pmuk_host, settle);

	guard(irqsave)();
	if (perf_local_is_on(host->event) && perf_local_is_throttled(host->event))
		perf_local_unthrottle(host->event);
}

/* The host's CPU ends fast reads of the riders. */
static void pmuk_host_close_riders(void *data)
{
	struct pmuk_host *host = data;
	unsigned int i, nr = pmuk_riders_nr(&host->riders);

	for (i = 0; i < nr; i++) {
		if (host->counters[i])
			pmuk_rider_close(host->counters[i]);
	}
}

/* Restarts a host that perf core has throttled, or ends fast reads of its riders until it runs. */
static void pmuk_host_check_throttled(struct pmuk_host *host)
{
	unsigned int i, nr = pmuk_riders_nr(&host->riders);

	if (pmuk_host_is_unthrottled(host) && !perf_local_never_throttle(host->event, false, true))
		irq_work_queue(&host->settle);
	if (!perf_local_is_throttled(host->event))
		return;
	pmuk_host_close_riders(host);
	for (i = 0; i < nr; i++) {
		if (host->counters[i])
			pmuk_forget_period(host->counters[i]);
	}
}

/*
 * Handles the overflow of each rider whose deadline is reached. Callbacks may start and stop
 * riders, and set their periods. pmuk_host_release() then aims the host once for all of that.
 *
 * If this overflow has interrupted pmuk_host_release(), that loop aims again. Until then, the
 * host's ->sample_period is for old deadlines, and may be 2 events: the loop would get no time
 * between such overflows. So the period that the driver begins after the present one is
 * PMUK_PERIOD_MAX.
 */
static void pmuk_host_overflow(struct perf_event *event, struct perf_sample_data *data,
			       struct pt_regs *regs)
{
	struct pmuk_host *host = event->overflow_handler_context;
	unsigned int i, nr = pmuk_riders_nr(&host->riders);
	struct pmu *outer;
	bool claimed;

	guard(irqsave)();
	if (perf_local_is_off(event))
		return;
	outer = perf_local_serve(event);
	perf_local_unmark(event);	/* the driver has loaded the register */
	pmuk_host_check_throttled(host);
	claimed = pmuk_host_claim(host);
	for (i = 0; i < nr; i++) {
		if (pmuk_riders_deadline(&host->riders, i) <= perf_local_updated(event))
			pmuk_rider_overflow(host->counters[i], data, regs);
	}
	if (claimed)
		pmuk_host_release(host);
	else
		perf_local_set_next_period(event, PMUK_PERIOD_MAX);
	perf_local_served(outer);
}

/* Returns the function of the rider in this seat, NULL if that rider does not yield. */
static perf_others_wait_t pmuk_seat_others_wait(const struct pmuk_host *host, unsigned int seat)
{
	return perf_event_others_wait(host->counters[seat]->event);
}

/* @waiter waits for the host's register, which gets free only if all riders yield. */
static void pmuk_host_others_wait(struct perf_event *event, struct perf_event *waiter)
{
	const struct pmuk_host *host = event->overflow_handler_context;
	unsigned int i, nr = pmuk_riders_nr(&host->riders);

	for (i = 0; i < nr; i++) {
		if (host->counters[i] && !pmuk_seat_others_wait(host, i))
			return;
	}
	for (i = 0; i < nr; i++) {
		if (host->counters[i])
			pmuk_seat_others_wait(host, i)(host->counters[i]->event, waiter);
	}
}

/* ---- a host comes and goes ---- */

/*
 * Counters that share a register have these flags in common. If pmuk is a module, counters that
 * perf core may throttle share no register with others, which would stop, too, or would keep perf
 * core from throttling.
 */
static u32 pmuk_host_flags(const struct pmuk_attr *attr)
{
	u32 flags = attr->flags & (PMUK_EXCLUDES | PMUK_CALLCHAIN_USER);

	if (IS_MODULE(CONFIG_PMU_KAPI) && (!attr->period || (attr->flags & PMUK_NO_THROTTLE)))
		flags |= PMUK_NO_THROTTLE;
	return flags;
}

/*
 * Returns true if a counter with these attributes may share the host, which may have no seat left.
 */
bool pmuk_host_serves(const struct pmuk_host *host, const struct pmuk_attr *attr, int cpu)
{
	return host->cpu == cpu && host->attr.type == attr->type &&
	       host->attr.config == attr->config && host->attr.config1 == attr->config1 &&
	       host->attr.config2 == attr->config2 && host->attr.config3 == attr->config3 &&
	       host->attr.precise_ip == attr->precise_ip &&
	       host->attr.branch_sample_type == attr->branch_sample_type &&
	       host->attr.sample_regs_intr == attr->sample_regs_intr &&
	       host->attr.sample_regs_user == attr->sample_regs_user &&
	       host->attr.max_stack == pmuk_event_max_stack(attr) &&
	       host->attr.flags == pmuk_host_flags(attr) &&
	       host->attr.sample_type == pmuk_event_sample_type(attr);
}

/*
 * Returns a host with an empty seat, or NULL. A host whose CPU was offline is left out, as its
 * event does not count any more.
 */
static struct pmuk_host *pmuk_host_find(const struct pmuk_attr *attr, int cpu)
	__must_hold(&pmuk_hosts_lock)
{
	struct pmuk_host *host;

	list_for_each_entry(host, &pmuk_hosts, node) {
		lockdep_assert_held(&pmuk_hosts_lock);
		if (pmuk_host_serves(host, attr, cpu) && !perf_local_is_gone(host->event) &&
		    host->seats != GENMASK(PMUK_RIDERS - 1, 0))
			return host;
	}
	return NULL;
}

/*
 * Returns true if counters can share the event: it takes a register, does not trace, and is not an
 * uncore PMU's, whose driver may move it to another CPU.
 */
static bool pmuk_host_is_possible(const struct pmuk_host *host)
{
	return perf_local_counts_tasks(host->event) && !has_aux(host->event) &&
	       perf_arch_is_counter(host->event);
}

/*
 * Asks the event's PMU, which may be unregistered at any time. Returns false if it has been, or if
 * counters cannot share the event.
 */
static bool pmuk_host_ask_pmu(struct pmuk_host *host)
{
	guard(mutex)(perf_local_pmu_lock(host->event));
	if (perf_local_is_pmu_gone(host->event) || !pmuk_host_is_possible(host))
		return false;
	host->core = perf_arch_core_event(host->event);
	if (host->core)
		host->mask = perf_arch_mask(host->event);
	host->marks = !perf_local_pmu_can(host->event, PERF_PMU_CAP_NO_INTERRUPT);
	return true;
}

static struct perf_event *pmuk_host_create_event(struct pmuk_host *host, bool disabled)
{
	struct perf_event_attr pa = pmuk_event_attr(&host->attr);

	pa.disabled = disabled;
	pa.sample_period = PMUK_PERIOD_MAX;
	pa.pinned = 1;
	return pmuk_event_create(&pa, host->attr.precise_ip, host->cpu, NULL, pmuk_host_overflow,
				 host);
}

static void pmuk_host_free(struct pmuk_host *host)
{
	irq_work_sync(&host->settle);
	perf_event_release_kernel(host->event);
	if (!host->core)	/* see pmuk_counter_unmake() */
		cond_synchronize_rcu(host->grace);
	irq_work_sync(&host->settle);
	kfree(host);
}

/* Frees a host that was never enabled, so that no overflow is left. */
static void pmuk_host_discard(struct pmuk_host *host)
{
	perf_event_release_kernel(host->event);
	kfree(host);
}

static struct pmuk_host *pmuk_host_create(const struct pmuk_attr *attr, int cpu)
{
	struct pmuk_host *host = kzalloc_node(sizeof(*host), GFP_KERNEL, cpu_to_node(cpu));
	int ret;

	if (!host)
		return ERR_PTR(-ENOMEM);
	host->attr = (struct pmuk_attr){
		.type		= attr->type,
		.config		= attr->config,
		.config1	= attr->config1,
		.config2	= attr->config2,
		.config3	= attr->config3,
		.precise_ip	= attr->precise_ip,
		.branch_sample_type = attr->branch_sample_type,
		.sample_regs_intr = attr->sample_regs_intr,
		.sample_regs_user = attr->sample_regs_user,
		.max_stack	= pmuk_event_max_stack(attr),
		.flags		= pmuk_host_flags(attr),
		.sample_type	= pmuk_event_sample_type(attr),
	};
	host->cpu = cpu;
	mutex_init(&host->lock);
	host->settle = IRQ_WORK_INIT_HARD(pmuk_host_settle);
	host->event = pmuk_host_create_event(host, true);
	if (IS_ERR(host->event)) {
		ret = PTR_ERR(host->event) == -ENOMEM ? -ENOMEM : -EOPNOTSUPP;
		kfree(host);
		return ERR_PTR(ret);
	}
	if (!pmuk_host_ask_pmu(host)) {
		pmuk_host_discard(host);
		return ERR_PTR(-EOPNOTSUPP);
	}
	perf_event_set_others_wait(host->event, pmuk_host_others_wait);
	return host;
}

/*
 * Gives the counter a seat at a host that serves others already, or else at @new. Returns false if
 * there is no such host, and @new is NULL.
 */
static bool pmuk_host_take_seat(struct pmuk_counter *c, const struct pmuk_attr *attr,
				struct pmuk_host *new)
{
	struct pmuk_host *host;

	guard(mutex)(&pmuk_hosts_lock);
	host = pmuk_host_find(attr, c->cpu);
	c->founder = !host;
	if (!host && new)
		list_add(&new->node, &pmuk_hosts);
	host = host ?: new;
	if (!host)
		return false;
	lockdep_assert_held(&pmuk_hosts_lock);
	c->seat = ffz(host->seats);
	host->seats |= BIT(c->seat);
	host->group_ticks[c->seat] = NULL;
	clear_bit(c->seat, &host->refused);
	pmuk_riders_take(&host->riders, c->seat);
	c->host = host;
	c->hw_event = host->event;
	return true;
}

/* Gives the counter a seat at a host that exists, or at a new one. */
static int pmuk_host_find_seat(struct pmuk_counter *c, const struct pmuk_attr *attr)
{
	struct pmuk_host *new;

	if (pmuk_host_take_seat(c, attr, NULL))
		return 0;
	new = pmuk_host_create(attr, c->cpu);
	if (IS_ERR(new))
		return PTR_ERR(new);
	pmuk_host_take_seat(c, attr, new);
	if (c->host != new)	/* another caller was faster */
		pmuk_host_discard(new);
	return 0;
}

/*
 * The driver has accepted PMUK_PERIOD_MAX, and the host's period will be what is left of a rider's.
 * If the driver needs longer periods than the rider's, the rider would overflow too late.
 */
static bool pmuk_host_takes_period(const struct pmuk_host *host, u64 period)
{
	return !period || !host->core || perf_local_takes_period(host->event, period);
}

/*
 * Gives the counter a seat, which pmuk_host_leave() has to give back. Returns -ENOMEM, or
 * -EOPNOTSUPP if the event cannot be shared, or perf core or the driver refuses it. In the latter
 * case the caller gives the counter an event without a host. If that fails, too, its error says
 * why.
 */
int pmuk_host_join(struct pmuk_counter *c, const struct pmuk_attr *attr)
{
	int ret;

	if (!pmuk_event_takes_register(attr->type))
		return -EOPNOTSUPP;
	ret = pmuk_host_find_seat(c, attr);
	if (ret || pmuk_host_takes_period(c->host, attr->period))
		return ret;
	pmuk_host_leave(c);
	c->host = NULL;
	return -EOPNOTSUPP;
}

/* The counter's event has gone. */
void pmuk_host_leave(struct pmuk_counter *c)
{
	struct pmuk_host *host = c->host;

	scoped_guard(mutex, &pmuk_hosts_lock) {
		lockdep_assert_held(&pmuk_hosts_lock);
		host->seats &= ~BIT(c->seat);
		if (host->seats)
			return;
		list_del(&host->node);
	}
	pmuk_host_free(host);
}

/* ---- the register is held while a rider needs it ---- */

/* Overflows that have begun by now end within a grace period. */
static void pmuk_host_disable(struct pmuk_host *host) __must_hold(&host->lock)
{
	perf_event_disable(host->event);
	host->grace = get_state_synchronize_rcu();
}

/* Notes whether the rider is enabled, and who has it. Disables the host after the last rider. */
static void pmuk_host_set_riding(struct pmuk_host *host, const struct pmuk_counter *c, bool riding)
	__must_hold(&host->lock)
{
	lockdep_assert_held(&host->lock);
	__assign_bit(c->seat, &host->riding, riding);
	__assign_bit(c->seat, &host->kept, c->kept);
	host->ranks[c->seat] = c->rank;
	if (!host->riding)
		pmuk_host_disable(host);
}

/*
 * Returns 0 if the host is enabled, or would find a register beside all other pinned events, and
 * -ENOSPC if not. perf core serves the older of two pinned events first, so a trial of the host,
 * which may be old, could push out events. A new event is tried instead. The creation under ->lock
 * does not wait for CPU hotplug, as perf core has begun to follow branches for the host's event.
 */
static int pmuk_host_probe(struct pmuk_host *host) __must_hold(&host->lock)
{
	struct perf_event *event;
	int ret;

	if (perf_local_state(host->event) > PERF_EVENT_STATE_OFF)
		return 0;
	scoped_with_kernel_creds()	/* see pmuk_event_try() */
		event = pmuk_host_create_event(host, false);
	ret = pmuk_event_end_trial(event);
	host->grace = get_state_synchronize_rcu();
	/* pmuk_counters_enable() may have enabled the host meanwhile, without ->lock. */
	return perf_local_state(host->event) > PERF_EVENT_STATE_OFF ? 0 : ret;
}

/* Tries a new counter. */
int pmuk_host_try(struct pmuk_counter *c)
{
	guard(mutex)(&c->host->lock);
	return pmuk_host_probe(c->host);
}

/*
 * The rider's event is off afterwards, so the rider does not count when the host gets a register.
 */
static void pmuk_host_refuse(struct pmuk_host *host, const struct pmuk_counter *c)
	__must_hold(&host->lock)
{
	set_bit(c->seat, &host->refused);
	perf_event_disable(c->event);
	pmuk_host_set_riding(host, c, false);
}

/*
 * If the host was pushed out, its riders have missed events. The host may get its register back in
 * the tick in which it was lost, so fast reads end before.
 */
static void pmuk_host_enable(struct pmuk_host *host) __must_hold(&host->lock)
{
	if (perf_local_state(host->event) > PERF_EVENT_STATE_OFF)
		return;
	if (host->riding)
		smp_call_function_single(host->cpu, pmuk_host_close_riders, host, true);
	pmuk_event_enable(host->event, &host->since);
}

/*
 * Enables the rider's event after its host's, as the rider's time_running is the host's. If the
 * host has lost its register, this tries to place it again. The rider is refused if there is no
 * room, or if pmuk_host_probe() cannot find out, whose error is returned.
 */
int pmuk_rider_enable(struct pmuk_counter *c)
{
	struct pmuk_host *host = c->host;
	int ret;

	guard(mutex)(&host->lock);
	ret = pmuk_counter_is_probed(c) ? pmuk_host_probe(host) : 0;
	if (ret) {
		pmuk_host_refuse(host, c);
		return ret;
	}
	clear_bit(c->seat, &host->refused);
	pmuk_host_enable(host);
	pmuk_event_enable(c->event, &c->since);
	pmuk_host_set_riding(host, c, true);
	return 0;
}

/*
 * Returns true if pmuk_counter_enable() tries a new event first. A rider may be younger than its
 * host, and must push out no event older than the rider. A counter in error must push out no event
 * at all. Events of tasks, events that trace and events of software are not tried.
 */
bool pmuk_counter_is_probed(const struct pmuk_counter *c)
{
	switch (perf_local_state(c->hw_event)) {
	case PERF_EVENT_STATE_ERROR:
		return c->cpu >= 0 && !c->traces && pmuk_event_takes_register(c->attr.type);
	case PERF_EVENT_STATE_OFF:
		return c->host && (!c->founder || pmuk_rider_is_refused(c));
	default:
		return false;
	}
}

/*
 * The rider is about to be enabled: from now on, its host stays enabled when other riders are
 * disabled.
 */
void pmuk_host_hold(struct pmuk_counter *c)
{
	struct pmuk_host *host = c->host;

	guard(mutex)(&host->lock);
	pmuk_host_set_riding(host, c, true);
}

/*
 * Refuses a rider whose host has found no register when it was enabled. pmuk_rider_add() cannot
 * fail instead, as perf core would then place no later rider either. Returns false if the rider and
 * its host are enabled by now, because another caller has enabled a rider: then the caller's
 * enabling has succeeded, too.
 */
bool pmuk_rider_refuse(struct pmuk_counter *c)
{
	struct pmuk_host *host = c->host;

	guard(mutex)(&host->lock);
	if (perf_local_state(c->event) > PERF_EVENT_STATE_OFF &&
	    perf_local_state(host->event) > PERF_EVENT_STATE_OFF)
		return false;
	pmuk_host_refuse(host, c);
	return true;
}

/* Returns true for a rider whose enabling has failed: it is off, and is shown as in error. */
bool pmuk_rider_is_refused(const struct pmuk_counter *c)
{
	return c->host && test_bit(c->seat, &c->host->refused);
}

/* Called after a rider was disabled, and perhaps enabled again by another caller since. */
void pmuk_host_follow(struct pmuk_counter *c)
{
	struct pmuk_host *host = c->host;

	guard(mutex)(&host->lock);
	pmuk_host_set_riding(host, c, perf_local_state(c->event) > PERF_EVENT_STATE_OFF);
}

/* A reservation's counter, which is @kept, gives way to all ranks but its own. */
static bool pmuk_rank_gives_way(int mine, bool kept, int to)
{
	return kept ? mine != to : mine < to;
}

/* Returns true if all counters that have the counter's register give way to a context of @rank. */
bool pmuk_sharers_give_way(struct pmuk_counter *c, int rank)
{
	struct pmuk_host *host = c->host;
	unsigned int seat;

	if (!host)
		return pmuk_rank_gives_way(c->rank, c->kept, rank);
	guard(mutex)(&host->lock);
	for_each_set_bit(seat, &host->riding, PMUK_RIDERS) {
		lockdep_assert_held(&host->lock);
		if (!pmuk_rank_gives_way(host->ranks[seat], test_bit(seat, &host->kept), rank))
			return false;
	}
	return true;
}

/* Returns true if all counters that share the register of @c are reservations'. */
bool pmuk_sharers_are_kept(struct pmuk_counter *c)
{
	struct pmuk_host *host = c->host;

	if (!host)
		return true;
	guard(mutex)(&host->lock);
	return !(host->riding & ~host->kept);
}
