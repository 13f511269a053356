/* SPDX-License-Identifier: GPL-2.0 */
/* Machines are function calls that run instruction by instruction, and can be restored (x86_64). */
#ifndef _PMUK_TEST_MACHINE_H
#define _PMUK_TEST_MACHINE_H

#include <linux/types.h>

#define MACHINE_STACK	8192	/* bytes */
#define MACHINE_REGS	18	/* general registers, instruction pointer and flags */

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

/* Returns false if the host cannot run machines. */
bool machine_setup(void);

/* Prepares a call of @function with @arg; no instruction runs yet. */
void machine_start(struct machine *m, void (*function)(void *), void *arg);
u64 machine_at(const struct machine *m);	/* the address of its next instruction */
bool machine_step(struct machine *m);	/* runs an instruction; false: the last one */
void machine_finish(struct machine *m);	/* runs the rest, at full speed */

void machine_save(const struct machine *m, struct machine_image *image);
void machine_load(struct machine *m, const struct machine_image *image);

/* Assembly in machine.c: runs with these registers until the end or a trap. */
void machine_enter(const long long *regs);
extern const u8 machine_end[];	/* the return address of a machine's function */

#endif /* _PMUK_TEST_MACHINE_H */
