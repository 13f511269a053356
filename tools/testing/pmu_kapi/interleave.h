/* SPDX-License-Identifier: GPL-2.0 */
/* The programs that try all interleavings share this: state that is set back, and two machines. */
#ifndef _PMUK_TEST_INTERLEAVE_H
#define _PMUK_TEST_INTERLEAVE_H

#include "machine.h"
#include "test.h"

/* Memory that is saved and set back; to be said once for each part of it. */
void keep_memory(void *start, size_t size);
/* Positions of a ring, and of an area, on its control page. */
void keep_page(struct perf_event_mmap_page *page);

/* @inner interrupts @outer, or runs at the same time on another CPU. */
extern struct machine outer, inner;

/*
 * Each program defines step(), which runs one instruction of @m and then checks the program's
 * invariants. Returns false if that instruction was the last one.
 */
bool step(struct machine *m);

/*
 * Runs @m to its end in single steps, and calls @visit before each step. @visit may run both
 * machines to their ends, and may call at_each_step(): what it changes is restored. The first
 * failure of a test ends the run.
 */
void at_each_step(struct machine *m, void (*visit)(void *arg), void *arg);

/* Calls @visit once, and restores what it changes. */
void at_this_step(void (*visit)(void *arg), void *arg);

/* Does the same from the beginning of @function. */
void explore_calls(struct machine *m, void (*function)(void *), void *function_arg,
		   void (*visit)(void *arg), void *arg);

extern u64 explored;		/* interleavings */

/* A row of a program's tests. */
#define TEST(name)	{ #name, test_##name }

/* Does what main() has to: prints KTAP, then how many interleavings there were. */
int run_explorer(const struct test *tests, size_t nr, int argc, char **argv);

#endif /* _PMUK_TEST_INTERLEAVE_H */
