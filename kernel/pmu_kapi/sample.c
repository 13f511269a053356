// SPDX-License-Identifier: GPL-2.0
/*
 * A counter overflows: perf core's callback becomes a struct pmuk_sample, for the counter's handler
 * and its creator's callback. All of this may run in NMI.
 */
#include <linux/cleanup.h>
#include <linux/irqflags.h>
#include <linux/irq_work.h>
#include <linux/math.h>
#include <linux/sched/clock.h>

#include "freq.h"
#include "hw.h"

#define PMUK_SAMPLE_ADDRESSES	(PERF_SAMPLE_ADDR | PERF_SAMPLE_PHYS_ADDR |		\
				 PERF_SAMPLE_DATA_PAGE_SIZE | PERF_SAMPLE_CODE_PAGE_SIZE | \
				 PERF_SAMPLE_REGS_INTR)

/*
 * Returns the fields that the sample must not have. The interrupt of an event that excludes the
 * kernel may come late, when the CPU is in the kernel already. User space may read the sample, so
 * kernel addresses stay out of it, as with perf.
 *
 * x86's PEBS and IBS report where the event was, and their drivers make @regs look as if user space
 * was interrupted there. The registers that the PMU has not recorded are still those of the late
 * interrupt. If their stack pointer is a negative number, they are the kernel's, and are hidden.
 */
static u64 pmuk_hidden_fields(const struct perf_event *event, struct pt_regs *regs)
{
	if (!event->attr.exclude_kernel || !regs)
		return 0;
	if (!user_mode(regs))
		return PMUK_SAMPLE_ADDRESSES;
	return (long)user_stack_pointer(regs) < 0 ? PERF_SAMPLE_REGS_INTR | PERF_SAMPLE_REGS_USER :
						    0;
}

/* Only perf core knows whether a guest was interrupted: @regs are the hypervisor's then, too. */
static void pmuk_fill_where(struct pmuk_sample *sample, struct perf_event *event,
			    struct pt_regs *regs, u64 hidden)
{
	sample->misc = pmuk_sample_misc(event, regs);
	sample->ip = pmuk_sample_ip(event, regs);
	if (sample->ip)
		sample->valid |= PERF_SAMPLE_IP;
	if (hidden & PERF_SAMPLE_REGS_INTR)
		return;
	sample->valid |= PERF_SAMPLE_REGS_INTR;
	sample->regs = regs;
}

/*
 * @event is the counter's, or an inherited one. perf core compares the event's task with the
 * current one, and gives no callchain of another task's user space.
 */
static void pmuk_fill_sample(struct pmuk_counter *c, struct perf_event *event,
			     struct pmuk_sample *sample, struct perf_sample_data *data,
			     struct pt_regs *regs)
{
	u64 hidden = pmuk_hidden_fields(c->event, regs);
	u64 wanted = c->attr.sample_type & ~hidden;

	if (regs)
		pmuk_fill_where(sample, c->event, regs, hidden);
	if (wanted & PERF_SAMPLE_TIME)
		sample->time = data->sample_flags & PERF_SAMPLE_TIME ? data->time : local_clock();
	if (wanted & PERF_SAMPLE_CGROUP)
		sample->cgroup = pmuk_current_cgroup();
	sample->valid |= PERF_SAMPLE_PERIOD | (wanted & (PERF_SAMPLE_TIME | PERF_SAMPLE_CGROUP));
	wanted &= PMUK_SAMPLE_DRIVER | PMUK_SAMPLE_CORE;
	if (wanted)
		sample->valid |= pmuk_fields_fill(sample, c->host ? c->hw_event : event, wanted,
						  data, regs);
}

/*
 * Adapts the period after an overflow at @ran, in time_running. If the overflow has interrupted
 * perf core in an update of its times, @ran may be wrong. Then the times of this period and of the
 * next are wrong by as much in opposite directions, and the period is off for some overflows.
 */
static void pmuk_adapt_period(struct pmuk_counter *c, u64 ran)
{
	if (ran > c->ran)
		c->attr.period = pmuk_freq_next(c->attr.period, ran - c->ran, c->attr.freq,
						c->event->attr.sample_period);
	c->ran = ran;
	if (perf_local_is_throttled(c->event) || perf_local_is_throttled(c->hw_event))
		pmuk_forget_period(c);
}

/*
 * Adapts the period of a software event, which has no driver: the period that perf core has just
 * begun may still change. All samples of a burst have the period from before the burst, so this
 * function sets sample->period to the length of the period that has ended.
 */
static void pmuk_adapt_begun(struct pmuk_counter *c, struct pmuk_sample *sample)
{
	u64 events = sample->period;

	sample->period = c->attr.period;
	pmuk_adapt_period(c, sample->value.time_running);
	perf_local_change_begun(c->event, events, c->attr.period);
}

