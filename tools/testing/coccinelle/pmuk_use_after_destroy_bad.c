// SPDX-License-Identifier: GPL-2.0
/* Read by spatch, never compiled: what pmuk_use_after_destroy.cocci must report. */
#include <linux/pmu_kapi.h>

static u64 read_too_late(struct pmuk_counter *c)
{
	struct pmuk_value value = {};

	pmuk_counter_disable(c);
	pmuk_counter_destroy(c);
	pmuk_counter_read(c, &value); /* report: used after pmuk_counter_destroy() on line 10 */
	return value.count;
}

static int destroyed_twice(struct probe *probe)
{
	int ret = pmuk_counter_enable(probe->counter);

	if (ret)
		goto destroy;
	pmuk_counter_destroy(probe->counter);
	ret = probe_finish(probe);

destroy:
	pmuk_counter_destroy(probe->counter); /* report: pmuk_counter_destroy() on line 21 */
	return ret;
}

static void account_too_late(struct probe *probe)
{
	struct pmuk_buffer_stat stat;

	pmuk_counter_destroy(probe->counter);
	pmuk_buffer_destroy(probe->buffer);
	if (!pmuk_buffer_get_stat(probe->buffer, &stat)) /* report: destroy() on line 34 */
		pr_info("%llu records lost\n", stat.lost);
}

static void again_from_the_callback(struct pmuk_counter *c, const struct pmuk_sample *sample,
				    void *data)
{
	pmuk_counter_destroy_deferred(c, data);
	pmuk_counter_set_period(c, 1000); /* report: pmuk_counter_destroy_deferred() on line 42 */
}

static int deferred_and_stopped(struct pmuk_context *ctx, struct completion *done)
{
	if (pmuk_close_deferred(ctx, done))
		return -EBUSY;
	wait_for_completion(done);
	return pmuk_stop(ctx); /* report: used after pmuk_close_deferred() on line 48 */
}

static int stopped_too_late(struct probe *probe)
{
	pmuk_close(probe->ctx);
	probe->cpu = -1;
	return pmuk_stop(probe->ctx); /* report: used after pmuk_close() on line 56 */
}

static struct pmuk_counter *returned(struct pmuk_counter *c)
{
	if (pmuk_counter_enable(c))
		pmuk_counter_destroy(c);
	return c; /* report: used after pmuk_counter_destroy() on line 64 */
}

static int under_a_guard(struct probe *probe)
{
	pmuk_counter_destroy(probe->counter);
	scoped_guard(mutex, &probe->mutex)
		return pmuk_counter_enable(probe->counter); /* report: destroy() on line 70 */
	return 0;
}
