/* SPDX-License-Identifier: GPL-2.0 */
/* A function call that can be run instruction by instruction, and be set back. x86_64. */
#ifndef _PMUK_TEST_MACHINE_H
#define _PMUK_TEST_MACHINE_H

#include <linux/types.h>

#define MACHINE_STACK	8192	/* bytes */
#define MACHINE_REGS	18	/* general ones, with the instruction pointer and the flags */

struct machine {
	long long regs[MACHINE_REGS];
	bool done;
	u8 *stack;
};

struct machine_image {
	long long regs[MACHINE_REGS];
	bool done;
	u8 stack[MACHINE_STACK];
};

/* False: not on this kind of host. */
bool machine_setup(void);

/* Calls @function with @arg, as far as before its first instruction. */
void machine_start(struct machine *m, void (*function)(void *), void *arg);
bool machine_step(struct machine *m);	/* one instruction; false: that was the last one */
void machine_finish(struct machine *m);	/* the rest, at full speed */

void machine_save(const struct machine *m, struct machine_image *image);
void machine_load(struct machine *m, const struct machine_image *image);

/* In machine.c's assembly: goes on with these registers, until the end or a trap. */
void machine_enter(const long long *regs);
extern const u8 machine_end[];	/* what a machine's function returns to */

#endif /* _PMUK_TEST_MACHINE_H */
