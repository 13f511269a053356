// SPDX-License-Identifier: GPL-2.0
/* Runs the rules of an AUX area that KUnit runs, too, and tests a kill and new data of the ring. */
#include "../../../lib/tests/pmuk_aux_rules.h"

/* Resets the ring as when user space has unmapped its data: the data are empty again. */
static void swap_ring(struct aux_rig *rig, const struct aux_step *s)
{
	pmuk_ring_hold(rig->ring);
	RULE_EXPECT(rig, aux_put(rig, 8, 0));
	pmuk_area_swap(&rig->b->area);
	pmuk_ring_reset(rig->ring, rig->b->config.data, rig->b->config.size, 0);
}

/* Records were lost with the ring's data: bytes that no reader has consumed are reported again. */
static const struct aux_step aux_swapped[] = {
	{ put, 100 }, { swap_ring }, { no_record },
	{ put, 8 }, { record, 0, 116, PARTIAL }, { put, 8 }, { record, 116, 8 },
	{ get, 30 }, { swap_ring }, { put, 8 }, { record, 30, 110, PARTIAL },
	/* consumed bytes are reported only if no record has reported them yet */
	{ get, ALL }, { swap_ring }, { get, ALL },
	{ put, 8 }, { record, 140, 16 }, { put, 8 }, { record, 156, 8 },
};

/* A reader of records would wait for the lost record for ever, and the writer for the reader. */
static const struct aux_step aux_swapped_full[] = {
	{ put, AREA - 8, .wakes = 1 }, { record, 0, AREA - 8 }, { swap_ring, .wakes = 1 },
	{ put, 1, .full = 1, .wakes = 1 }, { record, 0, AREA, PARTIAL },
	{ put, 1, .full = 1 }, { no_record }, { get, ALL }, { put, 8 }, { record, AREA, 8 },
};

static void aux_kill(struct aux_rig *rig)
{
	RULE_EXPECT(rig, aux_put(rig, 10, 0));
	RULE_EXPECT(rig, !pmuk_area_kill(&rig->b->area));
	RULE_EXPECT(rig, !aux_put(rig, 10, 0));
	pmuk_area_pause(&rig->b->area);
	RULE_EQ(rig, pmuk_area_resume(&rig->b->area), 0);
	RULE_EXPECT(rig, !aux_put(rig, 10, 0));
	RULE_EQ(rig, aux_stat(rig).discarded, 2);
	aux_get(rig, ALL, 0);		/* a killed area can still be read */
	RULE_EQ(rig, rig->b->gone, 0);
	aux_check(rig);
}

/* The writer of a killed area runs to its end, wakes no reader, and calls gone() once. */
static void aux_kill_open(struct aux_rig *rig)
{
	RULE_EXPECT(rig, aux_begin(rig));
	RULE_EXPECT(rig, pmuk_area_kill(&rig->b->area));
	begin_inside(rig, NULL);
	RULE_EQ(rig, rig->b->gone, 0);
	aux_skip(rig, AREA / 2, 0);
	aux_end(rig, AREA / 2);
	RULE_EQ(rig, rig->b->gone, 1);
	RULE_EQ(rig, rig->b->wakes, 0);
	pmuk_aux_output_end(&rig->handle, 100);
	RULE_EXPECT(rig, !aux_put(rig, 10, 0));
	RULE_EQ(rig, rig->b->gone, 1);
	RULE_EQ(rig, aux_stat(rig).nested, 1);
	RULE_EQ(rig, aux_stat(rig).discarded, 1);
	record(rig, &(struct aux_step){ record, AREA / 2, AREA / 2 });
}

static const struct aux_rule own_rules[] = {
	AUX_STEPS("ring_swapped", swapped, 1, 1),
	AUX_STEPS("ring_swapped_full", swapped_full, 1, 1, .watermark = AREA / 2),
	AUX_RUN("kill", kill, 0),
	AUX_RUN("kill_open", kill_open, 0),
};

static void run(void)
{
	aux_run(NULL, running_test->rule);
}

static struct test test_of(const struct aux_rule *rule)
{
	return (struct test){ rule->name, run, rule };
}

int main(int argc, char **argv)
{
	struct test tests[ARRAY_SIZE(aux_rules) + ARRAY_SIZE(own_rules)];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(aux_rules); i++)
		tests[i] = test_of(&aux_rules[i]);
	for (i = 0; i < ARRAY_SIZE(own_rules); i++)
		tests[ARRAY_SIZE(aux_rules) + i] = test_of(&own_rules[i]);
	return run_tests(tests, ARRAY_SIZE(tests), argc, argv);
}
