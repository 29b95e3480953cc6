/* SPDX-License-Identifier: MIT */
#include "cli/shipping.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "cli/child.h"
#include "cli/daemon.h"

#define NAME	    ".shipping"
#define SIZE	    1024u /* written at once, so that readers see one state */
#define EVERY_NS    UINT64_C(200000000)
#define PATIENCE_MS 1000 /* for the trace's file system */

static void write_note(struct shipping_note *n)
{
	char text[SIZE];
	int len;

	if (n->fd < 0)
		return;
	memset(text, '\n', sizeof(text));
	len = snprintf(text, sizeof(text), "%" PRIu64 " %" PRIu64 " %" PRIu64 "\n%.255s\n%s\n",
		n->there, n->all, n->since_s, n->trouble, n->url);
	if (len < (int)sizeof(text))
		text[len] = '\n';
	if (pwrite(n->fd, text, sizeof(text), 0) != (ssize_t)sizeof(text))
		n->fd = ky_close(n->fd);
	n->written_ns = ky_clock_ns(CLOCK_MONOTONIC);
}

void shipping_begin(struct shipping_note *n, int trace, const char *url)
{
	*n = (struct shipping_note){.url = url};
	n->fd = openat(trace, NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0640);
	if (n->fd >= 0 && flock(n->fd, LOCK_EX | LOCK_NB) < 0)
		n->fd = ky_close(n->fd);
	write_note(n);
}

void shipping_progress(struct shipping_note *n, uint64_t there, uint64_t all)
{
	const bool was_in_trouble = *n->trouble;

	n->there = there;
	n->all = all;
	n->trouble[0] = '\0';
	n->since_s = 0;
	if (was_in_trouble || there == all ||
		ky_clock_ns(CLOCK_MONOTONIC) - n->written_ns > EVERY_NS)
		write_note(n);
}

void shipping_trouble(struct shipping_note *n, const char *why, uint64_t there, uint64_t all)
{
	n->there = there;
	n->all = all;
	if (!*n->trouble)
		n->since_s = ky_clock_ns(CLOCK_REALTIME) / 1000000000;
	snprintf(n->trouble, sizeof(n->trouble), "%s", why);
	n->trouble[strcspn(n->trouble, "\n")] = '\0';
	write_note(n);
}

void shipping_end(struct shipping_note *n, int trace, bool done)
{
	if (n->fd < 0)
		return;
	if (done)
		unlinkat(trace, NAME, 0);
	else
		write_note(n);
	n->fd = ky_close(n->fd);
}

struct found {
	uint64_t there, all, since_s;
	const char *trouble, *url; /* into text */
	bool runs;
	char text[SIZE + 1];
};

/* Reads the note, and whether its writer lives. Leaves the text empty if there is none. */
static void read_note(const char *trace, struct found *ret)
{
	_cleanup_close_ int dir = open(trace, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_close_ int fd = dir < 0 ? -1
					 : openat(dir, NAME,
						   O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	const ssize_t n = fd < 0 ? -1 : pread(fd, ret->text, SIZE, 0);

	ret->text[n > 0 ? n : 0] = '\0';
	ret->runs = n > 0 && flock(fd, LOCK_SH | LOCK_NB) < 0;
}

/*
 * Reads the note in a child: the trace's file system may never answer, and status is what says so.
 * Returns false if there is no note, or no answer in time.
 */
static bool read_note_in_time(const char *trace, struct found *ret)
{
	_cleanup_close_ int from = -1, to = -1;
	struct pollfd p = {.events = POLLIN};
	int fds[2];
	ssize_t n = 0;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return false;
	from = p.fd = fds[0];
	to = fds[1];
	pid = fork();
	if (pid < 0)
		return false;
	if (!pid) {
		/* Even SIGKILL may not end it before the disk answers: hold nobody's pipes. */
		child_close_others(0, to, to);
		read_note(trace, ret);
		_exit(write(to, ret, sizeof(*ret)) < 0); /* all at once: < PIPE_BUF */
	}
	if (poll(&p, 1, PATIENCE_MS) > 0)
		n = read(from, ret, sizeof(*ret));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, WNOHANG); /* it may be dead only when the file system answers */
	return n == (ssize_t)sizeof(*ret) && *ret->text;
}

static bool find_trace(const char *trace, struct found *f)
{
	char *rest = f->text, *line;

	if (!read_note_in_time(trace, f))
		return false;
	line = strsep(&rest, "\n");
	if (sscanf(line, "%" SCNu64 " %" SCNu64 " %" SCNu64, &f->there, &f->all, &f->since_s) != 3)
		return false;
	f->trouble = rest ? strsep(&rest, "\n") : "";
	f->url = rest ? strsep(&rest, "\n") : "";
	return true;
}

void shipping_report(struct cli *cli, const char *trace)
{
	char there[32], all[32], when[32] = "";
	struct tm tm;
	struct found f;
	time_t since;

	if (!find_trace(trace, &f))
		return;
	printf("shipping to %s: ", cli_safe(cli, f.url));
	cli_format_size(all, sizeof(all), f.all);
	if (f.there)
		printf("%s of %s are there", cli_format_size(there, sizeof(there), f.there), all);
	else if (f.all)
		printf("nothing of %s is there yet", all);
	else
		printf("nothing is there yet");
	since = (time_t)f.since_s;
	if (*f.trouble && localtime_r(&since, &tm))
		strftime(when, sizeof(when), "%H:%M:%S", &tm);
	if (*f.trouble)
		printf("; %s, since %s%s", cli_safe(cli, f.trouble), when,
			f.runs ? ", trying again" : "");
	puts(f.runs ? ""
		    : "; no 'kymo ship' runs: run it again with the same URL, and it continues");
}

void shipping_add(struct kymo_value *to, const char *trace)
{
	_cleanup_value_ struct kymo_value *v = kymo_value_new();
	struct found f;

	if (!v || !find_trace(trace, &f))
		return;
	kymo_value_set_string(v, "url", f.url);
	kymo_value_set_u64(v, "bytes_there", f.there);
	kymo_value_set_u64(v, "bytes", f.all);
	kymo_value_set_bool(v, "runs", f.runs);
	if (*f.trouble) {
		kymo_value_set_string(v, "trouble", f.trouble);
		kymo_value_set_u64(v, "trouble_since_s", f.since_s);
	}
	kymo_value_set(to, "shipping", v);
}
