/* SPDX-License-Identifier: MIT */
/*
 * kymo-agent: a host's part in a fleet (docs/fleet.md). It announces the host, carries out what is
 * asked of all hosts with its own user's rights, and ships snapshots.
 *
 * One thread of ours, which takes one step at a time: a request, an announcement, a segment. Its
 * state is in the directory of snapshots and in the fleet's stream.
 */
#include <signal.h>
#include <sys/random.h>

#include "base/children.h"
#include "base/clock.h"
#include "base/standard-files.h"
#include "fleet/requests.h"
#include "fleet/upload.h"
#include "ship/pace.h"
#include "svc/log.h"
#include "svc/print.h"

#define EXPIRE_NS ((uint64_t)10000000000) /* between two looks for snapshots whose time is over */
#define RETRY_NS  ((uint64_t)1000000000)

static const char help[] =
	"kymo-agent - let 'kymo fleet' control the sessions of this host\n"
	"\n"
	"Usage: kymo-agent [FILE]\n"
	"\n"
	"FILE has the addresses of the fleet's servers, and the identity of this host (default:\n" FLEET_CONFIG
	").\n"
	"\n"
	"Options:\n"
	"  -h, --help     show this help\n"
	"  -V, --version  show the version\n";

struct agent {
	struct fleet_config config;
	struct link link;
	natsSubscription *sub;
	struct held held;
	struct requests requests;
	struct upload upload;
	struct pace pace;
	uint64_t next_beat_ns, retry_ns, next_look_ns;
	char tried[FLEET_ID_MAX + 1]; /* the snapshot that was begun last; "": none */
	char trouble[FLEET_WHY_MAX];  /* the last that was logged */
};

static uint64_t now_ns(void)
{
	return ky_clock_ns(CLOCK_MONOTONIC);
}

/* Logs each reason once. */
static void warn_if_new(struct agent *a, const char *why)
{
	if (strcmp(a->trouble, why))
		ky_warning("%s; trying again", why);
	snprintf(a->trouble, sizeof(a->trouble), "%s", why);
}

static void announce(struct agent *a)
{
	char subject[FLEET_SUBJECT_MAX];
	struct kymo_value *v;

	if (now_ns() < a->next_beat_ns)
		return;
	a->next_beat_ns = now_ns() + a->config.beat_us * 1000;
	v = requests_describe(&a->requests);
	kymo_value_set_u64(v, "beat_us", a->config.beat_us);
	snprintf(subject, sizeof(subject), FLEET_HOSTS_PREFIX "%s", a->config.name);
	link_say(&a->link, subject, v);
	kymo_value_free(v);
}

static void answer(struct agent *a, natsMsg *msg)
{
	_cleanup_value_ struct kymo_value *request = link_value(msg);
	const struct kymo_value *v;
	const char *what = link_what(msg), *id = requests_handle(&a->requests, what, request, &v);
	char subject[FLEET_SUBJECT_MAX];

	if (!id || !v)
		return;
	snprintf(subject, sizeof(subject), "kymo.rep.%s.%s", id, a->config.name);
	link_say(&a->link, subject, v);
	/* Nothing becomes due by the other requests, which are repeated to compare clocks. */
	if (!strcmp(what, "snapshot") || !strcmp(what, "ship"))
		a->next_look_ns = 0;
}

/* --- snapshots --- */

/*
 * Begins with the next snapshot that is due. Returns 1, 0 if none is due, or -errno. They take
 * turns: one that cannot be read does not keep the others here.
 */
static int begin_next(struct agent *a)
{
	if (!held_next_due(&a->held, a->tried, a->tried))
		return 0;
	return upload_begin(&a->upload, a->tried) < 0 ? -EIO : 1;
}

/* Ends an attempt that has failed. The next attempt asks anew how much is stored. */
static void retry_later(struct agent *a)
{
	warn_if_new(a, a->upload.why);
	a->retry_ns = now_ns() + RETRY_NS;
}

