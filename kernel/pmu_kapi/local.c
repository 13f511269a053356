// SPDX-License-Identifier: GPL-2.0
/*
 * What a counter's own CPU does with it: overflow, local read, pause, resume,
 * period. Everything here may run in NMI: no lock, no allocation, no sleep.
 *
 * perf core moves a counter with interrupts off, on the CPU where it is. So
 * with interrupts off here, what is left is nesting: an NMI that lands inside one
 * of these functions, or inside perf core's own. Both run to their end before
 * what they interrupted goes on, so reading twice and comparing finds the first;
 * the second is told apart by pmuk_pmu_disabled() and by pmuk_nmi_pmu.
 *
 * The fast path of pmuk_counter_read_local() leaves interrupts on, as masking
 * them can cost more than all the rest. It compares one thing more, see there.
 */
#define pr_fmt(fmt) "pmuk: " fmt

#include <linux/cleanup.h>
#include <linux/export.h>
#include <linux/irqflags.h>
#include <linux/jiffies.h>
#include <linux/minmax.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>
#include <linux/timekeeping.h>

#include "arch.h"
#include "internal.h"

/* perf core's hw.interrupts of a counter that it has throttled */
#define PMUK_THROTTLED	U64_MAX

/*
 * The PMU whose own NMI runs on this CPU. Such an NMI seldom lands where that PMU is
 * reprogrammed, when it was under way as the PMU stopped; any other may at any time.
 */
static DEFINE_PER_CPU(struct pmu *, pmuk_nmi_pmu);

/* The same for an interrupt that is no NMI. */
static DEFINE_PER_CPU(struct pmu *, pmuk_irq_pmu);

static bool pmuk_is_own(const struct pmuk_counter *c)
{
	const struct perf_event *event = c->event;

	if (event->hw.target && event->hw.target != current)
		return false;
	return event->cpu == -1 || event->cpu == smp_processor_id();
}

static bool pmuk_is_on(const struct pmuk_counter *c)
{
	return READ_ONCE(c->event->oncpu) == raw_smp_processor_id();
}

/*
 * perf core's own events, which no hardware counts. is_software_event() is also true of PMUs whose
 * events are in the perf context of software events, such as SPE, Intel PT and CoreSight. The
 * event's own type does not tell: perf core gives each clock a PMU and a type of its own.
 */
static bool pmuk_is_software(const struct pmuk_counter *c)
{
#ifdef CONFIG_EVENT_TRACING
	if (c->event->tp_event)	/* a tracepoint, kprobe or uprobe */
		return true;
#endif
	return c->attr.type == PERF_TYPE_SOFTWARE || c->attr.type == PERF_TYPE_BREAKPOINT;
}

/* cpu-clock and task-clock: perf core runs their periods from a timer. */
static bool pmuk_is_clock(const struct pmuk_counter *c)
{
	return c->attr.type == PERF_TYPE_SOFTWARE && c->attr.config <= PERF_COUNT_SW_TASK_CLOCK;
}

static bool pmuk_is_stopped(const struct perf_event *event)
{
	return event->hw.state & PERF_HES_STOPPED;
}

/* perf core has stopped the event until a tick, or is about to. */
static bool pmuk_is_throttled(const struct perf_event *event)
{
	return event->hw.interrupts == PMUK_THROTTLED;
}

/* An NMI that is not the PMU's own may have interrupted it being programmed. */
static bool pmuk_is_foreign_nmi(const struct pmuk_counter *c)
{
	return in_nmi() && __this_cpu_read(pmuk_nmi_pmu) != c->event->pmu;
}

/*
 * perf core's count plus what the register holds beyond it. An overflow in the
 * middle moves the count, or prev_count, or both, and so does a pause and
 * resume; so when neither has moved, all three belong together.
 */
static __always_inline u64 pmuk_count_direct(const struct pmuk_counter *c)
{
	const struct perf_event *event = c->event;
	u64 base, prev, raw;

	do {
		base = local64_read(&event->count);
		prev = local64_read(&event->hw.prev_count);
		raw = pmuk_arch_read(event);
	} while (unlikely((local64_read(&event->hw.prev_count) != prev) |
			  (local64_read(&event->count) != base)));

	return base + ((raw - prev) & c->mask);
}

/* The exact count of a counter that is on this CPU, or off its PMU. */
static u64 pmuk_count(const struct pmuk_counter *c)
{
	struct perf_event *event = c->event;

	if (pmuk_is_on(c)) {
		if (c->mask && !(READ_ONCE(event->hw.state) & PERF_HES_UPTODATE))
			return pmuk_count_direct(c);
		if (!c->mask)
			event->pmu->read(event);
	}
	return local64_read(&event->count);
}

/*
 * The time that perf core will stamp @event with: an event without guests stands still while a
 * guest has the PMU. An NMI in such a guest still takes the guest's span so far for the host's.
 */
