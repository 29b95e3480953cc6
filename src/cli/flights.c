/* SPDX-License-Identifier: MIT */
#include "cli/flights.h"

#include <ftw.h>
#include <inttypes.h>
#include <poll.h>
#include <sys/stat.h>
#include <time.h>

#include "base/text.h"
#include "cli/daemon.h"

#define SETTLE_S 60 /* longest time that the end waits for snapshots */

/* --- what is kept --- */

static __thread uint64_t counted;

static int count_file(const char *path, const struct stat *st, int kind, struct FTW *unused)
{
	counted += kind == FTW_F ? (uint64_t)st->st_size : 0;
	return 0;
}

static int remove_file(const char *path, const struct stat *st, int kind, struct FTW *unused)
{
	remove(path);
	return 0;
}

/* Walks the directory without following links, files before their directories. */
static void walk(
	const char *dir, int (*visit)(const char *, const struct stat *, int, struct FTW *))
{
	nftw(dir, visit, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

static uint64_t sum_bytes(const struct flights *f)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < f->n; i++)
		sum += f->list[i].bytes;
	return sum;
}

/* Removes the oldest snapshots, as long as there are too many; never the newest. */
static void limit(struct flights *f)
{
	while (f->n > 1 && ((f->keep_n && f->n > f->keep_n) ||
				   (f->keep_bytes && sum_bytes(f) > f->keep_bytes))) {
		walk(f->list[0].output, remove_file);
		free(f->list[0].output);
		memmove(f->list, f->list + 1, --f->n * sizeof(*f->list));
		f->n_removed++;
	}
}

static void keep(struct flights *f, const char *output)
{
	struct flight *grown = realloc(f->list, (f->n + 1) * sizeof(*grown));
	char *copy = strdup(output);

	if (grown)
		f->list = grown;
	if (!grown || !copy) {
		free(copy);
		return; /* it stays */
	}
	counted = 0;
	walk(output, count_file);
	f->list[f->n++] = (struct flight){.output = copy, .bytes = counted};
	limit(f);
}

/* --- messages --- */

static const char *get(const struct kymo_value *m, const char *name)
{
	return kymo_value_string(kymo_value_get(m, name));
}

static void handle_message(struct flights *f, const struct kymo_value *m)
{
	const char *kind = get(m, "kind");
	bool written = !strcmp(kind, "snapshot");

	if (strcmp(get(m, "trigger"), FLIGHTS_TRIGGER) != 0)
		return;
	if (!f->quiet)
		cli_warn(f->cli, "%s%s", strcmp(kind, "fired") ? "" : "triggered by ",
			get(m, "text"));
	pthread_mutex_lock(&f->lock);
	if (written) {
		f->n_written++;
		keep(f, get(m, "output"));
	}
	f->n_ended += strcmp(kind, "fired") != 0;
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
}

static void *watch(void *arg)
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
	const char *text = cli_get(cli, "keep");

	*f = (struct flights){.cli = cli, .quiet = cli->json || cli_has(cli, "no-summary")};
	if (!cli_has(cli, "when"))
		return cli_has(cli, "rate") || text
			       ? cli_usage(cli, "--rate and --keep need --when")
			       : CLI_OK;
	if (!cli_has(cli, "snapshot"))
		return cli_usage(cli, "--when needs --snapshot");
	if (!text || ky_parse_number(text, UINT32_MAX, &f->keep_n) == 0)
		return text && !f->keep_n ? cli_usage(cli, "--keep=0 would keep nothing") : CLI_OK;
	if (ky_parse_size(text, &f->keep_bytes) < 0 || !f->keep_bytes)
		return cli_usage(cli,
			"bad limit '%s' of --keep: use a number of snapshots, or a size such as 500M",
			text);
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
	f->watching = !pthread_create(&f->thread, NULL, watch, f);
	if (!f->watching)
		cli_warn(f->cli, "no thread can be started: snapshots are written unreported");
}

/* Returns how often the trigger has fired. Sets *left_out likewise. */
static uint64_t count_fired(struct kymo_ctl *ctl, uint64_t *left_out)
{
	_cleanup_value_ struct kymo_value *reply = NULL;
	const struct kymo_value *t;

	if (kymo_ctl_call(ctl, "list-triggers", NULL, &reply) < 0)
		return 0;
	t = kymo_value_at(kymo_value_get(reply, "triggers"), 0);
	*left_out = kymo_value_u64(kymo_value_get(t, "left_out"));
	return kymo_value_u64(kymo_value_get(t, "fired"));
}

void flights_settle(struct flights *f, struct kymo_ctl *ctl)
{
	struct timespec until;
	uint64_t left_out = 0, fired;

	if (!f->ctl)
		return;
	/* The daemon sees that programs have disconnected before it gets the second request. */
	count_fired(ctl, &left_out);
	fired = count_fired(ctl, &left_out);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += SETTLE_S;
	pthread_mutex_lock(&f->lock);
	while (f->watching && !f->ended && f->n_ended < fired)
		if (pthread_cond_timedwait(&f->changed, &f->lock, &until))
			break;
	pthread_mutex_unlock(&f->lock);
	if (f->quiet)
		return;
	if (!fired)
		cli_warn(f->cli, "'%s' was never met: no snapshot was written",
			cli_get(f->cli, "when"));
	if (left_out)
		cli_warn(f->cli,
			"it was met %" PRIu64
			" more time%s, within the time in which --rate allows no other snapshot",
			left_out, left_out == 1 ? "" : "s");
	if (f->n_removed)
		cli_warn(f->cli, "--keep removed %u of %u snapshots", f->n_removed, f->n_written);
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
	for (unsigned i = 0; i < f->n; i++)
		free(f->list[i].output);
	free(f->list);
	f->ctl = NULL;
}
