// SPDX-License-Identifier: GPL-2.0
/*
 * Runs COMMAND. pmuk forks the child first, which enters its cgroup and waits. The child becomes
 * COMMAND when everything else is ready. If pmuk fails later, pmuk terminates COMMAND.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pmuk.h"

/* The child sends this when it cannot become COMMAND. */
struct excuse {
	bool cgroup;		/* the child could not enter its cgroup */
	int error;
};

static int excuses;		/* the pipe that a struct excuse comes from */
static struct command *running;	/* COMMAND from command_go() until its end is known, or NULL */

__noreturn static void give_up(int to, bool cgroup)
{
	struct excuse e = { cgroup, errno };

	if (write(to, &e, sizeof(e)) < 0)
		_exit(126);
	_exit(e.error == ENOENT && !cgroup ? 127 : 126);
}

static void enter(const char *cgroup, int excuse)
{
	char path[4200];
	int fd;

	if (!cgroup)
		return;
	snprintf(path, sizeof(path), "%s/cgroup.procs", cgroup);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "0", 1) != 1)
		give_up(excuse, true);
	close(fd);
}

__noreturn static void child(char **argv, const char *cgroup, const int *go, int excuse)
{
	char go_ahead;

	signal_leave();
	close(go[1]);
	enter(cgroup, excuse);
	if (read(go[0], &go_ahead, 1) != 1)
		_exit(126);	/* pmuk has failed */
	execvp(argv[0], argv);
	give_up(excuse, false);
}

/*
 * Terminates COMMAND when pmuk exits, and waits for the end. If COMMAND ignores SIGTERM, the next
 * signal kills pmuk. SIGCONT lets a stopped COMMAND go on, so that SIGTERM reaches it.
 */
static void end_running(void)
{
	if (!running || kill(running->pid, SIGTERM))
		return;
	kill(running->pid, SIGCONT);
	signal_restore();
	warn_user("waiting for the command, which gets SIGTERM. Another signal ends the wait");
	command_poll(running, true);
}

/*
 * Functions of atexit() run in reverse order. The file that pmuk writes is made after this call, so
 * an exit removes that file before it waits for COMMAND. SIGPIPE must not kill pmuk when it prints
 * a message, as COMMAND would run on.
 */
void command_prepare(struct command *c, char **argv, const char *cgroup)
{
	int excuse[2];

	*c = (struct command) {};
	if (pipe2(c->go, O_CLOEXEC) || pipe2(excuse, O_CLOEXEC))
		die("cannot make a pipe: %s", strerror(errno));
	fflush(stdout);
	c->pid = fork();
	if (c->pid < 0)
		die("cannot make a process: %s", strerror(errno));
	if (!c->pid)
		child(argv, cgroup, c->go, excuse[1]);
	close(excuse[1]);
	excuses = excuse[0];
	signal_catch(SIGPIPE, SIG_IGN, 0);
	atexit(end_running);
}

/* Returns when the child has become COMMAND, or has sent its error. */
void command_go(struct command *c)
{
	struct excuse e;
	ssize_t got;

	if (write(c->go[1], "", 1) != 1)
		die("cannot let the command begin: %s", strerror(errno));
	close(c->go[0]);
	close(c->go[1]);
	do {
		got = read(excuses, &e, sizeof(e));
	} while (got < 0 && errno == EINTR);
	close(excuses);
	if (got != sizeof(e)) {
		running = c;
		return;
	}
	c->error = e.error;
	if (e.cgroup)
		die("the command cannot enter its new cgroup: %s. Is pmuk's cgroup a threaded one?",
		    strerror(e.error));
}

static u64 ns_of(struct timeval t)
{
	return (u64)t.tv_sec * NSEC + (u64)t.tv_usec * 1000;
}

bool command_poll(struct command *c, bool block)
{
	struct rusage used;
	pid_t pid;

	if (c->ended)
		return true;
	do {
		pid = wait4(c->pid, &c->status, block ? 0 : WNOHANG, &used);
	} while (pid < 0 && errno == EINTR);
	if (pid != c->pid)
		return false;
	c->ended = true;
	running = NULL;
	c->user = ns_of(used.ru_utime);
	c->system = ns_of(used.ru_stime);
	return true;
}

void command_signal(const struct command *c)
{
	if (signalled && signalled != SIGINT && signalled != SIGQUIT)
		kill(c->pid, signalled);
	signalled = 0;
}

int command_exit_status(const struct command *c)
{
	return WIFSIGNALED(c->status) ? 128 + WTERMSIG(c->status) : WEXITSTATUS(c->status);
}
