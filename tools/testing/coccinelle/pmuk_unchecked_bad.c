// SPDX-License-Identifier: GPL-2.0
/* Read by spatch, never compiled: what pmuk_unchecked.cocci must report. */
#include <linux/pmu_kapi.h>

static int taken_for_null(const struct pmuk_attr *attr, int cpu)
{
	struct pmuk_counter *c = pmuk_counter_create(attr, cpu, NULL);

	if (!c) /* report: on line 7 is never NULL */
		return -ENOMEM;
	return pmuk_counter_enable(c); /* report: on line 7 used without IS_ERR() */
}

static int enabled_at_once(struct probe *probe, const struct pmuk_attr *attr)
{
	probe->counter = pmuk_counter_create(attr, probe->cpu, NULL);
	return pmuk_counter_enable(probe->counter); /* report: used without IS_ERR() */
}

static int checked_too_late(const struct pmuk_attr *attr, int cpu)
{
	struct pmuk_counter *c __free(pmuk_counter) = pmuk_counter_create(attr, cpu, NULL);
	struct pmuk_value value;

	pmuk_counter_read(c, &value); /* report: used without IS_ERR() */
	if (IS_ERR(c))
		return PTR_ERR(c);
	return 0;
}

static int compared_with_null(struct probe *probe, const struct pmuk_buffer_attr *attr)
{
	probe->buffer = pmuk_buffer_create(attr, probe->cpu);
	if (WARN_ON(!probe->buffer)) { /* report: pmuk_buffer_create() on line 33 is never NULL */
		pr_err("no buffer\n");
		goto out;
	}
	return 0;
out:
	return -ENOMEM;
}

static int started_if_there(const struct pmuk_context_attr *attr)
{
	struct pmuk_context *ctx;

	ctx = pmuk_create_context(attr);
	if (ctx) /* report: pmuk_create_context() on line 47 is never NULL */
		return pmuk_start(ctx, NULL); /* report: pmuk_create_context() on line 47 used */
	return -ENOMEM;
}

static int the_other_one(const struct pmuk_attr *attr, struct probe *probe)
{
	struct pmuk_counter *a = pmuk_counter_create(attr, 0, NULL);
	struct pmuk_counter *b = pmuk_counter_create(attr, 1, NULL);

	if (IS_ERR(a))
		return PTR_ERR(a);
	probe->a = a;
	probe->b = b;
	return pmuk_counter_enable(b); /* report: on line 56 used without IS_ERR() */
}

static int under_a_guard(struct probe *probe, const struct pmuk_attr *attr)
{
	scoped_guard(mutex, &probe->mutex) {
		probe->counter = pmuk_counter_create(attr, 0, NULL);
		return pmuk_counter_enable(probe->counter); /* report: used without IS_ERR() */
	}
	return 0;
}

static int used_and_compared(const struct pmuk_attr *attr, u64 *count)
{
	struct pmuk_counter *c = pmuk_counter_create(attr, 0, NULL);

	pmuk_counter_read_local(c, count); /* report: on line 76 used without IS_ERR() */
	return c ? 0 : -ENOMEM; /* report: on line 76 is never NULL */
}
