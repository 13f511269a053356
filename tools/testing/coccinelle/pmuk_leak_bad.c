// SPDX-License-Identifier: GPL-2.0
/* Read by spatch, never compiled: what pmuk_leak.cocci must report. */
#include <linux/pmu_kapi.h>
#include <linux/slab.h>

static int the_counter_that_could_not_be_enabled(int cpu)
{
	const struct pmuk_attr attr = { .type = PERF_TYPE_HARDWARE };
	struct pmuk_counter *c;
	int ret;

	c = pmuk_counter_create(&attr, cpu, NULL);
	if (IS_ERR(c))
		return PTR_ERR(c);
	ret = pmuk_counter_enable(c);
	if (ret)
		return ret; /* report: pmuk_counter_create() on line 12 is leaked */
	pmuk_counter_destroy(c);
	return 0;
}

static int the_buffer_without_a_counter(struct probe *probe, int cpu)
{
	const struct pmuk_buffer_attr battr = { .nr_pages = 8 };
	struct pmuk_buffer *b = pmuk_buffer_create(&battr, cpu);
	struct pmuk_attr attr = { .period = 1000000 };
	struct pmuk_counter *c;

	if (IS_ERR(b))
		return PTR_ERR(b);
	attr.buffer = b;
	c = pmuk_counter_create(&attr, cpu, NULL);
	if (IS_ERR(c))
		return PTR_ERR(c); /* report: pmuk_buffer_create() on line 25 */
	probe->buffer = b;
	probe->counter = c;
	return 0;
}

static int the_wrong_label(struct probe *probe, int cpu)
{
	const struct pmuk_buffer_attr battr = { .nr_pages = 8 };
	struct pmuk_buffer *b;
	struct pmuk_counter *c;
	int ret;

	b = pmuk_buffer_create(&battr, cpu);
	if (IS_ERR(b))
		return PTR_ERR(b);
	const struct pmuk_attr attr = { .period = 1000000, .buffer = b };

	c = pmuk_counter_create(&attr, cpu, NULL);
	if (IS_ERR(c)) {
		ret = PTR_ERR(c);
		goto destroy_buffer;
	}
	ret = pmuk_counter_enable(c);
	if (ret)
		goto destroy_buffer;
	probe->buffer = b;
	probe->counter = c;
	return 0;

destroy_buffer:
	pmuk_buffer_destroy(b);
	return ret; /* report: pmuk_counter_create() on line 52 */
}

static int the_error_in_one_word(int cpu, struct pmuk_value *value)
{
	const struct pmuk_attr attr = { .type = PERF_TYPE_SOFTWARE };
	struct pmuk_counter *c = pmuk_counter_create(&attr, cpu, NULL);
	int ret = PTR_ERR_OR_ZERO(c);

	if (ret)
		return ret;
	ret = pmuk_counter_read(c, value);
	if (!ret)
		pmuk_counter_destroy(c);
	return ret; /* report: pmuk_counter_create() on line 72 */
}

static void the_end_of_a_function(int cpu)
{
	const struct pmuk_attr attr = { .type = PERF_TYPE_SOFTWARE };
	struct pmuk_counter *c = pmuk_counter_create(&attr, cpu, NULL);

	if (!IS_ERR(c))
		pmuk_counter_enable(c);
} /* report: pmuk_counter_create() on line 86 */

static int the_context_that_was_not_loaded(const struct pmuk_context_attr *attr)
{
	struct pmuk_context *ctx = pmuk_create_context(attr);

	if (IS_ERR(ctx))
		return PTR_ERR(ctx);
	if (pmuk_load_context(ctx, NULL))
		return -EBUSY; /* report: pmuk_create_context() on line 94 */
	return pmuk_start(ctx, NULL); /* report: pmuk_create_context() on line 94 */
}

static struct probe *the_structure_goes_first(const struct pmuk_attr *attr, int cpu)
{
	struct probe *probe = kzalloc_obj(*probe);
	int ret;

	if (!probe)
		return ERR_PTR(-ENOMEM);
	probe->counter = pmuk_counter_create(attr, cpu, NULL);
	if (IS_ERR(probe->counter)) {
		ret = PTR_ERR(probe->counter);
		kfree(probe);
		return ERR_PTR(ret);
	}
	ret = pmuk_counter_enable(probe->counter);
	if (ret) {
		kfree(probe); /* report: pmuk_counter_create() on line 110 */
		return ERR_PTR(ret);
	}
	return probe;
}

static int the_reader_in_a_hurry(struct pmuk_buffer *b)
{
	const struct perf_event_header *rec;
	struct pmuk_reader r;

	if (pmuk_buffer_claim(b, &r))
		return -EBUSY;
	pmuk_for_each_record(rec, &r) {
		if (rec->type == PERF_RECORD_LOST)
			return -EIO; /* report: claimed on line 129 is not released */
	}
	pmuk_buffer_release(&r);
	return 0;
}

static int the_reader_who_has_seen_enough(struct pmuk_buffer *b)
{
	struct pmuk_reader r;
	int ret = -ENOENT;

	if (!pmuk_buffer_claim(b, &r)) {
		while (pmuk_buffer_peek(&r))
			pmuk_buffer_consume(&r);
		ret = 0;
	}
	return ret; /* report: claimed on line 144 is not released */
}

static int beside_a_guard(struct probe *probe, const struct pmuk_attr *attr)
{
	struct pmuk_counter *c = pmuk_counter_create(attr, probe->cpu, NULL);

	if (IS_ERR(c))
		return PTR_ERR(c);
	scoped_guard(mutex, &probe->mutex) {
		if (probe->dead)
			return -EBUSY; /* report: pmuk_counter_create() on line 154 */
	}
	probe->counter = c;
	return 0;
}

static int the_reader_who_peeks(struct pmuk_buffer *b)
{
	struct pmuk_reader r;
	int ret = pmuk_buffer_claim(b, &r);

	if (ret)
		return ret;
	while (pmuk_buffer_peek(&r))
		pmuk_buffer_consume(&r);
	return 0; /* report: claimed on line 169 is not released */
}

static int the_reader_who_walks(struct pmuk_buffer *b)
{
	const struct perf_event_header *rec;
	struct pmuk_reader r;
	int ret = pmuk_buffer_claim(b, &r);

	if (ret)
		return ret;
	pmuk_for_each_record(rec, &r)
		pr_info("%u\n", rec->type);
	return 0; /* report: claimed on line 182 is not released */
}