static u64 pmuk_event_now(const struct perf_event *event)
{
	u64 now = local_clock() + pmuk_ctx_offset(event->ctx);

	return event->attr.exclude_guest ? now - pmuk_ctx_guest_time(event->ctx) : now;
}

static void pmuk_times(const struct pmuk_counter *c, struct pmuk_value *value)
{
	const struct perf_event *event = c->event;
	u64 delta = pmuk_event_now(event) - event->tstamp;

	value->time_enabled = event->total_time_enabled - c->tried;
	value->time_running = event->total_time_running - c->tried;
	if (event->state >= PERF_EVENT_STATE_INACTIVE)
		value->time_enabled += delta;
	if (event->state >= PERF_EVENT_STATE_ACTIVE)
		value->time_running += delta;
}

/*
 * Local reads take the fast path for the rest of this tick; the next one after
 * that publishes. Paused counters and those of other PMUs always go slow. So do
 * throttled ones: x86's driver may move these to registers that it does not load
 * (6.12). An NMI may pause or throttle the counter at any point in here, hence the second look.
 */
static void pmuk_allow_fast(struct pmuk_counter *c)
{
	if (!c->mask || pmuk_is_throttled(c->event))
		return;
	WRITE_ONCE(c->fast_tick, jiffies);
	barrier();
	if (READ_ONCE(c->frozen) != PMUK_RUNNING || pmuk_is_throttled(c->event))
		WRITE_ONCE(c->fast_tick, PMUK_NEVER);
}

/*
 * Make @value the snapshot. Whoever finds another one publishing leaves it to
 * that: an NMI that waited for what it interrupted would wait for ever. An
 * older value does not replace a newer one.
 */
void pmuk_publish(struct pmuk_counter *c, const struct pmuk_value *value)
{
	struct pmuk_published pub = { .value = *value };

	if (atomic_cmpxchg_acquire(&c->publishing, 0, 1))
		return;

	pub.stamp = ktime_get_mono_fast_ns();
	if (value->count >= c->pub[0].value.count) {
		write_seqcount_latch_begin(&c->latch);
		c->pub[0] = pub;
		write_seqcount_latch(&c->latch);
		c->pub[1] = pub;
		write_seqcount_latch_end(&c->latch);
	}
	if (c->on_page)
		pmuk_page_publish(c, &c->pub[0].value);
	atomic_set_release(&c->publishing, 0);
}

static void pmuk_publish_local(struct pmuk_counter *c, u64 count)
{
	struct pmuk_value value = { .count = count };

	pmuk_times(c, &value);
	pmuk_publish(c, &value);
}

/*
 * The latest count that was read here. An NMI may land inside perf core's
 * update of this counter, after prev_count has moved and before the count has:
 * then what is in flight is missing, and this keeps the count from going back.
 */
static u64 pmuk_not_less(struct pmuk_counter *c, u64 count)
{
	if (!in_nmi()) {
		c->last = count;
		return count;
	}
	c->last_nmi = max3(count, c->last, c->last_nmi);
	return c->last_nmi;
}

/* Returns 0 if the calls below make sense on this counter, on this CPU or in this task. */
static int pmuk_check_own(const struct pmuk_counter *c)
{
	if (c->attr.flags & PMUK_INHERIT)
		return -EOPNOTSUPP;
	return pmuk_is_own(c) && !pmuk_counter_is_moved(c) ? 0 : -EINVAL;
}

/*
 * PMUs that count for tasks are read by perf core in NMI, when a sample has the values of a group.
 * Drivers of others, such as x86's uncore PMUs on PCI, may take locks to read.
 */
static bool pmuk_reads_in_nmi(const struct pmuk_counter *c)
{
	return c->event->pmu->task_ctx_nr != perf_invalid_context || !pmuk_is_foreign_nmi(c);
}

/* In an NMI whose interrupted code programs the PMU, or may hold a lock of its driver. */
static bool pmuk_is_out_of_reach(const struct pmuk_counter *c)
{
	return in_nmi() && pmuk_is_on(c) &&
	       (pmuk_pmu_disabled(c->event->pmu) || !pmuk_reads_in_nmi(c));
}

/* Besides pmuk_check_own(), an NMI may have to leave the counter alone at this moment. */
static int pmuk_check_local(const struct pmuk_counter *c)
{
	return pmuk_check_own(c) ?: (pmuk_is_out_of_reach(c) ? -EBUSY : 0);
}

/*
 * An NMI in the middle may pause the counter, whose hardware counts on if that NMI is not its
 * PMU's, or resume it, which takes out of the count what came in since.
 */
static u64 pmuk_count_or_frozen(const struct pmuk_counter *c, u64 *count)
{
	u64 frozen, thaws;

	do {
		thaws = READ_ONCE(c->thaws);
		*count = pmuk_count(c);
		frozen = READ_ONCE(c->frozen);
	} while (unlikely(READ_ONCE(c->thaws) != thaws));
	return frozen;
}

