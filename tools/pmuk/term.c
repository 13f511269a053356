// SPDX-License-Identifier: GPL-2.0
/*
 * Prepares the terminal for pmuk top: keys arrive one by one, and the alternate screen keeps the
 * shell's. However pmuk ends, the terminal's former state is restored.
 */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "pmuk.h"

/* ENTER: the alternate screen, no cursor. LEAVE: the cursor, the shell's screen. */
#define ENTER	"\033[?1049h\033[?25l"
#define LEAVE	"\033[?25h\033[?1049l"

volatile sig_atomic_t resized, suspended;

static struct termios shell;		/* the modes before pmuk changed them */
static volatile sig_atomic_t entered;

static void on_resize(int signal)
{
	(void)signal;
	resized = 1;
}

static void on_suspend(int signal)
{
	(void)signal;
	suspended = 1;
}

static void on_crash(int signal)
{
	term_leave();
	raise(signal);		/* ends pmuk, as SA_RESETHAND has removed this handler */
}

/* `entered` is set before the terminal changes, as a signal may come right after the change. */
static void take(void)
{
	struct termios raw = shell;

	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VMIN] = 0;
	raw.c_cc[VTIME] = 0;
	entered = 1;
	tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw);
	if (write(STDOUT_FILENO, ENTER, sizeof(ENTER) - 1) < 0)
		die("cannot write to the terminal");
}

/* Signal handlers call this function, too, so it makes only system calls. */
void term_leave(void)
{
	ssize_t ignored;

	if (!entered)
		return;
	entered = 0;
	ignored = write(STDOUT_FILENO, LEAVE, sizeof(LEAVE) - 1);
	(void)ignored;
	tcsetattr(STDIN_FILENO, TCSADRAIN, &shell);
}

void term_enter(void)
{
	static const int crashes[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };
	static const int held[] = { SIGWINCH, SIGTSTP };
	size_t i;

	if (tcgetattr(STDIN_FILENO, &shell))
		die("standard input is no terminal; to only print, use: pmuk top -b");
	atexit(term_leave);
	catch_ends();
	for (i = 0; i < ARRAY_SIZE(crashes); i++)
		signal_catch(crashes[i], on_crash, (int)SA_RESETHAND);
	signal_catch(SIGWINCH, on_resize, 0);
	signal_catch(SIGTSTP, on_suspend, 0);
	signal_hold(held, ARRAY_SIZE(held));
	take();
}

void term_suspend(void)
{
	suspended = 0;
	term_leave();
	raise(SIGSTOP);
	resized = 1;
	take();
}

void term_size(int *columns, int *lines)
{
	struct winsize size;

	resized = 0;
	*columns = 80;
	*lines = 24;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size))
		return;
	if (size.ws_col)
		*columns = size.ws_col;
	if (size.ws_row)
		*lines = size.ws_row;
}

/* An arrow key sends its whole sequence at once. If nothing follows, the user pressed Escape. */
static int arrow(void)
{
	static const char keys[] = { 'k', 'j' };
	char more[8];
	ssize_t got = read(STDIN_FILENO, more, sizeof(more));

	if (got >= 2 && (more[0] == '[' || more[0] == 'O') && (more[1] == 'A' || more[1] == 'B'))
		return keys[more[1] - 'A'];
	if (got >= 3 && more[0] == '[' && (more[1] == '5' || more[1] == '6'))
		return more[1] == '5' ? 'b' & 0x1f : 'f' & 0x1f;
	return 0;
}

int term_key(u64 ns)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	unsigned char key;

	if (signalled || !poll_ns(&in, 1, ns))
		return 0;
	if (read(STDIN_FILENO, &key, 1) != 1) {
		signalled = SIGHUP;	/* the terminal is gone */
		return 0;
	}
	return key == '\033' ? arrow() : key;
}
