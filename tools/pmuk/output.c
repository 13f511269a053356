// SPDX-License-Identifier: GPL-2.0
/*
 * Writes a file that takes the place of an older one when the new file is complete. If pmuk fails,
 * the older file stays. SIGPIPE is ignored, as it would kill pmuk before the new file is removed.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pmuk.h"

static char temporary[PATH_MAX];	/* "": no file */

/* Empties the file first: pmuk keeps it open until the exit, and COMMAND may need the space. */
static void remove_temporary(void)
{
	if (!*temporary)
		return;
	(void)!truncate(temporary, 0);
	unlink(temporary);
}

/* If the name exists, a killed pmuk with the same PID has left the file: removes it. */
static int create(const char *name, mode_t mode)
{
	static const int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC;
	int fd = open(name, flags, mode);

	if (fd < 0 && errno == EEXIST && !unlink(name))
		fd = open(name, flags, mode);
	if (fd < 0)
		die("%s: %s", name, strerror(errno));
	return fd;
}

/* Exits if @name is no regular file: rename() would replace /dev/null, for instance. */
static void refuse_others(const char *name)
{
	struct stat s;

	if (!stat(name, &s) && !S_ISREG(s.st_mode))
		die("%s is no regular file; choose another with -o", name);
}

/* The temporary name ends with the PID: a collector that reads all *.prom files ignores it. */
FILE *output_open(const char *name, mode_t mode)
{
	FILE *out;
	int fd;

	refuse_others(name);
	signal_catch(SIGPIPE, SIG_IGN, 0);
	if (snprintf(temporary, sizeof(temporary), "%s.%d", name, getpid()) >=
	    (int)sizeof(temporary)) {
		*temporary = 0;
		die("the name of the file is too long");
	}
	fd = create(temporary, mode);
	atexit(remove_temporary);
	out = fdopen(fd, "w");
	if (!out)
		die("there is no memory left");
	return out;
}

void output_finish(FILE *out, const char *name)
{
	finish_output(out, temporary);
	if (fsync(fileno(out)) || fclose(out))
		die("cannot write to %s: %s", temporary, strerror(errno));
	if (rename(temporary, name))
		die("cannot rename %s to %s: %s", temporary, name, strerror(errno));
	*temporary = 0;
}