/* What the fast path leaves: errors, paused counters, other PMUs, and NMI. */
static int pmuk_read_slow(struct pmuk_counter *c, u64 *count)
{
	u64 frozen = READ_ONCE(c->frozen), now;
	int ret;

	ret = pmuk_check_own(c);
	if (ret)
		return ret;
	if (!pmuk_is_on(c))
		return -EBUSY;
	if (frozen != PMUK_RUNNING) {
		*count = frozen;
		return 0;
	}
	if (pmuk_is_out_of_reach(c))
		return -EBUSY;

	frozen = pmuk_count_or_frozen(c, &now);
	if (frozen != PMUK_RUNNING) {
		*count = frozen;
		return 0;
	}
	*count = pmuk_not_less(c, now);
	if (c->published != (u32)jiffies) {
		c->published = (u32)jiffies;
		pmuk_publish_local(c, *count);
	}
	pmuk_allow_fast(c);
	return 0;
}

/*
 * Not 0 where the fast path is closed: in NMI, and to the reader of a task counter who may be
 * moved between the look at ->oncpu and the read: another kind of CPU may lack the register.
 */
static __always_inline u32 pmuk_is_barred(const struct pmuk_counter *c)
{
	return ((u32)preempt_count() - c->bar) & (u32)(NMI_MASK | PMUK_BARRED);
}

/*
 * On this CPU, and not barred: then the register may be read. What came in
 * between any two steps is found afterwards: perf core stamps a counter when it
 * takes it off a PMU and when it puts it on one, pmuk_arch_is_moved() tells of moves
 * by the driver, and the rest moves the count or prev_count, see
 * pmuk_count_direct(). ->fast_tick tells whether fast reads are allowed, and of a
 * pause by an NMI that leaves the hardware running. ->fast_tick is read before the
 * count is compared: a later resume takes what came in from the count.
 *
 * Differences are or-ed, for one branch instead of many: nearly always there are
 * none.
 */
static __always_inline bool pmuk_read_fast(struct pmuk_counter *c, u64 *count)
{
	const struct perf_event *event = c->event;
	u64 stamp = READ_ONCE(event->tstamp);
	struct pmuk_arch_place place = pmuk_arch_place(event);
	u64 base, prev, raw, tick, now;

	if (unlikely(pmuk_is_barred(c) | pmuk_arch_changed(raw_smp_processor_id(), event->oncpu)))
		return false;

	base = local64_read(&event->count);
	prev = local64_read(&event->hw.prev_count);
	raw = pmuk_arch_read_at(event, &place);
	tick = READ_ONCE(c->fast_tick);
	now = base + ((raw - prev) & c->mask);
	if (unlikely(pmuk_arch_changed(tick, jiffies) |
		     pmuk_arch_count_changed(prev, event->hw.prev_count) |
		     pmuk_arch_count_changed(base, event->count) |
		     pmuk_arch_changed(stamp, event->tstamp) |
		     pmuk_arch_is_moved(event, &place)))
		return false;

	c->last = now;
	*count = now;
	return true;
}

/* The only call in pmuk_counter_read_local(), which else needs no stack. */
static noinline int pmuk_read_slow_irqsave(struct pmuk_counter *c, u64 *count)
{
	unsigned long flags;
	int ret;

	local_irq_save(flags);
	ret = pmuk_read_slow(c, count);
	local_irq_restore(flags);
	return ret;
}

/**
 * pmuk_counter_read_local() - read a counter on its own CPU, exactly and fast
 * @c: the counter
 * @count: where to put the number of events since the counter was created
 *
 * On x86 and arm64 this is one read of the counter's register and the loads to
 * make 64 bits of it; no lock, no interrupts masked, and nothing written that
 * perf core or another CPU uses. The first read in each tick also publishes the
 * value for pmuk_counter_snapshot(). A paused counter reads as it was when paused.
 *
 * A task counter is read with interrupts masked if its reader could be preempted:
 * another CPU, to which that may lead, need not have the same registers.
 *
 * Counts of one counter never go back. In an NMI that interrupted perf core
 * while it updates this very counter, the count may lack what that update has
 * in flight, but is not less than the latest read here that nothing interrupted.
 *
 * Context: Any, NMI too; on the counter's CPU, and not free to leave it (bound,
 * or with migration, preemption or interrupts off), or in the context of its
 * task.
 * Return: 0; -EINVAL if @c or @count is NULL or @c does not belong to this CPU
 * or task, -EBUSY if the counter is not on the PMU now (see
 * pmuk_counter_state()), an NMI found the PMU being reprogrammed, or the caller is
 * in an NMI and the PMU counts for no task, as uncore PMUs, whose drivers may take
 * locks; -EOPNOTSUPP with PMUK_INHERIT. @count is written on success only.
 */
