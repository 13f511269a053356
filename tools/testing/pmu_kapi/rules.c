// SPDX-License-Identifier: GPL-2.0
/* Runs the rules of a ring that KUnit runs in the kernel, and tests a kill. */
#include "../../../lib/tests/pmuk_ring_rules.h"

/* A killed ring can be read, and takes no record any more. */
static void ring_kill(struct ring_rig *rig)
{
	RULE_EXPECT(rig, ring_put(rig, 64));
	pmuk_ring_kill(rig->ring);
	RULE_EXPECT(rig, !ring_put(rig, 64));
	pmuk_buffer_pause(rig->b);
	RULE_EQ(rig, pmuk_buffer_resume(rig->b), 0);
	pmuk_buffer_restart(rig->b);
	RULE_EXPECT(rig, !ring_put(rig, 64));
	RULE_EQ(rig, ring_stat(rig).discarded, 2);
	RULE_EQ(rig, ring_get(rig, ALL), 1);
}

static const struct ring_rule kill_rule = RING_RUN("kill", kill, DROP, .nr_pages = 1);

static void run(void)
{
	ring_run(NULL, running_test->rule);
}

int main(int argc, char **argv)
{
	struct test tests[ARRAY_SIZE(ring_rules) + 1] = { { "kill", run, &kill_rule } };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(ring_rules); i++)
		tests[i + 1] = (struct test){ ring_rules[i].name, run, &ring_rules[i] };
	return run_tests(tests, ARRAY_SIZE(tests), argc, argv);
}
