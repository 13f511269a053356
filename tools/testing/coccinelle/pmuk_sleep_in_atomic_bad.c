// SPDX-License-Identifier: GPL-2.0
/* Read by spatch, never compiled: what pmuk_sleep_in_atomic.cocci must report. */
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/irq_work.h>
#include <linux/pmu_kapi.h>
#include <linux/spinlock.h>

static int under_a_spinlock(struct probe *probe)
{
	int ret;

	spin_lock(&probe->lock);
	ret = pmuk_counter_enable(probe->counter); /* report: must not after line 13 */
	spin_unlock(&probe->lock);
	return ret;
}

static void on_an_error_path(struct probe *probe)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&probe->raw_lock, flags);
	if (probe->dead) {
		pmuk_buffer_destroy(probe->buffer); /* report: must not after line 23 */
		probe->buffer = NULL;
	}
	raw_spin_unlock_irqrestore(&probe->raw_lock, flags);
}

static u64 bound_to_a_cpu(struct probe *probe)
{
	struct pmuk_value value = {};

	preempt_disable();
	pmuk_counter_read(probe->counter, &value); /* report: must not after line 35 */
	preempt_enable();
	return value.count;
}

static int without_interrupts(struct pmuk_context *ctx, struct pmuk_msg *msg)
{
	unsigned long flags;
	int ret;

	local_irq_save(flags);
	ret = pmuk_read(ctx, msg, false); /* report: must not after line 46 */
	local_irq_restore(flags);
	return ret;
}

static int in_a_read_side_section(int id)
{
	struct probe *probe;
	int ret = -ENOENT;

	rcu_read_lock();
	probe = probe_find(id);
	if (probe)
		ret = pmuk_start(probe->ctx, NULL); /* report: must not after line 57 */
	rcu_read_unlock();
	return ret;
}

static int in_the_scope_of_a_guard(struct probe *probe)
{
	guard(spinlock_irqsave)(&probe->lock);
	if (!probe->ctx)
		return -ENODEV;
	return pmuk_stop(probe->ctx); /* report: must not after line 67 */
}

static void in_a_guarded_block(struct probe *probe)
{
	scoped_guard(rcu) {
		if (rcu_access_pointer(probe->next))
			pmuk_counter_disable(probe->counter); /* report: must not after line 75 */
	}
	scoped_guard(raw_spinlock, &probe->raw_lock)
		pmuk_close(probe->ctx); /* report: must not after line 79 */
}

static void overflow(struct pmuk_counter *c, const struct pmuk_sample *sample, void *data)
{
	struct probe *probe = data;

	if (!--probe->left)
		pmuk_counter_disable(c); /* report: overflow() may not: see line 133 */
}

static void enough(struct pmuk_counter *c, const struct pmuk_sample *sample, void *data)
{
	pmuk_counter_destroy(c); /* report: enough() may not: see line 137 */
}

static enum hrtimer_restart tick(struct hrtimer *timer)
{
	struct probe *probe = container_of(timer, struct probe, timer);

	pmuk_switch_evtset(probe->ctx, probe->next_set); /* report: tick() may not: see line 138 */
	return HRTIMER_RESTART;
}

static void later(struct irq_work *work)
{
	struct probe *probe = container_of(work, struct probe, work);

	pmuk_restart(probe->ctx); /* report: later() may not: see line 139 */
}

static irqreturn_t interrupt(int irq, void *data)
{
	struct probe *probe = data;
	struct pmuk_value value;

	if (pmuk_counter_read(probe->counter, &value)) /* report: see line 140 */
		return IRQ_NONE;
	return IRQ_WAKE_THREAD;
}

static void expired(struct timer_list *timer)
{
	pmuk_unload_context(whole_machine); /* report: expired() may not: see line 126 */
}

static DEFINE_TIMER(timer, expired);

static int probe_init(struct probe *probe)
{
	const struct pmuk_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.period = 1000000,
		.overflow = overflow,
	};
	struct pmuk_attr last = attr;

	last.overflow = enough;
	hrtimer_setup(&probe->timer, tick, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	init_irq_work(&probe->work, later);
	return devm_request_irq(probe->dev, probe->irq, interrupt, 0, "probe", probe);
}

static u32 handle(const struct pmuk_format_event *event)
{
	return pmuk_restart(whole_machine); /* report: handle() may not: see line 150 */
}

static struct pmuk_format format = {
	.name = "probe",
	.handler = handle,
};

static void on_a_cpu(void *data)
{
	pmuk_counter_enable(data); /* report: on_a_cpu() may not: see line 168 */
}

static void at_an_overflow(struct pmuk_counter *c, const struct pmuk_sample *sample, void *data)
{
	pmuk_counter_disable(c); /* report: at_an_overflow() may not: see line 169 */
}

static struct pmuk_counter *spread(struct probe *probe)
{
	local_bh_disable();
	pmuk_counter_read(probe->counter, &probe->value); /* report: must not after line 165 */
	local_bh_enable();
	on_each_cpu(on_a_cpu, probe->counter, 1);
	return probe_counter(&(struct pmuk_attr) { .period = 1000, .overflow = at_an_overflow });
}