int pmuk_counter_read_local(struct pmuk_counter *c, u64 *count)
{
	if (unlikely(!c || !count))
		return -EINVAL;

	/* Elsewhere than on its own CPU, a CPU counter's register is not its own. */
	if (IS_ENABLED(CONFIG_DEBUG_PREEMPT) && !c->event->hw.target &&
	    current->nr_cpus_allowed > 1)
		(void)smp_processor_id();

	if (likely(pmuk_read_fast(c, count)))
		return 0;
	return pmuk_read_slow_irqsave(c, count);
}
EXPORT_SYMBOL_GPL(pmuk_counter_read_local);

/* One after the other. A context that is unloaded meanwhile leaves NULL in their places. */
static int pmuk_counters_read_once(struct pmuk_counter *const *counters, u64 *counts,
				   unsigned int n)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; i < n; i++) {
		struct pmuk_counter *c = READ_ONCE(counters[i]);

		if (unlikely(!c))
			ret = -EBUSY;
		else if (unlikely(!pmuk_read_fast(c, &counts[i])))
			ret = pmuk_read_slow(c, &counts[i]);
		if (unlikely(ret))
			return ret;
		counts[i] += c->offset;
	}
	return 0;
}

/* So often NMIs may come in between. */
#define PMUK_READ_TRIES	8

/* Several counters that are all on this CPU, in one instant: neither interrupt nor NMI between. */
int pmuk_counters_read_local(struct pmuk_counter *const *counters, u64 *counts, unsigned int n)
{
	unsigned int tries = PMUK_READ_TRIES;
	unsigned long flags, nmis;
	int ret;

	local_irq_save(flags);
	do {
		nmis = pmuk_arch_nmis();
		barrier();
		ret = pmuk_counters_read_once(counters, counts, n);
		barrier();
	} while (!ret && pmuk_arch_nmis() != nmis && --tries);
	local_irq_restore(flags);
	return tries ? ret : -EBUSY;
}

/**
 * pmuk_counter_snapshot() - last published value of a counter
 * @c: the counter
 * @value: where to put the value and its age in nanoseconds
 *
 * Never an IPI, never a wait: a few loads. The value is published at each
 * overflow, when the counter is paused or disabled, and by the first
 * pmuk_counter_read_local() in each tick. So it is no older than one tick plus
 * the time since the owner's last local read, or than one period, whichever is
 * less; a counter that is neither read locally nor overflows is published only
 * when it stops. @value->age says how old it is.
 *
 * Context: Any, NMI too; from any CPU.
 * Return: 0; -EINVAL if @c or @value is NULL, -EOPNOTSUPP with PMUK_INHERIT.
 */
int pmuk_counter_snapshot(struct pmuk_counter *c, struct pmuk_value *value)
{
	struct pmuk_published pub;
	unsigned int seq;
	u64 now;

	if (IS_ERR_OR_NULL(c) || !value)
		return -EINVAL;
	if (c->attr.flags & PMUK_INHERIT)
		return -EOPNOTSUPP;

	do {
		seq = read_seqcount_latch(&c->latch);
		pub = c->pub[seq & 1];
	} while (read_seqcount_latch_retry(&c->latch, seq));

	now = ktime_get_mono_fast_ns();
	*value = pub.value;
	value->age = now > pub.stamp ? now - pub.stamp : 0;
	return 0;
}
EXPORT_SYMBOL_GPL(pmuk_counter_snapshot);

/*
 * perf core stops a throttled event without PERF_EF_UPDATE, and so leaves the event's count behind
 * the register. Drivers accept a second stop(), which brings the count up to date.
 */
static void pmuk_halt(struct pmuk_counter *c)
{
	struct perf_event *event = c->event;

	if (!pmuk_is_stopped(event))
		c->halted = true;
	event->pmu->stop(event, PERF_EF_UPDATE);
}

/*
 * Load the register with what is left of the period, and leave it stopped. perf core starts a
 * throttled event without PERF_EF_RELOAD, and x86's register would go on with the old period.
 */
static void pmuk_reload(struct perf_event *event)
{
	event->pmu->stop(event, PERF_EF_UPDATE);
	event->pmu->start(event, PERF_EF_RELOAD);
	event->pmu->stop(event, PERF_EF_UPDATE);
}

/* A throttled counter is perf core's to start. */
static void pmuk_unhalt(struct pmuk_counter *c)
{
	struct perf_event *event = c->event;

	if (pmuk_is_stopped(event) && pmuk_is_throttled(event))
		pmuk_reload(event);
	else if (pmuk_is_stopped(event) && c->halted)
		event->pmu->start(event, PERF_EF_RELOAD);
	c->halted = false;
}

/*
 * As perf_pmu_disable(), which modules have not: while a counter is being programmed, its
 * register and hw.prev_count do not belong together, and an NMI is not to read them. In its own
 * interrupt a PMU is stopped already, and it is for its driver to start it.
 */
