// SPDX-License-Identifier: GPL-2.0
/* Read by spatch, never compiled: what pmuk_unchecked.cocci must not report. */
#include <linux/pmu_kapi.h>

static int plainly(const struct pmuk_attr *attr, int cpu)
{
	struct pmuk_counter *c __free(pmuk_counter) = pmuk_counter_create(attr, cpu, NULL);

	if (IS_ERR(c))
		return PTR_ERR(c);
	return pmuk_counter_enable(c);
}

static int in_one_expression(struct probe *probe, const struct pmuk_attr *attr)
{
	struct pmuk_counter *c = pmuk_counter_create(attr, probe->cpu, NULL);
	int ret = IS_ERR(c) ? PTR_ERR(c) : pmuk_counter_enable(c);

	if (!ret)
		probe->counter = c;
	else
		pmuk_counter_destroy(c);
	return ret;
}

static int in_a_chain(struct probe *probe, const struct pmuk_context_attr *attr)
{
	probe->ctx = pmuk_create_context(attr);
	return PTR_ERR_OR_ZERO(probe->ctx) ?: pmuk_load_context(probe->ctx, NULL) ?:
	       pmuk_start(probe->ctx, NULL);
}

static int with_a_goto(struct probe *probe, const struct pmuk_buffer_attr *attr)
{
	int ret;

	probe->buffer = pmuk_buffer_create(attr, probe->cpu);
	ret = PTR_ERR_OR_ZERO(probe->buffer);
	if (ret)
		goto out;
	pmuk_buffer_pause(probe->buffer);
out:
	return ret;
}

static int null_as_well(struct probe *probe, const struct pmuk_attr *attr)
{
	if (probe->wanted)
		probe->counter = pmuk_counter_create(attr, probe->cpu, NULL);
	if (IS_ERR_OR_NULL(probe->counter))
		return -ENODEV;
	return pmuk_counter_enable(probe->counter);
}

static int null_and_error(struct probe *probe, const struct pmuk_attr *attr)
{
	probe->counter = pmuk_counter_create(attr, probe->cpu, NULL);
	if (!probe->counter || IS_ERR(probe->counter))
		return -ENODEV;
	return pmuk_counter_enable(probe->counter);
}

static void destroying_an_error_is_fine(const struct pmuk_attr *attr)
{
	struct pmuk_counter *c = pmuk_counter_create(attr, 0, NULL);

	pmuk_counter_destroy(c);
}

static struct pmuk_counter *the_caller_checks(const struct pmuk_attr *attr, int cpu)
{
	struct pmuk_counter *c = pmuk_counter_create(attr, cpu, NULL);

	return c;
}
