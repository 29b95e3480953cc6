/* SPDX-License-Identifier: MIT */
#include "sessiond/kernel/tracefs.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int make_dir(int dir, const char *path)
{
	return mkdirat(dir, path, 0700) < 0 ? -errno : 0;
}

static int remove_dir(int dir, const char *path)
{
	return unlinkat(dir, path, AT_REMOVEDIR) < 0 ? -errno : 0;
}

static const struct tracefs_ops kernel_ops = {.make_dir = make_dir, .remove_dir = remove_dir};

int tracefs_open(struct tracefs *t, char why[TRACEFS_WHY_MAX])
{
	struct ky_tracefs_refusal no;
	int fd;

	if (t->root >= 0)
		return 0;
	fd = ky_tracefs_open(&no);
	if (fd < 0) {
		snprintf(why, TRACEFS_WHY_MAX, "%s: %s", no.problem, no.advice);
		return fd;
	}
	*t = (struct tracefs){.root = fd, .ops = &kernel_ops};
	return 0;
}

void tracefs_close(struct tracefs *t)
{
	t->root = ky_close(t->root);
}

static int write_file(int dir, const char *path, const char *text, int flags)
{
	int fd = openat(dir, path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | flags);
	ssize_t n = fd < 0 ? -1 : write(fd, text, strlen(text));
	int ret = n < 0 ? -errno : 0;

	ky_close(fd);
	return ret;
}

int tracefs_write(int dir, const char *path, const char *text)
{
	return write_file(dir, path, text, O_TRUNC);
}

int tracefs_append(int dir, const char *path, const char *text)
{
	return write_file(dir, path, text, O_APPEND);
}

char *tracefs_read(int dir, const char *path)
{
	int fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	size_t len = 0, size = 4096;
	char *text = fd < 0 ? NULL : malloc(size), *grown;
	ssize_t n = -1;

	while (text && (n = read(fd, text + len, size - 1 - len)) > 0) {
		len += (size_t)n;
		if (len < size - 1)
			continue;
		size *= 2;
		grown = realloc(text, size);
		if (!grown)
			free(text);
		text = grown;
	}
	if (text && n < 0) {
		free(text);
		text = NULL;
	}
	if (text)
		text[len] = '\0';
	if (fd >= 0) {
		int error = errno;

		close(fd);
		errno = error;
	}
	return text;
}

bool tracefs_has(int dir, const char *path)
{
	return !faccessat(dir, path, F_OK, AT_SYMLINK_NOFOLLOW);
}

int tracefs_open_dir(int dir, const char *path)
{
	int fd = openat(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	return fd < 0 ? -errno : fd;
}

/* "[  12.5] trace_uprobe: error: Invalid ...\n  Command: ...\n            ^\n": the last one */
void tracefs_last_error(const struct tracefs *t, char *buf, size_t size)
{
	char *text = tracefs_read(t->root, "error_log"), *at, *next;

	buf[0] = '\0';
	at = text ? strstr(text, "error: ") : NULL;
	while (at && (next = strstr(at + 1, "error: ")))
		at = next;
	while (at && at > text && at[-1] != '\n')
		at--;
	if (at)
		snprintf(buf, size, "%.*s", (int)strcspn(at, "\n"), at);
	free(text);
}
