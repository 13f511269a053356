// SPDX-License-Identifier: GPL-2.0
/*
 * A machine is a set of registers and a stack. machine_enter() enters it by an iretq, as if from an
 * interrupt. With the trap flag set, one instruction runs, and the signal handler below leaves the
 * machine; otherwise the machine runs to its end. Machines have no floating point registers.
 */
#define _GNU_SOURCE
#include <assert.h>
#include <err.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "machine.h"

#define TRAP_FLAG	0x100

/* The registers that C code sets, numbered as in the assembly below and the signal handler. */
#define RDI		8
#define RSP		15
#define RIP		16
#define EFL		17

#ifdef __x86_64__

static_assert(REG_R8 == 0 && REG_RDI == RDI && REG_RSP == RSP && REG_RIP == RIP && REG_EFL == EFL,
	      "the assembly below uses these numbers");

static struct machine *running;

__asm__(".text\n"
	"machine_enter:\n"
	"	push	%rbx\n"
	"	push	%rbp\n"
	"	push	%r12\n"
	"	push	%r13\n"
	"	push	%r14\n"
	"	push	%r15\n"
	"	mov	%rsp, machine_caller(%rip)\n"
	"	mov	%ss, %eax\n"
	"	push	%rax\n"
	"	push	15*8(%rdi)\n"
	"	push	17*8(%rdi)\n"
	"	mov	%cs, %eax\n"
	"	push	%rax\n"
	"	push	16*8(%rdi)\n"
	"	mov	0*8(%rdi), %r8\n"
	"	mov	1*8(%rdi), %r9\n"
	"	mov	2*8(%rdi), %r10\n"
	"	mov	3*8(%rdi), %r11\n"
	"	mov	4*8(%rdi), %r12\n"
	"	mov	5*8(%rdi), %r13\n"
	"	mov	6*8(%rdi), %r14\n"
	"	mov	7*8(%rdi), %r15\n"
	"	mov	9*8(%rdi), %rsi\n"
	"	mov	10*8(%rdi), %rbp\n"
	"	mov	11*8(%rdi), %rbx\n"
	"	mov	12*8(%rdi), %rdx\n"
	"	mov	13*8(%rdi), %rax\n"
	"	mov	14*8(%rdi), %rcx\n"
	"	mov	8*8(%rdi), %rdi\n"
	"	iretq\n"	/* sets the trap flag for the next instruction */
	"machine_end:\n"
	"	mov	machine_caller(%rip), %rsp\n"
	"	pop	%r15\n"
	"	pop	%r14\n"
	"	pop	%r13\n"
	"	pop	%r12\n"
	"	pop	%rbp\n"
	"	pop	%rbx\n"
	"	ret\n"
	"	.local	machine_caller\n"
	"	.comm	machine_caller, 8, 8\n");

static void handler(int signal, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;

	regs[EFL] &= ~TRAP_FLAG;
	memcpy(running->regs, regs, sizeof(running->regs));
	running->done = regs[RIP] == (greg_t)machine_end;
	regs[RIP] = (greg_t)machine_end;
}

static void run(struct machine *m)
{
	running = m;
	machine_enter(m->regs);
}

bool machine_setup(void)
{
	struct sigaction action = {
		.sa_sigaction = handler,
		.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER,
	};
	stack_t stack = { .ss_size = 1 << 16 };

	stack.ss_sp = malloc(stack.ss_size);
	if (!stack.ss_sp || sigaltstack(&stack, NULL) || sigaction(SIGTRAP, &action, NULL))
		err(2, "machine");
	return true;
}

#else

const u8 machine_end[1];

static void run(struct machine *m)
{
}

bool machine_setup(void)
{
	return false;
}

#endif

void machine_start(struct machine *m, void (*function)(void *), void *arg)
{
	u64 *top;

	if (!m->stack) {
		m->stack = aligned_alloc(64, MACHINE_STACK);
		if (!m->stack)
			err(2, "machine");
	}
	top = (u64 *)(m->stack + MACHINE_STACK) - 3;	/* aligned as after a call */
	*top = (u64)machine_end;
	memset(m->regs, 0, sizeof(m->regs));
	m->regs[RSP] = (u64)top;
	m->regs[RIP] = (u64)function;
	m->regs[RDI] = (u64)arg;
	m->regs[EFL] = 0x202;	/* interrupts are always on in user space */
	m->done = false;
}

u64 machine_at(const struct machine *m)
{
	return m->regs[RIP];
}

bool machine_step(struct machine *m)
{
	m->regs[EFL] |= TRAP_FLAG;
	run(m);
	return !m->done;
}

void machine_finish(struct machine *m)
{
	if (!m->done)
		run(m);
	m->done = true;
}

/* Returns the offset of the used part of the stack, with the red zone below the stack pointer. */
static size_t used(const struct machine *m)
{
	return m->done ? MACHINE_STACK : (u8 *)m->regs[RSP] - 128 - m->stack;
}

void machine_save(const struct machine *m, struct machine_image *image)
{
	size_t from = used(m);

	memcpy(image->regs, m->regs, sizeof(m->regs));
	image->done = m->done;
	memcpy(image->stack + from, m->stack + from, MACHINE_STACK - from);
}

void machine_load(struct machine *m, const struct machine_image *image)
{
	size_t from;

	memcpy(m->regs, image->regs, sizeof(m->regs));
	m->done = image->done;
	from = used(m);
	memcpy(m->stack + from, image->stack + from, MACHINE_STACK - from);
}

/* Stands in for memcpy() of the C library, which may use floating point registers. */
void *machine_memcpy(void *to, const void *from, size_t size)
{
	size_t i, word;

	for (i = 0; i + sizeof(word) <= size; i += sizeof(word)) {
		__builtin_memcpy(&word, from + i, sizeof(word));
		__builtin_memcpy(to + i, &word, sizeof(word));
		__asm__ volatile ("" ::: "memory");	/* or the compiler would call memcpy() */
	}
	for (; i < size; i++) {
		((char *)to)[i] = ((const char *)from)[i];
		__asm__ volatile ("" ::: "memory");
	}
	return to;
}
