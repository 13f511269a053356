// SPDX-License-Identifier: GPL-2.0
/* Counters that share a register, in every context, and in the middle of each other. */
#define NEST_SHARED	1
#define pmuk_counter_nest_cases	pmuk_share_nest_cases

#include "pmuk_counter_nest_kunit.c"

PMUK_SUITE(pmuk_share_nest, pmuk_test_init, "Tests of pmuk: shared registers, nested");
