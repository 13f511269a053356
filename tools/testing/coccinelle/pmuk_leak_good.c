// SPDX-License-Identifier: GPL-2.0
/* Read by spatch, never compiled: what pmuk_leak.cocci must not report. */
#include <linux/pmu_kapi.h>
#include <linux/slab.h>

static struct pmuk_counter *whole_machine;
static DEFINE_PER_CPU(struct pmuk_counter *, counters);

static int labels_in_order(struct probe *probe, int cpu)
{
	const struct pmuk_buffer_attr battr = { .nr_pages = 8 };
	struct pmuk_attr attr = { .period = 1000000 };
	struct pmuk_buffer *b;
	struct pmuk_counter *c;
	int ret;

	b = pmuk_buffer_create(&battr, cpu);
	if (IS_ERR(b))
		return PTR_ERR(b);
	attr.buffer = b;
	c = pmuk_counter_create(&attr, cpu, NULL);
	if (IS_ERR(c)) {
		ret = PTR_ERR(c);
		goto destroy_buffer;
	}
	ret = pmuk_counter_enable(c);
	if (ret)
		goto destroy_counter;
	probe->buffer = b;
	probe->counter = c;
	return 0;

destroy_counter:
	pmuk_counter_destroy(c);
destroy_buffer:
	pmuk_buffer_destroy(b);
	return ret;
}

static int freed_by_its_scope(int cpu, struct pmuk_value *value)
{
	const struct pmuk_attr attr = { .type = PERF_TYPE_HARDWARE };
	struct pmuk_counter *c __free(pmuk_counter) = pmuk_counter_create(&attr, cpu, NULL);
	int ret;

	if (IS_ERR(c))
		return PTR_ERR(c);
	ret = pmuk_counter_enable(c);
	if (ret)
		return ret;
	return pmuk_counter_read(c, value);
}

static struct pmuk_counter *the_caller_has_it(int cpu)
{
	const struct pmuk_attr attr = { .type = PERF_TYPE_HARDWARE };
	struct pmuk_counter *c = pmuk_counter_create(&attr, cpu, NULL);
	int ret;

	if (IS_ERR(c))
		return c;
	ret = pmuk_counter_enable(c);
	if (ret) {
		pmuk_counter_destroy(c);
		return ERR_PTR(ret);
	}
	return c;
}

static int a_structure_has_it(struct probe *probe, const struct pmuk_context_attr *attr)
{
	struct pmuk_context *ctx = pmuk_create_context(attr);

	if (IS_ERR(ctx))
		return PTR_ERR(ctx);
	probe->ctx = ctx;
	return pmuk_load_context(ctx, NULL);
}

static int ended_from_anywhere(const struct pmuk_context_attr *attr, struct completion *done)
{
	struct pmuk_context *ctx = pmuk_create_context(attr);
	int ret;

	if (IS_ERR(ctx))
		return PTR_ERR(ctx);
	ret = pmuk_load_context(ctx, NULL) ?: pmuk_start(ctx, NULL);
	pmuk_close_deferred(ctx, done);
	return ret;
}

static int a_variable_of_the_module_has_it(const struct pmuk_attr *attr)
{
	int cpu;

	whole_machine = pmuk_counter_create(attr, 0, NULL);
	if (IS_ERR(whole_machine))
		return PTR_ERR(whole_machine);
	for_each_online_cpu(cpu) {
		struct pmuk_counter *c = pmuk_counter_create(attr, cpu, NULL);

		if (IS_ERR(c))
			return PTR_ERR(c);
		per_cpu(counters, cpu) = c;
	}
	return pmuk_counter_enable(whole_machine);
}

static int somebody_else_has_it(struct probe *probe, const struct pmuk_attr *attr)
{
	struct pmuk_counter *c = pmuk_counter_create(attr, 0, NULL);

	if (IS_ERR(c))
		return PTR_ERR(c);
	return probe_adopt(probe, c);
}

