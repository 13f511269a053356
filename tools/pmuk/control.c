// SPDX-License-Identifier: GPL-2.0
/*
 * pmuk enable, disable, reset, events: the module's parameters.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pmuk.h"

/* @refused: what EINVAL means. The newline is needed: a write of 0 bytes reaches no module. */
static int set_parameter(const char *name, const char *value, const char *refused)
{
	char path[128], line[256];
	int fd, length = snprintf(line, sizeof(line), "%s\n", value);

	snprintf(path, sizeof(path), MODULE "/parameters/%s", name);
	if (access(rooted(MODULE), F_OK))
		die("the module pmuk_sched is not loaded. As root: modprobe pmuk_sched");
	if (length >= (int)sizeof(line))
		die("%s: '%s' is too long: %s", path, value, refused);
	fd = open(rooted(path), O_WRONLY | O_CLOEXEC | O_TRUNC);
	if (fd < 0 && (errno == EACCES || errno == EPERM))
		die("%s: only root may write this, as in: sudo pmuk ...", path);
	if (fd < 0)
		die("%s: %s", path, strerror(errno));
	if (write(fd, line, (size_t)length) == length) {
		close(fd);
		return 0;
	}
	if (errno == EINVAL || errno == E2BIG)
		die("%s: '%s' was refused: %s", path, value, refused);
	die("%s: '%s' was refused: %s", path, value, strerror(errno));
}

int cmd_enable(int argc, char **argv)
{
	no_more_arguments(argc, argv);
	return set_parameter("enabled", "1", "see dmesg(1)");
}

int cmd_disable(int argc, char **argv)
{
	no_more_arguments(argc, argv);
	return set_parameter("enabled", "0", "see dmesg(1)");
}

int cmd_reset(int argc, char **argv)
{
	no_more_arguments(argc, argv);
	return set_parameter("reset", "1", "see dmesg(1)");
}

int cmd_events(int argc, char **argv)
{
	static const char path[] = MODULE "/parameters/events";
	char *text;
	size_t len;

	if (argc > 2)
		usage();
	if (argc == 2)
		return set_parameter("events", argv[1],
				     "events are up to four of those in pmuk(1), comma separated");
	text = read_source(path, &len);
	fwrite(text, 1, len, stdout);
	free(text);
	return 0;
}