static void pmuk_pmu_hold(struct pmu *pmu)
{
	if (in_nmi())
		return;
	if (!pmuk_pmu_disabled(pmu)++ && __this_cpu_read(pmuk_irq_pmu) != pmu)
		pmu->pmu_disable(pmu);
}

static void pmuk_pmu_release(struct pmu *pmu)
{
	if (in_nmi())
		return;
	if (!--pmuk_pmu_disabled(pmu) && __this_cpu_read(pmuk_irq_pmu) != pmu)
		pmu->pmu_enable(pmu);
}

/*
 * Have the PMU do what ->frozen says, or what it is about to say. Software
 * events have no hardware to stop, and their stop() may wait for a timer. perf
 * core itself stops a PMU from that PMU's NMI, so there we may, too. In another
 * NMI nobody may: then it is done when interrupts are on again.
 */
static void pmuk_settle(struct pmuk_counter *c, bool frozen)
{
	struct pmu *pmu = c->event->pmu;

	if (!pmuk_is_on(c) || pmuk_is_software(c))
		return;
	if (pmuk_is_foreign_nmi(c)) {
		irq_work_queue(&c->settle);
		return;
	}
	pmuk_pmu_hold(pmu);
	if (frozen)
		pmuk_halt(c);
	else
		pmuk_unhalt(c);
	pmuk_pmu_release(pmu);
}

/* As perf core does at its next tick, but now; and a counter that is paused stays so. */
static void pmuk_unthrottle(struct pmuk_counter *c, struct perf_event *event)
{
	struct pmu *pmu = event->pmu;

	pmuk_pmu_hold(pmu);
	event->hw.interrupts = 0;
	if (!c->halted)
		pmu->start(event, 0);
	pmuk_pmu_release(pmu);
}

/* What could not be done where it was asked for, see who queues ->settle. */
void pmuk_settle_irq_work(struct irq_work *irq_work)
{
	struct pmuk_counter *c = container_of(irq_work, struct pmuk_counter, settle);
	bool frozen = READ_ONCE(c->frozen) != PMUK_RUNNING;

	/* Being destroyed: the event may have been released. */
	if (READ_ONCE(c->quiet))
		return;
	if (!frozen && pmuk_is_on(c) && (c->attr.flags & PMUK_NO_THROTTLE) &&
	    pmuk_is_throttled(c->event))
		pmuk_unthrottle(c, c->event);
	else
		pmuk_settle(c, frozen);
}

/*
 * True if a counter that its PMU has stopped has overflowed, and the interrupt is still to be
 * served. PMUs that write AUX areas do not call back, and keep other things in period_left.
 */
static bool pmuk_has_overflowed(const struct pmuk_counter *c)
{
	return c->attr.period && !pmuk_is_software(c) && !c->traces &&
	       local64_read(&c->event->hw.period_left) <= 0;
}

/* True for an overflowed counter that its PMU's driver, whose NMI this is, will come to. */
static bool pmuk_stops_after_nmi(const struct pmuk_counter *c)
{
	const struct perf_event *event = c->event;
	u64 since;

	if (!in_nmi() || !pmuk_arch_stops_after_nmi() || pmuk_is_foreign_nmi(c) ||
	    !c->attr.period || !c->mask || !pmuk_is_on(c) || pmuk_is_stopped(event))
		return false;
	since = pmuk_count(c) - local64_read(&event->count);
	return (s64)since >= local64_read(&event->hw.period_left);
}

/*
 * The hardware is stopped first, so that what is frozen is final; only an NMI may leave it running.
 * ->frozen decides; ->fast_tick only keeps readers from asking it.
 */
static void pmuk_freeze(struct pmuk_counter *c)
{
	c->overdue = c->halted && pmuk_has_overflowed(c);
	WRITE_ONCE(c->frozen, pmuk_not_less(c, pmuk_count(c)));
	barrier();
	WRITE_ONCE(c->fast_tick, PMUK_NEVER);
}

/*
 * Each update of a count by x86's driver leaves the register's bare content in prev_count. With
 * that the page would be wrong, as its readers extend the register's sign. A start puts it right,
 * and refreshes the page.
 */
static void pmuk_restart_hardware(struct perf_event *event)
{
	event->pmu->stop(event, PERF_EF_UPDATE);
	event->pmu->start(event, PERF_EF_RELOAD);
}

/*
 * The PMU's interrupt has perf core update the page, too, by plain increments of its lock. With the
 * PMU held it does not come in between, where readers would find the same lock for two contents.
 */
