/* SPDX-License-Identifier: MIT */
#include "collectd/text.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>

#define PATH_BYTES 128
#define ALL_STEP   (64u << 10)
#define ALL_MAX	   (64u << 20)

/* Reads up to size bytes, with as many reads as necessary. */
static ssize_t read_some(int fd, char *buf, size_t size)
{
	size_t len = 0;
	ssize_t n = 1;

	while (n > 0 && len < size) {
		n = read(fd, buf + len, size - len);
		len += (size_t)KY_MAX(n, 0);
	}
	return n < 0 ? -errno : (ssize_t)len;
}

static ssize_t read_path(char *buf, size_t size, const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -errno : read_some(fd, buf, size - 1);

	buf[KY_MAX(n, 0)] = '\0';
	return n;
}

ssize_t text_read(char *buf, size_t size, const char *fmt, ...)
{
	char path[PATH_BYTES];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	return read_path(buf, size, path);
}

ssize_t text_read_line(char *buf, size_t size, const char *fmt, ...)
{
	char path[PATH_BYTES];
	va_list ap;
	ssize_t n;

	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	n = read_path(buf, size, path);
	buf[strcspn(buf, "\n")] = '\0';
	return n;
}

char *text_read_all(const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *text = NULL, *more;
	size_t len = 0;
	ssize_t n = fd < 0 ? -1 : (ssize_t)ALL_STEP;

	while (n == (ssize_t)ALL_STEP && len < ALL_MAX) {
		more = realloc(text, len + ALL_STEP + 1);
		if (!more)
			break;
		text = more;
		n = read_some(fd, text + len, ALL_STEP);
		len += (size_t)KY_MAX(n, 0);
		text[len] = '\0';
	}
	if (n >= 0 && n < (ssize_t)ALL_STEP)
		return text;
	free(text);
	return NULL;
}

const char *text_value(const char *text, const char *key)
{
	const char *value = strstr(text, key);

	if (!value)
		return NULL;
	value += strlen(key);
	return value + strspn(value, " \t");
}

int text_each_number(const char *dir, void (*fn)(pid_t number, void *data), void *data)
{
	const struct dirent *e;
	DIR *d = opendir(dir);

	if (!d)
		return -errno;
	while ((e = readdir(d)))
		if (isdigit((unsigned char)*e->d_name))
			fn((pid_t)atoi(e->d_name), data);
	closedir(d);
	return 0;
}
