// SPDX-License-Identifier: GPL-2.0
/*
 * SIGCHLD and the signals that end pmuk are blocked, except in ppoll(), in let_in() and after
 * signal_restore(). So none can come unnoticed between a check of `signalled` and the wait after
 * it.
 */
#include <poll.h>
#include <time.h>

#include "pmuk.h"

volatile sig_atomic_t signalled;

static sigset_t unblocked;		/* the signal mask during a wait */
static struct sigaction too_large;	/* the action of SIGXFSZ when pmuk began */
static const int ends[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU };

static void on_end(int signal)
{
	signalled = signal;
}

/* SIGCHLD needs a handler to interrupt a wait, but the handler has nothing to do. */
static void on_child(int signal)
{
	(void)signal;
}

void signal_catch(int signal, void (*handler)(int), int flags)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags };

	sigaction(signal, &action, NULL);
}

void signal_hold(const int *signals, size_t nr)
{
	sigset_t set;
	size_t i;

	sigemptyset(&set);
	for (i = 0; i < nr; i++)
		sigaddset(&set, signals[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

void signal_begin(void)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };

	sigaction(SIGXFSZ, &ignore, &too_large);
}

void catch_ends(void)
{
	static const int child[] = { SIGCHLD };
	struct sigaction was;
	size_t i;

	sigprocmask(SIG_BLOCK, NULL, &unblocked);
	for (i = 0; i < ARRAY_SIZE(ends); i++) {
		sigaction(ends[i], NULL, &was);
		if (was.sa_handler != SIG_IGN)		/* nohup(1) has set SIG_IGN */
			signal_catch(ends[i], on_end, 0);
	}
	signal_catch(SIGCHLD, on_child, 0);
	signal_hold(ends, ARRAY_SIZE(ends));
	signal_hold(child, 1);
}

void signal_restore(void)
{
	struct sigaction was;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(ends); i++) {
		sigaction(ends[i], NULL, &was);
		if (was.sa_handler == on_end)
			signal_catch(ends[i], SIG_DFL, 0);
	}
	signal_catch(SIGCHLD, SIG_DFL, 0);
	sigprocmask(SIG_SETMASK, &unblocked, NULL);
}

void signal_leave(void)
{
	signal_restore();
	sigaction(SIGXFSZ, &too_large, NULL);
}

void signal_let_in(void)
{
	sigset_t held;

	sigprocmask(SIG_SETMASK, &unblocked, &held);
	sigprocmask(SIG_SETMASK, &held, NULL);
}

int poll_ns(struct pollfd *fds, size_t nr, u64 ns)
{
	struct timespec timeout = {
		.tv_sec = (time_t)(ns / NSEC),
		.tv_nsec = (long)(ns % NSEC),
	};
	int ready = ppoll(fds, nr, &timeout, &unblocked);

	/* ppoll() delivers no signal if a file is ready, and the ring of a busy CPU always is. */
	if (ready > 0)
		signal_let_in();
	return ready < 0 ? 0 : ready;
}

bool wait_ns(u64 ns)
{
	u64 until = now_ns() + ns, now;

	while (!signalled && (now = now_ns()) < until)
		poll_ns(NULL, 0, until - now);
	return !signalled;
}