static void pmuk_thaw_page(struct pmuk_counter *c)
{
	bool on = pmuk_is_on(c);

	if (!c->core || !c->attr.buffer || c->on_page || pmuk_is_foreign_nmi(c))
		return;
	if (on)
		pmuk_pmu_hold(c->event->pmu);
	if (on && IS_ENABLED(CONFIG_X86) && !pmuk_is_stopped(c->event))
		pmuk_restart_hardware(c->event);
	else
		pmuk_page_refresh(c);
	if (on)
		pmuk_pmu_release(c->event->pmu);
}

/*
 * perf core starts the hardware again when it reschedules the counter: take out
 * of its count what came in since. ->frozen stays until the register is right: a
 * nested read uses it.
 */
static void pmuk_thaw(struct pmuk_counter *c)
{
	u64 extra = pmuk_count(c) - c->frozen;

	local64_sub(extra, &c->event->count);
	smp_store_release(&c->thaws, c->thaws + 1);	/* pairs with pmuk_counter_value() */
	pmuk_settle(c, false);
	pmuk_thaw_page(c);
	smp_store_release(&c->frozen, PMUK_RUNNING);	/* pairs with pmuk_counter_value() */
}

/**
 * pmuk_counter_pause() - stop counting at once
 * @c: the counter
 *
 * Hardware counters are stopped, and perf core's time_enabled and time_running
 * go on. What the hardware still counts until pmuk_counter_resume() is left out of
 * every value, and overflows are not reported. It counts on if perf core reschedules
 * the counter, and until the end of an NMI that is not the PMU's own or, with AMD's
 * PerfMonV2, has an overflow of @c to serve. Pausing a paused counter does nothing.
 *
 * Context: Any, NMI too; on the counter's CPU, or in the context of its task.
 * Return: 0; -EINVAL if @c is NULL or does not belong to this CPU or task,
 * -EBUSY if an NMI found the PMU being reprogrammed, or one that counts for no
 * task, as uncore PMUs; -EOPNOTSUPP with PMUK_INHERIT.
 */
int pmuk_counter_pause(struct pmuk_counter *c)
{
	unsigned long flags;
	bool later;
	int ret;

	if (IS_ERR_OR_NULL(c))
		return -EINVAL;

	local_irq_save(flags);
	ret = pmuk_check_local(c);
	if (!ret && c->frozen == PMUK_RUNNING) {
		later = pmuk_stops_after_nmi(c);
		if (later)
			irq_work_queue(&c->settle);
		else
			pmuk_settle(c, true);
		pmuk_freeze(c);
		c->overdue |= later;
		pmuk_publish_local(c, c->frozen);
	}
	local_irq_restore(flags);
	return ret;
}
EXPORT_SYMBOL_GPL(pmuk_counter_pause);

/**
 * pmuk_counter_resume() - go on counting where pmuk_counter_pause() stopped
 * @c: the counter
 *
 * From an NMI that is not the PMU's own, the hardware starts right after that.
 * Resuming a counter that is not paused does nothing.
 *
 * Context: Any, NMI too; on the counter's CPU, or in the context of its task.
 * Return: As pmuk_counter_pause().
 */
int pmuk_counter_resume(struct pmuk_counter *c)
{
	unsigned long flags;
	int ret;

	if (IS_ERR_OR_NULL(c))
		return -EINVAL;

	local_irq_save(flags);
	ret = pmuk_check_local(c);
	if (!ret && c->frozen != PMUK_RUNNING)
		pmuk_thaw(c);
	local_irq_restore(flags);
	return ret;
}
EXPORT_SYMBOL_GPL(pmuk_counter_resume);

u64 pmuk_next_period(struct pmuk_counter *c)
{
	u32 mask = c->attr.random_mask;

	return c->attr.period + (mask ? prandom_u32_state(&c->rnd) & mask : 0);
}

/*
 * The counter is off, and when it is enabled next it may be in no register, see
 * pmuk_counter_mask(). pmuk_counter_set_period() does not need this: the driver's check_period()
 * refuses a period with which a running counter would have to leave its register.
 */
static void pmuk_leave_register(struct pmuk_counter *c)
{
	c->mask = 0;
	c->bar = PMUK_BARRED;
	WRITE_ONCE(c->fast_tick, PMUK_NEVER);
}

/*
 * All of the period is left, for when the counter is started again. Software events count up to 0,
 * except the clocks: their timer is started with what is left.
 */
static void pmuk_begin_period(struct pmuk_counter *c)
{
	struct perf_event *event = c->event;
	bool counts_up = pmuk_is_software(c) && !pmuk_is_clock(c);
	s64 period = pmuk_next_period(c);

	event->hw.sample_period = period;
	event->hw.last_period = period;
	local64_set(&event->hw.period_left, counts_up ? -period : period);
}

/*
 * The timer of a clock is left alone until it expires. perf core does not set a clock's
 * ->last_period, from which samples have their period.
 */
static void pmuk_set_software_period(struct pmuk_counter *c)
{
	struct hw_perf_event *hwc = &c->event->hw;

	if (!pmuk_is_clock(c)) {
		pmuk_begin_period(c);
		return;
	}
	hwc->sample_period = pmuk_next_period(c);
	hwc->last_period = hwc->sample_period;
}