/*
 * Sets the period that follows the one that the driver has already begun. AMD's IBS takes multiples
 * of 16 only, and its driver checks that at creation only. So this function rounds adapted periods
 * up to such a multiple, on all PMUs but the CPU's own.
 */
static void pmuk_set_next_period(struct pmuk_counter *c, u64 ran)
{
	bool adapts = pmuk_hw_adapts(c);
	u64 next;

	if (!adapts && !c->attr.random_mask)
		return;
	if (adapts)
		pmuk_adapt_period(c, ran);
	next = pmuk_next_period(c);
	perf_local_set_next_period(c->event, adapts && !c->core ? round_up(next, 16) : next);
}

/* Returns false if perf core has reported events that do not end the counter's period. */
static bool pmuk_end_period(struct pmuk_counter *c, struct pmuk_sample *sample)
{
	bool begun = pmuk_hw_adapts(c) && pmuk_hw_counts_up(c);

	if (begun && !perf_local_passes_end(c->event, sample->period))
		return false;
	/* perf core has just brought its count up to date, so the register need not be read. */
	sample->value.count = perf_local_updated(c->event);
	pmuk_hw_times(c, &sample->value);
	pmuk_publish(c, &sample->value);
	if (begun)
		pmuk_adapt_begun(c, sample);
	else
		pmuk_set_next_period(c, sample->value.time_running);
	return true;
}

/*
 * perf core passes one @data to all events on this CPU that count a software event. Events before
 * this one may have left their own fields there: another clock's time, or a callchain of another
 * depth. So begin with what perf core knows of the software event, as it does for tracepoints. That
 * holds for the events after this one, too.
 */
static void pmuk_forget_others(const struct pmuk_counter *c, struct perf_sample_data *data)
{
	u64 addr = data->sample_flags & PERF_SAMPLE_ADDR ? data->addr : 0;

	if (c->attr.type == PERF_TYPE_SOFTWARE)
		perf_sample_data_init(data, addr, data->period);
}

static void pmuk_report(struct pmuk_counter *c, struct perf_event *event,
			struct perf_sample_data *data, struct pt_regs *regs)
{
	struct pmuk_sample sample = { .period = data->period, .task = current };

	/* Each inherited event has a part of the count, and @event may be any of them. */
	if (!(c->attr.flags & PMUK_INHERIT)) {
		if (!pmuk_end_period(c, &sample))
			return;
		sample.valid = c->attr.sample_type & PERF_SAMPLE_READ;
	}
	if (!c->attr.overflow && !c->handler)
		return;

	pmuk_forget_others(c, data);
	pmuk_fill_sample(c, event, &sample, data, regs);
	if (c->handler)
		c->handler(c, &sample, data);
	if (c->attr.overflow)
		c->attr.overflow(c, &sample, c->attr.data);
}

/*
 * Makes the sample of an overflow that is handled late. Count and time are those of this call, and
 * the period is that of the overflow. Nobody knows any more where the overflow happened. A CPU's
 * counter does not know which task ran there, either.
 */
void pmuk_counter_late_sample(struct pmuk_counter *c, struct pmuk_sample *sample)
{
	u64 wanted = c->attr.sample_type & (PERF_SAMPLE_READ | PERF_SAMPLE_TIME);

	pmuk_forget_period(c);	/* the length of the period is unknown */
	*sample = (struct pmuk_sample){
		.valid	= wanted | PERF_SAMPLE_PERIOD,
		.period	= perf_local_last_period(c->event),
		.time	= wanted & PERF_SAMPLE_TIME ? local_clock() : 0,
		.task	= perf_local_task(c->event),
	};
	pmuk_counter_snapshot(c, &sample->value);
}

/*
 * perf core calls this function at an overflow, or rider.c in a module. Older kernels handle
 * software events with interrupts on. Turn interrupts off, so that a disable, which interrupts this
 * CPU, waits for the end of the callback. If the disable came right before this, the event is off
 * its PMU.
 */
void pmuk_overflow(struct perf_event *event, struct perf_sample_data *data, struct pt_regs *regs)
{
	struct pmuk_counter *c = event->overflow_handler_context;
	struct pmu *outer;

	guard(irqsave)();
	if (pmuk_state_is_frozen(READ_ONCE(c->state)))
		perf_local_unmark(event);	/* the driver has loaded the register */
	if (READ_ONCE(c->quiet) || perf_local_is_off(event) || pmuk_counter_is_moved(c))
		return;

	outer = perf_local_serve(c->host ? c->hw_event : event);
	if ((c->attr.flags & PMUK_NO_THROTTLE) && !pmuk_hw_never_throttle(c, event) &&
	    event == c->event)
		irq_work_queue(&c->settle);	/* perf core's next tick starts inherited ones */
	if (perf_local_is_throttled(event))
		pmuk_state_close(&c->state);
	if (!pmuk_state_is_frozen(READ_ONCE(c->state)))
		pmuk_report(c, event, data, regs);
	perf_local_served(outer);
}
