/* SPDX-License-Identifier: MIT */
#include "svc/log.h"

#include <stdarg.h>
#include <sys/stat.h>

#include "base/utf8.h"

#define LINE_MAX_BYTES 2048

static struct {
	const char *program;
	enum ky_log_level level;
	int fd;	       /* of the file; -1: none */
	bool says;     /* on stderr */
	time_t second; /* of the lines counted in n_lines */
	unsigned n_lines;
} self = {.program = "kymo", .level = KY_LOG_INFO, .fd = -1, .says = true};

/* Lines of the users who caused some in this period. The last entry is for all further users. */
static struct {
	uint32_t cause;
	time_t begin;
	size_t n;
	struct {
		uint32_t uid;
		unsigned n_lines;
	} users[KY_LOG_USERS];
} causes = {.cause = KY_LOG_NOBODY};

time_t (*ky_log_clock)(time_t *) = time;

static const char *const level_names[] = {"error", "warning", "info", "debug"};

void ky_log_init(const char *program, enum ky_log_level level)
{
	self.program = program;
	self.level = level;
}

void ky_log_to_file(int fd, bool too)
{
	self.fd = fd;
	self.says = too;
}

char *ky_log_escape(char *buf, size_t size, const char *text)
{
	static const char hex[] = "0123456789abcdef";
	size_t left = strlen(text), n = 0, len;
	uint32_t code;
	bool harmless;

	for (; left; text += len, left -= len) {
		len = ky_utf8_length(text, left, &code, &harmless);
		harmless = len && harmless;
		len = KY_MAX(len, (size_t)1);
		if (n + len * (harmless ? 1 : 4) >= size)
			break;
		for (size_t i = 0; i < len; i++) {
			unsigned char c = (unsigned char)text[i];

			if (harmless) {
				buf[n++] = (char)c;
				continue;
			}
			buf[n++] = '\\';
			buf[n++] = 'x';
			buf[n++] = hex[c >> 4];
			buf[n++] = hex[c & 15];
		}
	}
	buf[n] = '\0';
	return buf;
}

/* A line that cannot be written cannot be reported, either. */
static void write_to(int fd, const char *line, int n)
{
	if (fd >= 0 && write(fd, line, (size_t)KY_MIN(n, LINE_MAX_BYTES + 127)) < 0)
		return;
}

/* The file may be in memory (/run). It was opened for appending. */
static void bound_file(int fd)
{
	static const char note[] = "(earlier messages were removed: the log was full)\n";
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= KY_LOG_MAX)
		return;
	if (!ftruncate(fd, 0))
		write_to(fd, note, sizeof(note) - 1);
}

static void write_line(enum ky_log_level level, time_t now, const char *text)
{
	char escaped[LINE_MAX_BYTES], line[LINE_MAX_BYTES + 128], date[32] = "";
	struct tm tm;
	int n;

	ky_log_escape(escaped, sizeof(escaped), text);
	n = snprintf(line, sizeof(line), "%s: %s\n", self.program, escaped);
	write_to(self.says ? STDERR_FILENO : -1, line, n);
	if (localtime_r(&now, &tm))
		strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S%z", &tm);
	n = snprintf(line, sizeof(line), "%s %s[%d]: %s: %s\n", date, self.program, (int)getpid(),
		level_names[level], escaped);
	bound_file(self.fd);
	write_to(self.fd, line, n);
}

/*
 * Returns true if this line is within the burst of its second. At the begin of a second, logs how
 * many lines of an earlier one were suppressed.
 */
static bool admit_line(time_t now)
{
	char text[64];

	if (now != self.second) {
		if (self.n_lines > KY_LOG_BURST) {
			snprintf(text, sizeof(text), "%u messages left out",
				self.n_lines - KY_LOG_BURST);
			write_line(KY_LOG_WARNING, now, text);
		}
		self.second = now;
		self.n_lines = 0;
	}
	return ++self.n_lines <= KY_LOG_BURST;
}

void ky_log_set_cause(uint32_t uid)
{
	causes.cause = uid;
}

/* Logs how many lines of each user were left out, and begins a new period. */
static void end_period(time_t now)
{
	char text[96], who[32];

	for (size_t i = 0; i < causes.n; i++) {
		if (causes.users[i].n_lines <= KY_LOG_USER_BURST)
			continue;
		snprintf(who, sizeof(who), i == KY_LOG_USERS - 1 ? "other users" : "uid %u",
			causes.users[i].uid);
		snprintf(text, sizeof(text), "%s: %u more messages left out", who,
			causes.users[i].n_lines - KY_LOG_USER_BURST);
		write_line(KY_LOG_WARNING, now, text);
	}
	causes.n = 0;
	causes.begin = now;
}

/* Returns true if the user who causes this line has not caused too many. */
static bool admit_user(time_t now)
{
	size_t i = 0;

	if (causes.n && (now < causes.begin || now - causes.begin >= KY_LOG_USER_S))
		end_period(now);
	if (causes.cause == KY_LOG_NOBODY)
		return true;
	while (i < causes.n && i < KY_LOG_USERS - 1 && causes.users[i].uid != causes.cause)
		i++;
	if (!causes.n)
		causes.begin = now;
	if (i == causes.n) {
		causes.users[i].uid = causes.cause;
		causes.users[i].n_lines = 0;
		causes.n++;
	}
	return ++causes.users[i].n_lines <= KY_LOG_USER_BURST;
}

void ky_log(enum ky_log_level level, const char *fmt, ...)
{
	char text[LINE_MAX_BYTES];
	int saved = errno;
	time_t now;
	va_list ap;

	if (level > self.level)
		return;
	now = ky_log_clock(NULL);
	if (admit_user(now) && admit_line(now)) {
		va_start(ap, fmt);
		vsnprintf(text, sizeof(text), fmt, ap);
		va_end(ap);
		write_line(level, now, text);
	}
	errno = saved;
}