static int only_if_it_was_wanted(const struct pmuk_attr *attr, bool wanted)
{
	struct pmuk_counter *c = NULL;
	int ret = 0;

	if (wanted) {
		c = pmuk_counter_create(attr, 0, NULL);
		if (IS_ERR(c))
			return PTR_ERR(c);
		ret = pmuk_counter_enable(c);
	}
	if (c)
		pmuk_counter_destroy(c);
	return ret;
}

static struct probe *all_of_the_structure(const struct pmuk_attr *attr, int cpu)
{
	struct probe *probe = kzalloc_obj(*probe);
	int ret;

	if (!probe)
		return ERR_PTR(-ENOMEM);
	probe->counter = pmuk_counter_create(attr, cpu, NULL);
	if (IS_ERR(probe->counter)) {
		ret = PTR_ERR(probe->counter);
		goto free;
	}
	ret = pmuk_counter_enable(probe->counter);
	if (ret)
		goto destroy;
	return probe;

destroy:
	pmuk_counter_destroy(probe->counter);
free:
	kfree(probe);
	return ERR_PTR(ret);
}

static int read_and_released(struct pmuk_buffer *b)
{
	const struct perf_event_header *rec;
	struct pmuk_reader r;
	int ret = pmuk_buffer_claim(b, &r);

	if (ret)
		return ret;
	pmuk_for_each_record(rec, &r) {
		if (rec->type == PERF_RECORD_LOST) {
			ret = -EIO;
			break;
		}
	}
	pmuk_buffer_release(&r);
	return ret;
}

static int handed_over_under_a_lock(struct probe *probe, const struct pmuk_attr *attr)
{
	struct pmuk_counter *c = pmuk_counter_create(attr, probe->cpu, NULL);

	if (IS_ERR(c))
		return PTR_ERR(c);
	scoped_guard(mutex, &probe->mutex) {
		pmuk_counter_enable(c);
		probe->counter = c;
	}
	return 0;
}

static int kept_for_good(const struct pmuk_attr *attr)
{
	static struct pmuk_counter *c;

	c = pmuk_counter_create(attr, 0, NULL);
	if (IS_ERR(c))
		return PTR_ERR(c);
	return pmuk_counter_enable(c);
}

static int stored_before_the_check(struct probe *probe, const struct pmuk_attr *attr)
{
	struct pmuk_counter *c = pmuk_counter_create(attr, 0, NULL);

	probe->counter = c;
	if (IS_ERR(c))
		return PTR_ERR(c);
	return pmuk_counter_enable(c);
}

static int stored_by_and_by(struct probe *probe, const struct pmuk_attr *attr)
{
	struct pmuk_counter *c = pmuk_counter_create(attr, 0, NULL);
	int ret = PTR_ERR_OR_ZERO(c);

	if (ret)
		return ret;
	pmuk_counter_enable(c);
	scoped_guard(mutex, &probe->mutex) {
		probe->counter = c;
	}
	return 0;
}

static int moved(struct probe *probe, const struct pmuk_attr *attr)
{
	probe->counter = pmuk_counter_create(attr, 0, NULL);
	if (IS_ERR(probe->counter))
		return PTR_ERR(probe->counter);
	whole_machine = probe->counter;
	kfree(probe);
	return 0;
}

static int only_when_claimed(struct pmuk_buffer *b)
{
	const struct perf_event_header *rec;
	struct pmuk_reader r;

	if (!pmuk_buffer_claim(b, &r)) {
		pmuk_for_each_record(rec, &r)
			pr_info("%u\n", rec->type);
		pmuk_buffer_release(&r);
	}
	return 0;
}

static int stored_before_all_else(struct probe *probe, const struct pmuk_attr *attr)
{
	struct pmuk_counter *c = pmuk_counter_create(attr, 0, NULL);
	int ret = PTR_ERR_OR_ZERO(c);

	if (ret)
		return ret;
	probe->counter = c;
	return pmuk_counter_enable(c);
}
