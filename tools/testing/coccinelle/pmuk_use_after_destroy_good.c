// SPDX-License-Identifier: GPL-2.0
/* Read by spatch, never compiled: what pmuk_use_after_destroy.cocci must not report. */
#include <linux/pmu_kapi.h>

static DEFINE_PER_CPU(struct pmuk_counter *, counters);

static int another_in_its_place(const struct pmuk_attr *attr, struct probe *probe)
{
	pmuk_counter_destroy(probe->counter);
	probe->counter = pmuk_counter_create(attr, probe->cpu, NULL);
	if (IS_ERR(probe->counter))
		return PTR_ERR(probe->counter);
	return pmuk_counter_enable(probe->counter);
}

static void forgotten(struct probe *probe)
{
	pmuk_buffer_destroy(probe->buffer);
	probe->buffer = NULL;
	pmuk_buffer_pause(probe->buffer);
}

static void each_once(struct probe *probes, unsigned int nr)
{
	unsigned int i;
	int cpu;

	for_each_possible_cpu(cpu) {
		pmuk_counter_disable(per_cpu(counters, cpu));
		pmuk_counter_destroy(per_cpu(counters, cpu));
	}
	for (i = 0; i < nr; i++) {
		pmuk_stop(probes[i].ctx);
		pmuk_close(probes[i].ctx);
	}
}

static void a_list(struct list_head *probes)
{
	struct probe *probe, *next;

	list_for_each_entry_safe(probe, next, probes, node) {
		pmuk_counter_disable(probe->counter);
		pmuk_counter_destroy(probe->counter);
		kfree(probe);
	}
}

static int one_each_time(const struct pmuk_attr *attr, unsigned int times)
{
	struct pmuk_value value;
	int ret = 0;

	while (times-- && !ret) {
		struct pmuk_counter *c = pmuk_counter_create(attr, 0, NULL);

		if (IS_ERR(c))
			return PTR_ERR(c);
		ret = pmuk_counter_enable(c) ?: pmuk_counter_read(c, &value);
		pmuk_counter_destroy(c);
	}
	return ret;
}

static void not_deferred_then_now(struct pmuk_context *ctx, struct completion *done)
{
	if (pmuk_close_deferred(ctx, done))
		pmuk_close(ctx);
	else
		wait_for_completion(done);
}

static int on_the_other_path(struct pmuk_counter *c)
{
	int ret = pmuk_counter_enable(c);

	if (ret) {
		pmuk_counter_destroy(c);
		return ret;
	}
	return pmuk_counter_resume(c);
}

static void printed(struct pmuk_counter *c)
{
	pmuk_counter_destroy(c);
	pr_debug("%p is gone\n", c);
}

static int forgotten_under_a_lock(struct probe *probe)
{
	pmuk_counter_destroy(probe->counter);
	scoped_guard(mutex, &probe->mutex) {
		probe->counter = NULL;
	}
	return pmuk_counter_state(probe->counter);
}

static int filled_by_another(struct pmuk_counter *c, struct completion *done)
{
	pmuk_counter_destroy(c);
	probe_next(&c);
	return pmuk_counter_enable(c);
}

static void printed_when_deferred(struct pmuk_counter *c, struct completion *done)
{
	if (pmuk_counter_destroy_deferred(c, done))
		return;
	pr_debug("%p goes\n", c);
}

static void ended_by_an_assertion(struct kunit *test, struct pmuk_counter *c, int ret)
{
	if (ret)
		pmuk_counter_destroy(c);
	KUNIT_ASSERT_EQ(test, ret, 0);
	pmuk_counter_disable(c);
}

static void ended_by_another(struct kunit *test, struct pmuk_context *ctx, int ret)
{
	if (ret) {
		if (pmuk_close(ctx))
			return;
	}
	KUNIT_ASSERT_EQ(test, ret, 0);
	pmuk_stop(ctx);
}
