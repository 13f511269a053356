// SPDX-License-Identifier: GPL-2.0
/* Read by spatch, never compiled: what pmuk_sleep_in_atomic.cocci must not report. */
#include <linux/interrupt.h>
#include <linux/mutex.h>
#include <linux/pmu_kapi.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

static void unlocked_before(struct probe *probe)
{
	struct pmuk_counter *c;

	spin_lock(&probe->lock);
	c = probe->counter;
	probe->counter = NULL;
	spin_unlock(&probe->lock);
	pmuk_counter_destroy(c);
}

static int unlocked_on_each_path(struct probe *probe)
{
	unsigned long flags;

	spin_lock_irqsave(&probe->lock, flags);
	if (!probe->counter) {
		spin_unlock_irqrestore(&probe->lock, flags);
		return pmuk_start(probe->ctx, NULL);
	}
	pmuk_counter_pause(probe->counter);
	spin_unlock_irqrestore(&probe->lock, flags);
	return pmuk_counter_enable(probe->counter);
}

static int under_a_mutex(struct probe *probe)
{
	guard(mutex)(&probe->mutex);
	scoped_guard(preempt)
		pmuk_counter_resume(probe->counter);
	return pmuk_counter_enable(probe->counter);
}

static u64 what_may_be_called_anywhere(struct probe *probe)
{
	u64 count = 0;

	preempt_disable();
	pmuk_counter_read_local(probe->counter, &count);
	pmuk_counter_set_period(probe->counter, count);
	pmuk_counter_destroy_deferred(probe->counter, &probe->done);
	preempt_enable();
	return count;
}

static int not_waiting(struct pmuk_context *ctx, struct pmuk_msg *msg)
{
	guard(rcu)();
	return pmuk_read(ctx, msg, true);
}

static int after_the_block_of_a_guard(struct probe *probe)
{
	u64 count = 0;

	if (probe->local) {
		guard(preempt)();
		pmuk_counter_read_local(probe->counter, &count);
	}
	return pmuk_counter_disable(probe->counter);
}

static void overflow(struct pmuk_counter *c, const struct pmuk_sample *sample, void *data)
{
	struct probe *probe = data;

	pmuk_counter_set_period(c, sample->period * 2);
	if (!--probe->left)
		pmuk_counter_pause(c);
}

static void work(struct work_struct *work)
{
	struct probe *probe = container_of(work, struct probe, work);

	pmuk_counter_disable(probe->counter);
}

static irqreturn_t interrupt(int irq, void *data)
{
	return IRQ_WAKE_THREAD;
}

static irqreturn_t thread(int irq, void *data)
{
	struct probe *probe = data;

	pmuk_restart(probe->ctx);
	return IRQ_HANDLED;
}

static int probe_init(struct probe *probe)
{
	const struct pmuk_attr attr = { .period = 1000000, .overflow = overflow };

	INIT_WORK(&probe->work, work);
	probe->counter = pmuk_counter_create(&attr, probe->cpu, NULL);
	return PTR_ERR_OR_ZERO(probe->counter) ?:
	       request_threaded_irq(probe->irq, interrupt, thread, 0, "probe", probe);
}

static int each_off_and_on(struct probe *probe, struct pmuk_msg *msg)
{
	unsigned long flags;
	u64 count;

	spin_lock(&probe->lock);
	pmuk_read(probe->ctx, msg, true);
	spin_unlock(&probe->lock);
	preempt_disable();
	pmuk_read(probe->ctx, msg, true);
	preempt_enable();
	pmuk_stop(probe->ctx);
	local_irq_save(flags);
	pmuk_read(probe->ctx, msg, true);
	local_irq_restore(flags);
	pmuk_stop(probe->ctx);
	local_bh_disable();
	pmuk_read(probe->ctx, msg, true);
	local_bh_enable();
	pmuk_stop(probe->ctx);
	rcu_read_lock();
	pmuk_read(probe->ctx, msg, true);
	rcu_read_unlock();
	pmuk_stop(probe->ctx);
	scoped_guard(preempt) {
		pmuk_read(probe->ctx, msg, true);
		pmuk_counter_read_local(probe->counter, &count);
	}
	return pmuk_read(probe->ctx, msg, false);
}

static void tick(struct timer_list *timer)
{
	pmuk_read(whole_machine, &last, true);
}

static DEFINE_TIMER(timer, tick);
