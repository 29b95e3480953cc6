/* SPDX-License-Identifier: MIT */
#include "cli/flights.h"

#include <inttypes.h>
#include <poll.h>
#include <time.h>

#include "cli/daemon.h"

#define SETTLE_S 60 /* longest time that the end waits for snapshots */

/* --- messages --- */

static const char *message_string(const struct kymo_value *m, const char *name)
{
	return kymo_value_string(kymo_value_get(m, name));
}

static void handle_message(struct flights *f, const struct kymo_value *m)
{
	const char *kind = message_string(m, "kind");
	bool written = !strcmp(kind, "snapshot");

	if (strcmp(message_string(m, "trigger"), FLIGHTS_TRIGGER) != 0)
		return;
	if (!f->quiet)
		cli_warn(f->cli, "%s%s", strcmp(kind, "fired") ? "" : "triggered by ",
			message_string(m, "text"));
	pthread_mutex_lock(&f->lock);
	f->n_written += written;
	f->n_ended += strcmp(kind, "fired") != 0;
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
}

static void *watch_messages(void *arg)
{
	struct flights *f = arg;
	int r = 0;

	while (r >= 0) {
		_cleanup_value_ struct kymo_value *m = NULL;
		struct pollfd p = {.fd = kymo_ctl_fd(f->ctl), .events = POLLIN};

		r = kymo_ctl_message(f->ctl, &m);
		if (r > 0)
			handle_message(f, m);
		else if (!r)
			poll(&p, 1, -1);
	}
	pthread_mutex_lock(&f->lock);
	f->ended = true;
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

/* --- begin and end --- */

int flights_init(struct flights *f, struct cli *cli)
{
	*f = (struct flights){.cli = cli, .quiet = cli->json || cli->quiet};
	if (!cli_has(cli, "when"))
		return cli_has(cli, "rate") || cli_has(cli, "keep")
			       ? cli_usage(cli, "--rate and --keep need --when")
			       : CLI_OK;
	if (!cli_has(cli, "snapshot"))
		return cli_usage(cli, "--when needs --snapshot");
	return CLI_OK;
}

static int add_trigger(struct flights *f, struct kymo_ctl *ctl, const char *session)
{
	_cleanup_value_ struct kymo_value *params = kymo_value_new(), *reply = NULL;

	if (!params)
		return cli_fail(f->cli, "failed", "no memory");
	kymo_value_set_string(params, "session", session);
	kymo_value_set_string(params, "trigger", FLIGHTS_TRIGGER);
	kymo_value_set_string(params, "when", cli_get(f->cli, "when"));
	kymo_value_set_string(params, "do", "snapshot");
	if (cli_has(f->cli, "rate"))
		kymo_value_set_string(params, "rate", cli_get(f->cli, "rate"));
	if (cli_has(f->cli, "keep"))
		kymo_value_set_string(params, "keep", cli_get(f->cli, "keep"));
	return cli_call(f->cli, ctl, "add-trigger", params, &reply);
}

int flights_begin(struct flights *f, struct kymo_ctl *ctl, const char *rundir, const char *session)
{
	_cleanup_value_ struct kymo_value *reply = NULL;
	struct kymo_ctl *own = NULL;
	int code = cli_has(f->cli, "when") ? add_trigger(f, ctl, session) : CLI_OK;

	if (code || !cli_has(f->cli, "when"))
		return code;
	if (kymo_ctl_open(rundir, &own) < 0 || kymo_ctl_watch(own, session, 1, &reply) < 0 ||
		!kymo_reply_ok(reply)) {
		kymo_ctl_close(own);
		return cli_fail(f->cli, "failed", "the session daemon reports no snapshots");
	}
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->changed, NULL);
	f->ctl = own;
	return CLI_OK;
}

void flights_watch(struct flights *f)
{
	if (!f->ctl)
		return;
	f->watching = !pthread_create(&f->thread, NULL, watch_messages, f);
	if (!f->watching)
		cli_warn(f->cli, "cannot start a thread: snapshots are written, but not reported");
}

/* Asks about the trigger. Returns how often it has fired; *ret_reply is to be freed. */
static uint64_t ask(struct kymo_ctl *ctl, struct kymo_value **ret_reply)
{
	const struct kymo_value *t;

	kymo_value_free(*ret_reply);
	*ret_reply = NULL;
	kymo_ctl_call(ctl, "list-triggers", NULL, ret_reply);
	t = kymo_value_at(kymo_value_get(*ret_reply, "triggers"), 0);
	return kymo_value_u64(kymo_value_get(t, "fired"));
}

static void report_end(struct flights *f, const struct kymo_value *t)
{
	const char *obstacle = kymo_value_string(kymo_value_get(t, "obstacle"));
	uint64_t left_out = kymo_value_u64(kymo_value_get(t, "left_out"));
	uint64_t removed = kymo_value_u64(kymo_value_get(t, "removed"));

	if (!kymo_value_u64(kymo_value_get(t, "fired")))
		cli_warn(f->cli, "'%s' was never met: no snapshot was written%s%s",
			cli_get(f->cli, "when"), *obstacle ? "; " : "", obstacle);
	if (left_out)
		cli_warn(f->cli,
			"it was met %" PRIu64
			" more time%s, within the time in which --rate allows no other snapshot",
			left_out, left_out == 1 ? "" : "s");
	if (removed)
		cli_warn(f->cli, "--keep removed %" PRIu64 " of %u snapshots", removed,
			f->n_written);
}

void flights_settle(struct flights *f, struct kymo_ctl *ctl)
{
	_cleanup_value_ struct kymo_value *reply = NULL;
	struct timespec until;
	uint64_t fired;

	if (!f->ctl)
		return;
	/* The daemon sees that programs have disconnected before it gets the second request. */
	ask(ctl, &reply);
	fired = ask(ctl, &reply);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += SETTLE_S;
	pthread_mutex_lock(&f->lock);
	while (f->watching && !f->ended && f->n_ended < fired)
		if (pthread_cond_timedwait(&f->changed, &f->lock, &until))
			break;
	pthread_mutex_unlock(&f->lock);
	if (f->quiet)
		return;
	ask(ctl, &reply);
	report_end(f, kymo_value_at(kymo_value_get(reply, "triggers"), 0));
}

void flights_end(struct flights *f)
{
	if (!f->ctl)
		return;
	if (f->watching)
		pthread_join(f->thread, NULL);
	kymo_ctl_close(f->ctl);
	pthread_mutex_destroy(&f->lock);
	pthread_cond_destroy(&f->changed);
	f->ctl = NULL;
}