/*
 * Freezes the counter only if it is on its PMU: a restart on another CPU may be about to thaw a
 * counter that is off its PMU.
 */
static void pmuk_set_hardware_period(struct pmuk_counter *c)
{
	bool running = pmuk_is_on(c) && c->frozen == PMUK_RUNNING;

	if (running) {
		pmuk_settle(c, true);
		pmuk_freeze(c);
	}
	pmuk_begin_period(c);
	if (running)
		pmuk_thaw(c);
}

/**
 * pmuk_counter_set_period() - start a new period
 * @c: a counter that was created with a period
 * @period: in events, 1 … 2^63 - 1 - &pmuk_attr.random_mask
 *
 * The next overflow comes @period events from now, and so does each one after
 * it. A counter that is off its PMU starts the new period when it comes back;
 * the clocks, PERF_COUNT_SW_CPU_CLOCK and _TASK_CLOCK, at their next overflow.
 *
 * Context: Any, NMI too, the overflow callback too; on the counter's CPU, or in
 * the context of its task.
 * Return: 0; -EINVAL if @c is NULL, has no period or does not belong to this
 * CPU or task, or @period is out of range, or too short for the CPU's PMU; -EBUSY if
 * an NMI that is not the PMU's own found the counter on the PMU; -EOPNOTSUPP with
 * PMUK_INHERIT.
 */
int pmuk_counter_set_period(struct pmuk_counter *c, u64 period)
{
	unsigned long flags;
	int ret;

	if (IS_ERR_OR_NULL(c) || !c->attr.period)
		return -EINVAL;
	if (!period || period > PMUK_PERIOD_MAX - c->attr.random_mask)
		return -EINVAL;

	local_irq_save(flags);
	ret = pmuk_check_local(c);
	if (!ret && pmuk_is_on(c) && pmuk_is_foreign_nmi(c))
		ret = -EBUSY;
	/* Core PMUs stay: the driver of another one may just be going. */
	if (!ret && c->core && c->event->pmu->check_period(c->event, period))
		ret = -EINVAL;
	if (!ret) {
		c->attr.period = period;
		if (pmuk_is_software(c))
			pmuk_set_software_period(c);
		else
			pmuk_set_hardware_period(c);
	}
	local_irq_restore(flags);
	return ret;
}
EXPORT_SYMBOL_GPL(pmuk_counter_set_period);

/*
 * The interrupt of an event that leaves the kernel out may come late, and find the kernel. User
 * space may read what becomes of the sample, so kernel addresses stay out of it, as with perf.
 */
static bool pmuk_is_hidden(const struct perf_event *event, struct pt_regs *regs)
{
	return event->attr.exclude_kernel && regs && !user_mode(regs);
}

/* perf core knows whether a guest was interrupted. The registers are the host's then. */
static void pmuk_fill_where(struct pmuk_sample *sample, struct perf_event *event,
			    struct pt_regs *regs)
{
	sample->misc = pmuk_sample_misc(event, regs);
	sample->ip = pmuk_sample_ip(event, regs);
	if (sample->ip)
		sample->valid |= PERF_SAMPLE_IP;
	if (pmuk_is_hidden(event, regs))
		return;
	sample->valid |= PERF_SAMPLE_REGS_INTR;
	sample->regs = regs;
}

static void pmuk_fill_sample(struct pmuk_counter *c, struct pmuk_sample *sample,
			     const struct perf_sample_data *data, struct pt_regs *regs)
{
	u64 wanted = c->attr.sample_type;

	sample->valid |= PERF_SAMPLE_PERIOD;
	sample->period = data->period;
	if (regs)
		pmuk_fill_where(sample, c->event, regs);
	if (pmuk_is_hidden(c->event, regs))
		wanted &= ~(u64)PERF_SAMPLE_ADDR;
	if (wanted & data->sample_flags & PERF_SAMPLE_ADDR) {
		sample->valid |= PERF_SAMPLE_ADDR;
		sample->addr = data->addr;
	}
	if (wanted & data->sample_flags & PERF_SAMPLE_WEIGHT) {
		sample->valid |= PERF_SAMPLE_WEIGHT;
		sample->weight = data->weight.full;
	}
	if (wanted & PERF_SAMPLE_TIME) {
		sample->valid |= PERF_SAMPLE_TIME;
		sample->time = data->sample_flags & PERF_SAMPLE_TIME ? data->time : local_clock();
	}
}

/* perf core has just brought its count up to date: that is what it is now. */
static void pmuk_value_at_overflow(struct pmuk_counter *c, struct pmuk_value *value)
{
	value->count = local64_read(&c->event->count);
	pmuk_times(c, value);
	pmuk_publish(c, value);
}