/* Ships a segment of a snapshot that is due. Returns whether there is more to do at once. */
static bool ship_due_segment(struct agent *a)
{
	int r = 1;

	if (now_ns() < KY_MAX(a->retry_ns, a->pace.next_ns))
		return false;
	if (!upload_is_begun(&a->upload)) {
		if (now_ns() < a->next_look_ns)
			return false;
		a->next_look_ns = now_ns() + EXPIRE_NS;
		held_expire(&a->held);
		r = begin_next(a);
		if (!r)
			return false;
	}
	if (r > 0) {
		r = upload_step(&a->upload);
		pace_note(&a->pace, now_ns(), a->upload.n_sent);
	}
	if (r > 0)
		return true;
	if (r < 0)
		retry_later(a);
	upload_end(&a->upload);
	a->next_look_ns = 0;
	return !r;
}

/* --- the loop --- */

/* Returns the milliseconds until the agent has something to do without a request. */
static int64_t rest_ms(const struct agent *a)
{
	const uint64_t step = KY_MAX(a->retry_ns, a->pace.next_ns);
	const uint64_t ship = upload_is_begun(&a->upload) ? step : KY_MAX(step, a->next_look_ns);
	const uint64_t next = KY_MIN(a->next_beat_ns, ship), now = now_ns();

	return next > now ? (int64_t)((next - now) / 1000000 + 1) : 1;
}

/* Returns when the connection is over for good. */
static void serve_requests(struct agent *a)
{
	natsStatus s = NATS_OK;
	bool busy = false;

	a->next_beat_ns = 0;
	while (s == NATS_OK || s == NATS_TIMEOUT) {
		_cleanup_msg_ natsMsg *msg = NULL;

		announce(a);
		s = natsSubscription_NextMsg(&msg, a->sub, busy ? 1 : rest_ms(a));
		if (s == NATS_OK)
			answer(a, msg);
		busy = ship_due_segment(a);
	}
	link_fail(&a->link, s, a->config.servers);
}

static int connect_once(struct agent *a)
{
	int r = link_open(&a->link, &a->config);
	natsStatus s = NATS_OK;

	if (!r)
		s = natsConnection_SubscribeSync(&a->sub, a->link.nc, FLEET_ASK "*");
	if (s != NATS_OK)
		r = link_fail(&a->link, s, a->config.servers);
	return r;
}

static void __attribute__((noreturn)) run(struct agent *a)
{
	for (;;) {
		if (!connect_once(a)) {
			ky_info("host '%s' is connected to %s", a->config.name, a->config.servers);
			*a->trouble = '\0';
			serve_requests(a);
		}
		warn_if_new(a, a->link.why);
		upload_end(&a->upload);
		natsSubscription_Destroy(a->sub);
		a->sub = NULL;
		link_close(&a->link);
		nats_Sleep(RETRY_NS / 1000000);
	}
}

static int report_usage(void)
{
	fputs("kymo-agent: one file at most is expected; try 'kymo-agent --help'\n", stderr);
	return 2;
}

int main(int argc, char **argv)
{
	const char *arg = argc > 1 ? argv[1] : FLEET_CONFIG;
	static struct agent a;
	char why[PATH_MAX + 128];

	ky_occupy_standard_files();
	ky_heed_children();
	ky_log_init("kymo-agent", KY_LOG_INFO);
	if (!strcmp(arg, "-h") || !strcmp(arg, "--help"))
		ky_print_and_exit(help);
	if (!strcmp(arg, "-V") || !strcmp(arg, "--version"))
		ky_print_and_exit("kymo-agent " KYMO_VERSION "\n");
	if (argc > 2 || *arg == '-')
		return report_usage();
	signal(SIGPIPE, SIG_IGN);
	if (config_load(&a.config, arg, why, sizeof(why)) < 0 ||
		held_open(&a.held, &a.config, why, sizeof(why)) < 0) {
		ky_error("%s", why);
		return EXIT_FAILURE;
	}
	a.requests = (struct requests){.host = a.config.name, .held = &a.held};
	getrandom(&a.requests.agent, sizeof(a.requests.agent), 0);
	a.pace.rate = a.config.rate;
	upload_init(&a.upload, &a.link, &a.held, &a.config);
	run(&a);
}
