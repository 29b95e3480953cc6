/* SPDX-License-Identifier: MIT */
#include "sessiond/peers/collector.h"

#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "sessiond/model/env.h"
#include "sessiond/peers/program.h"
#include "sessiond/peers/rundir.h"
#include "svc/log.h"

#define NAME	 "collectd"
#define FIFO	 "collector"
#define READY_NS (10000 * KY_NS_PER_MS)
#define HEALTHY_NS                                                                                 \
	(10000 * KY_NS_PER_MS) /* having lived so long, it is no longer failing in a row */
#define FIRST_DELAY_MS 100u
#define LAST_DELAY_MS  60000u
#define WRONG_USAGE    2 /* exit status */

static void start_collector(struct collector *c);

static void close_fifo(struct collector *c)
{
	if (c->fifo_fd < 0)
		return;
	ky_watch_remove(&c->fifo_watch);
	if (rundir_leads_to(rundir_path(c->env->run, FIFO), c->fifo_fd))
		unlink(rundir_path(c->env->run, FIFO));
	c->fifo_fd = ky_close(c->fifo_fd);
}

static void look_ready(struct collector *c)
{
	if (c->state != COLLECTOR_STARTING || !c->has_written || !c->has_registered)
		return;
	ky_debug("the collector is ready");
	c->state = COLLECTOR_READY;
	c->trouble[0] = '\0';
	ky_timer_cancel(&c->timer);
	ticket_done_all(&c->tickets);
}

static void collector_failed(struct collector *c, const char *fmt, ...) KY_PRINTF(2, 3);

/* It is not there any more: those who wait go on without it, and it is started later. */
static void collector_failed(struct collector *c, const char *fmt, ...)
{
	uint64_t delay_ms = FIRST_DELAY_MS;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(c->trouble, sizeof(c->trouble), fmt, ap);
	va_end(ap);
	if (c->state == COLLECTOR_READY &&
		ky_loop_time_ns(&c->env->loop) - c->started_ns > HEALTHY_NS)
		c->n_failures = 0;
	for (unsigned i = 0; i < c->n_failures && delay_ms < LAST_DELAY_MS; i++)
		delay_ms *= 2;
	c->n_failures++;
	c->state = COLLECTOR_DEAD;
	c->life_fd = ky_close(c->life_fd);
	close_fifo(c);
	ky_warning(
		"the collector %s: sessions go on without the state of the system; it is started again in %u ms",
		c->trouble, (unsigned)KY_MIN(delay_ms, (uint64_t)LAST_DELAY_MS));
	ky_timer_set(
		&c->env->loop, &c->timer, KY_MIN(delay_ms, (uint64_t)LAST_DELAY_MS) * KY_NS_PER_MS);
	ticket_done_all(&c->tickets);
}

static void fifo_readable(struct ky_watch *w, uint32_t events)
{
	struct collector *c = ky_container_of(w, struct collector, fifo_watch);
	char byte;

	if (read(w->fd, &byte, 1) == 1)
		c->has_written = true;
	close_fifo(
		c); /* its end without a byte is that of the process, which is noticed elsewhere */
	look_ready(c);
}

static int open_fifo(struct collector *c, const char *path)
{
	unlink(path);
	if (mkfifo(path, 0600) < 0)
		return -errno;
	c->fifo_fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	if (c->fifo_fd < 0)
		return -errno;
	return ky_watch_add(&c->env->loop, &c->fifo_watch, c->fifo_fd, EPOLLIN, fifo_readable);
}

static int spawn_collector(struct collector *c, const char *path)
{
	char fifo[PATH_MAX];
	char *argv[] = {(char *)"kymo-" NAME, fifo, *c->without ? (char *)"--without" : NULL,
		(char *)c->without, NULL};
	int life[2], ret;

	snprintf(fifo, sizeof(fifo), "%s", rundir_path(c->env->run, FIFO));
	ret = open_fifo(c, fifo);
	if (ret < 0)
		return ret;
	if (pipe2(life, O_CLOEXEC) < 0)
		return -errno;
	ret = program_start(path, argv, life[0], c->env->run->path);
	c->pid = KY_MAX(ret, 0);
	ky_close(life[0]);
	c->life_fd = life[1];
	fcntl(c->life_fd, F_SETFL, O_NONBLOCK);
	return KY_MIN(ret, 0);
}

static void start_collector(struct collector *c)
{
	char path[PATH_MAX];
	int ret;

	if (program_find(NAME, path, sizeof(path)) < 0) {
		ky_info("kymo-" NAME
			" is not installed: sessions do not record the state of the system");
		snprintf(c->trouble, sizeof(c->trouble), "is not installed");
		c->state = COLLECTOR_NONE;
		return;
	}
	c->state = COLLECTOR_STARTING;
	c->has_written = c->has_registered = false;
	c->started_ns = ky_loop_time_ns(&c->env->loop);
	ky_timer_set(&c->env->loop, &c->timer, READY_NS);
	ret = spawn_collector(c, path);
	if (ret < 0)
		collector_failed(c, "cannot be started: %s", strerror(-ret));
}

static void timed_out(struct ky_timer *t)
{
	struct collector *c = ky_container_of(t, struct collector, timer);

	if (c->state == COLLECTOR_DEAD)
		start_collector(c);
	else if (c->pid)
		kill(c->pid, SIGKILL); /* reaped, it has failed */
}

void collector_init(struct collector *c, struct env *e)
{
	*c = (struct collector){.env = e, .without = "", .life_fd = -1, .fifo_fd = -1};
	ky_list_init(&c->tickets);
	ky_timer_init(&c->timer, timed_out);
}

void collector_start(struct collector *c)
{
	if (c->wanted)
		start_collector(c);
}

void collector_deinit(struct collector *c)
{
	ky_timer_cancel(&c->timer);
	ticket_done_all(&c->tickets);
	close_fifo(c);
	c->life_fd = ky_close(c->life_fd);
	if (c->pid)
		kill(c->pid, SIGTERM); /* it has nothing to put in order */
	c->state = COLLECTOR_NONE;
}

void collector_reap(struct collector *c)
{
	bool slow = ky_loop_time_ns(&c->env->loop) - c->started_ns >= READY_NS;
	int status;

	if (!c->pid || waitpid(c->pid, &status, WNOHANG) != c->pid)
		return;
	c->pid = 0;
	if (c->state == COLLECTOR_STARTING && slow)
		collector_failed(
			c, "was not ready within %u s", (unsigned)(READY_NS / 1000 / KY_NS_PER_MS));
	else if (WIFSIGNALED(status))
		collector_failed(c, "was killed by signal %d", WTERMSIG(status));
	else if (WEXITSTATUS(status) == WRONG_USAGE && *c->without)
		collector_failed(c, "cannot leave out what --no-collectd=%s names", c->without);
	else
		collector_failed(c, "ended with status %d", WEXITSTATUS(status));
}

bool collector_is(const struct collector *c, pid_t pid)
{
	return c->pid && c->pid == pid;
}

void collector_registered(struct collector *c, pid_t pid)
{
	if (!collector_is(c, pid))
		return;
	c->has_registered = true;
	look_ready(c);
}

void collector_report_end(struct collector *c, struct ky_ended *ended)
{
	if (c->life_fd < 0)
		return;
	ended->n_missed = c->n_missed;
	if (write(c->life_fd, ended, sizeof(*ended)) == sizeof(*ended))
		c->n_missed = 0;
	else
		c->n_missed++;
}

void collector_await(struct collector *c, struct barrier *b)
{
	if (c->state == COLLECTOR_STARTING)
		ticket_new(&c->tickets, TICKET_ASK, 0, b);
}