static void pmuk_report(struct pmuk_counter *c, struct perf_event *event,
			struct perf_sample_data *data, struct pt_regs *regs)
{
	struct pmuk_sample sample = {};

	/* Of inherited events each has a part of the count, and any may be ours. */
	if (!(c->attr.flags & PMUK_INHERIT)) {
		pmuk_value_at_overflow(c, &sample.value);
		sample.value.count += c->offset;
		sample.valid = c->attr.sample_type & PERF_SAMPLE_READ;
		if (c->attr.random_mask)
			event->hw.sample_period = pmuk_next_period(c);
	}
	if (!c->attr.overflow && !c->record_size && !c->handler)
		return;

	pmuk_fill_sample(c, &sample, data, regs);
	if (c->handler)
		c->handler(c, &sample, data);
	else if (c->record_size)
		pmuk_format_sample(c, c->attr.buffer, &sample, data);
	if (c->attr.overflow)
		c->attr.overflow(c, &sample, c->attr.data);
}

/*
 * Zeroing hw.interrupts at each overflow keeps it below the limit at which perf core throttles.
 * perf core lowers that limit to 1 after a slow interrupt; then this very overflow has throttled
 * the event. If perf core has already stopped the event, the event is started again here, as
 * interrupts may stay off for long. A clock's timer cannot be started from the timer's own
 * function, nor a PMU before its driver has stopped it: these are started after the interrupt by
 * ->settle, or at perf core's next tick if the event is inherited.
 */
static void pmuk_never_throttle(struct pmuk_counter *c, struct perf_event *event)
{
	if (!pmuk_is_throttled(event))
		event->hw.interrupts = 0;
	else if (pmuk_is_stopped(event) && !pmuk_is_software(c))
		pmuk_unthrottle(c, event);
	else if (event == c->event)
		irq_work_queue(&c->settle);
}

/*
 * Ends the pause of a disabled counter, and begins a new period if @period is not 0. Nobody else
 * touches a disabled counter, except to begin a period.
 */
void pmuk_counter_rearm(struct pmuk_counter *c, u64 period)
{
	if (c->frozen != PMUK_RUNNING)
		pmuk_thaw(c);
	c->halted = false;
	if (!period)
		return;
	c->attr.period = period;
	if (period == 1)
		pmuk_leave_register(c);
	pmuk_begin_period(c);
}

/*
 * Whether a disabled counter has overflowed without its interrupt being served: taking
 * it off the PMU drops that, but not what it has counted beyond its period. Of a paused one
 * it is known from when it was paused.
 */
bool pmuk_counter_take_pending(struct pmuk_counter *c)
{
	struct hw_perf_event *hwc = &c->event->hw;
	s64 left;

	if (c->frozen != PMUK_RUNNING)
		return c->overdue;
	if (!pmuk_has_overflowed(c))
		return false;
	left = local64_read(&hwc->period_left) + hwc->sample_period;
	local64_set(&hwc->period_left, max(left, 0));
	return true;
}

/* What is still known of an overflow that is handled late: where it was, nobody knows. */
void pmuk_counter_late_sample(struct pmuk_counter *c, struct pmuk_sample *sample)
{
	u64 wanted = c->attr.sample_type & (PERF_SAMPLE_READ | PERF_SAMPLE_TIME);

	*sample = (struct pmuk_sample){
		.valid	= wanted | PERF_SAMPLE_PERIOD,
		.period	= c->event->hw.last_period,
		.time	= wanted & PERF_SAMPLE_TIME ? local_clock() : 0,
	};
	pmuk_counter_snapshot(c, &sample->value);
	sample->value.count += c->offset;
}

/*
 * perf core's overflow handler. Older kernels handle software events with interrupts on. Interrupts
 * are off here, so that a disable, which interrupts this CPU, waits for the callback's end. If the
 * disable came right before this, the event is off its PMU.
 */
void pmuk_overflow(struct perf_event *event, struct perf_sample_data *data, struct pt_regs *regs)
{
	struct pmu * __percpu *serving = in_nmi() ? &pmuk_nmi_pmu : &pmuk_irq_pmu;
	struct pmuk_counter *c = event->overflow_handler_context;
	struct pmu *outer;

	guard(irqsave)();
	if (READ_ONCE(c->quiet) || READ_ONCE(event->oncpu) < 0 || pmuk_counter_is_moved(c))
		return;

	outer = __this_cpu_read(*serving);
	__this_cpu_write(*serving, event->pmu);
	if (c->attr.flags & PMUK_NO_THROTTLE)
		pmuk_never_throttle(c, event);
	if (pmuk_is_throttled(event))
		WRITE_ONCE(c->fast_tick, PMUK_NEVER);
	if (READ_ONCE(c->frozen) == PMUK_RUNNING)
		pmuk_report(c, event, data, regs);
	__this_cpu_write(*serving, outer);
}
