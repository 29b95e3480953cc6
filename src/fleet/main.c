/* SPDX-License-Identifier: MIT */
/* kymo-fleet: started by `kymo fleet`, with the action and its options as a JSON object. */
#include <inttypes.h>
#include <json-c/json.h>
#include <signal.h>
#include <stdarg.h>

#include "base/children.h"
#include "base/paths.h"
#include "base/standard-files.h"
#include "base/text.h"
#include "fleet/fleet.h"
#include "fleet/ids.h"
#include "svc/log.h"
#include "svc/print.h"

#define HOSTS_US    ((uint64_t)10000000)
#define SESSIONS_US ((uint64_t)30000000)
#define TEXT_MAX    1024

#define NOT_ANNOUNCED "its agent has not announced itself"
#define TWO_AGENTS    "two agents answer for it: give each machine an identity of its own"

static const char help[] = "Usage: kymo-fleet REQUEST\n"
			   "Carries out 'kymo fleet'; started by it, not by hand.\n"
			   "\n"
			   "  -h, --help     show this help\n"
			   "  -V, --version  show the version\n";

/* --- texts --- */

static void report_fleet_error(struct fleet *f, const char *code, const char *fmt, va_list ap)
{
	char text[TEXT_MAX], safe[TEXT_MAX * 2];

	vsnprintf(text, sizeof(text), fmt, ap);
	fprintf(stderr, "kymo: %s\n", ky_log_escape(safe, sizeof(safe), text));
	if (!f->result)
		return;
	kymo_value_set_bool(f->result, "ok", 0);
	kymo_value_set_string(f->result, "code", code);
	kymo_value_set_string(f->result, "error", text);
}

int fleet_fail(struct fleet *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	report_fleet_error(f, "failed", fmt, ap);
	va_end(ap);
	return FLEET_FAILED;
}

int fleet_usage(struct fleet *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	report_fleet_error(f, "usage", fmt, ap);
	va_end(ap);
	return FLEET_USAGE;
}

void fleet_warn(const char *fmt, ...)
{
	char text[TEXT_MAX], safe[TEXT_MAX * 2];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fprintf(stderr, "kymo: %s\n", ky_log_escape(safe, sizeof(safe), text));
}

void fleet_put(const char *text)
{
	char safe[TEXT_MAX];

	fputs(ky_log_escape(safe, sizeof(safe), text), stdout);
}

const char *fleet_option(const struct fleet *f, const char *name)
{
	const struct kymo_value *v = kymo_value_get(f->options, name);

	return v ? kymo_value_string(v) : NULL;
}

bool fleet_has(const struct fleet *f, const char *name)
{
	return kymo_value_get(f->options, name) != NULL;
}

int fleet_timeout(struct fleet *f, uint64_t default_us, uint64_t *ret_us)
{
	const char *text = fleet_option(f, "timeout");

	*ret_us = default_us;
	if (text && (ky_parse_seconds(text, ret_us) < 0 || !*ret_us))
		return fleet_usage(f,
			"--timeout: '%s' is not a time: write a number of seconds, or one with us, ms, s, m or h",
			text);
	return FLEET_OK;
}

/* --- the connection --- */

/* KYMO_FLEET, else what `kymo fleet setup` has made, else the host's. */
static void find_config(char path[PATH_MAX])
{
	const char *given = ky_env("KYMO_FLEET"), *home = ky_env("HOME");

	snprintf(path, PATH_MAX, "%s", given ? given : "");
	if (!given && home)
		snprintf(path, PATH_MAX, "%s/kymo-fleet/fleet.conf", home);
	if (!given && access(path, F_OK) < 0)
		snprintf(path, PATH_MAX, FLEET_CONFIG);
}

/* A server that comes back without its store has no streams: it does not even refuse. */
static int fail_at_hosts(struct fleet *f)
{
	jsStreamInfo *info = NULL;
	const bool is_lost = js_GetStreamInfo(&info, f->link.js, FLEET_HOSTS, NULL, NULL) ==
			     NATS_NOT_FOUND;

	jsStreamInfo_Destroy(info);
	return is_lost ? fleet_fail(f,
				 "the servers have lost their streams: 'kymo fleet setup' makes them again")
		       : fleet_fail(f, "%s", f->link.why);
}

int fleet_connect(struct fleet *f, uint64_t limit_us)
{
	char path[PATH_MAX], why[PATH_MAX + 128], hosts[PATH_MAX + 8];
	const char *slash;

	find_config(path);
	if (config_load(&f->config, path, why, sizeof(why)) < 0)
		return fleet_fail(f, "%s", why);
	if (link_open(&f->link, &f->config) < 0)
		return fleet_fail(f, "%s", f->link.why);
	if (limit_us)
		link_limit(&f->link, limit_us);
	if (hosts_load(&f->hosts, &f->link) < 0)
		return fail_at_hosts(f);
	/* The directory of a fleet names its hosts before they announce themselves. */
	slash = strrchr(path, '/');
	snprintf(hosts, sizeof(hosts), "%.*shosts", slash ? (int)(slash + 1 - path) : 0, path);
	return hosts_add_absent(&f->hosts, hosts) < 0 ? fleet_fail(f, "no memory") : FLEET_OK;
}

/* --- hosts --- */

static void put_sessions(const struct kymo_value *sessions)
{
	for (size_t i = 0; i < kymo_value_count(sessions); i++) {
		const struct kymo_value *s = kymo_value_at(sessions, i);

		fputs(i ? ", " : "", stdout);
		fleet_put(kymo_value_string(kymo_value_get(s, "name")));
		fputs(" (", stdout);
		fleet_put(kymo_value_string(kymo_value_get(s, "state")));
		fputs(")", stdout);
	}
}

static bool is_absent(const struct host *h)
{
	return h->is_absent && !h->answer;
}

static double age_s(const struct host *h)
{
	return h->seen_ns ? (double)KY_MAX(hosts_now_ns() - h->seen_ns, (int64_t)0) / 1e9 : 0;
}

static void put_host(const struct host *h)
{
	const struct kymo_value *v = h->answer ? h->answer : h->announced;
	const char *trouble = kymo_value_string(kymo_value_get(v, "trouble"));

	/* Requests do not wait for it yet, although it may have answered this one. */
	if (!h->seen_ns) {
		printf("%-20s %10s  %-8s " NOT_ANNOUNCED "\n", h->name, "-", "absent");
		return;
	}
	printf("%-20s %8.1f s  %-8s ", h->name, age_s(h), h->answer ? "answers" : "silent");
	if (*trouble)
		fleet_put(trouble);
	else
		put_sessions(kymo_value_get(v, "sessions"));
	putchar('\n');
}

static void add_host(struct kymo_value *result, const struct host *h)
{
	const struct kymo_value *v = h->answer ? h->answer : h->announced;
	static const char *const members[] = {"boot", "version", "trouble", "sessions"};
	struct kymo_value *one = kymo_value_new();

	kymo_value_set_string(one, "host", h->name);
	kymo_value_set_bool(one, "answers", h->answer != NULL);
	kymo_value_set_bool(one, "announced", h->seen_ns != 0);
	kymo_value_set_u64(one, "age_ms", (uint64_t)(age_s(h) * 1000));
	for (size_t i = 0; i < KY_ARRAY_SIZE(members); i++)
		if (kymo_value_get(v, members[i]))
			kymo_value_set(one, members[i], kymo_value_get(v, members[i]));
	kymo_value_add(result, "hosts", one);
	kymo_value_free(one);
}

static int run_hosts(struct fleet *f)
{
	_cleanup_value_ struct kymo_value *request = kymo_value_new();
	uint64_t us;
	int code = fleet_timeout(f, HOSTS_US, &us);

	if (!code)
		code = fleet_connect(f, us);
	if (code)
		return code;
	if (hosts_ask(&f->hosts, &f->link, "hosts", request, us) < 0)
		return fleet_fail(f, "%s", f->link.why);
	if (f->result)
		kymo_value_set_list(f->result, "hosts");
	else if (f->hosts.n)
		printf("%-20s %10s  %-8s %s\n", "host", "age", "", "sessions");
	else
		puts("no host has announced itself: start 'kymo-agent' there");
	for (size_t i = 0; i < f->hosts.n; i++)
		if (f->result)
			add_host(f->result, &f->hosts.v[i]);
		else
			put_host(&f->hosts.v[i]);
	return FLEET_OK;
}

/* --- forget --- */

static const struct host *find_host(const struct fleet *f, const char *name)
{
	for (size_t i = 0; i < f->hosts.n; i++)
		if (!strcmp(f->hosts.v[i].name, name))
			return &f->hosts.v[i];
	return NULL;
}

/* Removes a host's announcement: nobody waits for it any longer. */
static int forget_host(struct fleet *f, const char *name)
{
	const struct host *h = find_host(f, name);
	char subject[FLEET_SUBJECT_MAX];
	jsOptions o;
	natsStatus s;

	if (!config_host_valid(name))
		return fleet_usage(f, "'%s' is no name of a host", name);
	if (!h)
		return fleet_fail(f, "no host '%s' has announced itself", name);
	jsOptions_Init(&o);
	snprintf(subject, sizeof(subject), FLEET_HOSTS_PREFIX "%s", name);
	o.Stream.Purge.Subject = subject;
	s = js_PurgeStream(f->link.js, FLEET_HOSTS, &o, NULL);
	if (s != NATS_OK)
		link_fail(&f->link, s, name);
	else if (h->has_identity)
		fleet_warn(
			"%s still has an identity: commands name it until you remove its directory below 'hosts', and repeat 'kymo fleet setup'",
			name);
	return s == NATS_OK ? FLEET_OK : fleet_fail(f, "%s", f->link.why);
}

static int run_forget(struct fleet *f)
{
	int code = kymo_value_count(f->args)
			   ? fleet_connect(f, HOSTS_US)
			   : fleet_usage(f, "no host is named: 'kymo fleet forget HOST...'");

	for (size_t i = 0; !code && i < kymo_value_count(f->args); i++)
		code = forget_host(f, kymo_value_string(kymo_value_at(f->args, i)));
	return code;
}

/* --- start, stop, snapshot --- */

static const char *error_of(const struct host *h)
{
	return is_absent(h)		  ? NOT_ANNOUNCED
	       : !h->answer		  ? "no answer"
	       : h->is_double		  ? TWO_AGENTS
	       : kymo_reply_ok(h->answer) ? NULL
					  : kymo_reply_error(h->answer);
}

static uint64_t sum_of(const struct kymo_value *answer, const char *member)
{
	const struct kymo_value *sessions = kymo_value_get(answer, "sessions");
	uint64_t sum = 0;

	for (size_t i = 0; i < kymo_value_count(sessions); i++)
		sum += kymo_value_u64(kymo_value_get(kymo_value_at(sessions, i), member));
	return sum;
}

static void put_outcome(const struct host *h, bool is_snapshot)
{
	const struct kymo_value *hit = kymo_value_get(h->answer, "hit");

	printf("%s: ", h->name);
	if (error_of(h)) {
		fleet_put(error_of(h));
	} else if (is_snapshot) {
		printf("%" PRIu64 " events, %" PRIu64 " discarded, %" PRIu64 " bytes%s",
			sum_of(h->answer, "recorded"), sum_of(h->answer, "discarded"),
			sum_of(h->answer, "bytes"),
			!hit		       ? ""
			: kymo_value_bool(hit) ? "; has the trace id"
					       : "; does not have the trace id");
	} else {
		fputs("done", stdout);
	}
	putchar('\n');
}

/* A host that did not answer in time may still take the snapshot. */
static bool may_ship(const struct host *h)
{
	return h->answer ? kymo_value_bool(kymo_value_get(h->answer, "ships")) : !is_absent(h);
}

static void put_snapshot(const struct fleet *f, const char *id)
{
	size_t i = 0;

	while (i < f->hosts.n && !may_ship(&f->hosts.v[i]))
		i++;
	if (i < f->hosts.n)
		printf("snapshot %s: 'kymo fleet fetch %s' brings it here\n", id, id);
	else
		printf("snapshot %s: no host ships any of it\n", id);
}

/* The outcome of the request on a host, for --json and for the note of a snapshot. */
static struct kymo_value *outcome_of(const struct host *h)
{
	static const char *const members[] = {"sessions", "hit", "ships"};
	struct kymo_value *v = kymo_value_new();

	kymo_value_set_string(v, "host", h->name);
	kymo_value_set_bool(v, "ok", !error_of(h));
	if (error_of(h))
		kymo_value_set_string(v, "error", error_of(h));
	for (size_t i = 0; i < KY_ARRAY_SIZE(members); i++)
		if (kymo_value_get(h->answer, members[i]))
			kymo_value_set(v, members[i], kymo_value_get(h->answer, members[i]));
	if (h->error_ns >= 0) {
		kymo_value_set_u64(v, "counter", h->counter);
		kymo_value_set_u64(v, "monotonic", h->monotonic);
		kymo_value_set_u64(v, "at_ns", (uint64_t)h->at_ns);
		kymo_value_set_u64(v, "error_ns", (uint64_t)h->error_ns);
	}
	return v;
}

static size_t report_outcomes(struct fleet *f, struct kymo_value *to, bool is_snapshot)
{
	size_t n_bad = 0;

	kymo_value_set_list(to, "hosts");
	for (size_t i = 0; i < f->hosts.n; i++) {
		struct kymo_value *v = outcome_of(&f->hosts.v[i]);

		kymo_value_add(to, "hosts", v);
		kymo_value_free(v);
		n_bad += error_of(&f->hosts.v[i]) != NULL;
		if (!f->result)
			put_outcome(&f->hosts.v[i], is_snapshot);
	}
	return n_bad;
}

static int fill_request(struct fleet *f, struct kymo_value *request)
{
	const char *trace = fleet_option(f, "trace-id"), *size = fleet_option(f, "max-size");
	uint8_t bytes[16];
	uint64_t n;

	kymo_value_set(request, "sessions", f->args);
	for (size_t i = 0; i < kymo_value_count(f->args); i++)
		if (!ky_name_valid(kymo_value_string(kymo_value_at(f->args, i))))
			return fleet_usage(f, "'%s' is no name of a session",
				kymo_value_string(kymo_value_at(f->args, i)));
	if (kymo_value_count(f->args) > FLEET_SESSIONS_MAX)
		return fleet_usage(f, "at most %u sessions can be named", FLEET_SESSIONS_MAX);
	if (trace && !ids_from_hex(trace, bytes, sizeof(bytes)))
		return fleet_usage(f, "--trace-id: '%s' has not 32 hexadecimal digits", trace);
	if (trace)
		kymo_value_set_string(request, "trace_id", trace);
	if (size && (ky_parse_size(size, &n) < 0 || !n || n > INT64_MAX))
		return fleet_usage(f,
			"--max-size: '%s' is not a size: write a number of bytes above 0, or one with K, M or G",
			size);
	if (size)
		kymo_value_set_u64(request, "max_size", n);
	if (fleet_option(f, "reason"))
		kymo_value_set_string(request, "reason", fleet_option(f, "reason"));
	return FLEET_OK;
}

/* Stores what is known of the snapshot, for those who fetch it. */
static int store_note(struct fleet *f, const struct kymo_value *request, struct kymo_value *note)
{
	const char *id = kymo_value_string(kymo_value_get(request, "id"));
	char subject[FLEET_SUBJECT_MAX];

	kymo_value_set_string(note, "id", id);
	kymo_value_set_u64(note, "at_ns", (uint64_t)hosts_now_ns());
	kymo_value_set_string(note, "by", f->config.name);
	if (kymo_value_get(request, "reason"))
		kymo_value_set(note, "reason", kymo_value_get(request, "reason"));
	if (kymo_value_get(request, "trace_id"))
		kymo_value_set(note, "trace_id", kymo_value_get(request, "trace_id"));
	snprintf(subject, sizeof(subject), "kymo.note.%s", id);
	return link_store_value(&f->link, subject, subject, note);
}

static int run_sessions(struct fleet *f, const char *what)
{
	const bool is_snapshot = !strcmp(what, "snapshot");
	_cleanup_value_ struct kymo_value *request = kymo_value_new(), *note = kymo_value_new();
	const char *id;
	size_t n_bad;
	uint64_t us;
	int code = fill_request(f, request), r;

	if (!code && !is_snapshot && !kymo_value_count(f->args))
		code = fleet_usage(f, "no session is named: 'kymo fleet %s SESSION...'", what);
	if (!code)
		code = fleet_timeout(f, SESSIONS_US, &us);
	if (!code)
		code = fleet_connect(f, us);
	if (!code && !f->hosts.n)
		code = fleet_fail(f, "no host has announced itself: start 'kymo-agent' there");
	if (code)
		return code;
	r = hosts_ask(&f->hosts, &f->link, what, request, us);
	if (!r && is_snapshot)
		r = hosts_measure(&f->hosts, &f->link);
	n_bad = report_outcomes(f, note, is_snapshot);
	if (!r && is_snapshot) {
		link_limit(&f->link, 0); /* without its note, nobody finds the snapshot */
		r = store_note(f, request, note);
	}
	if (f->result && is_snapshot)
		kymo_value_set(f->result, "id", kymo_value_get(note, "id"));
	if (f->result)
		kymo_value_set(f->result, "hosts", kymo_value_get(note, "hosts"));
	id = kymo_value_string(kymo_value_get(request, "id"));
	if (r < 0 && is_snapshot && *id)
		return fleet_fail(f, "snapshot %s: %s", id, f->link.why);
	if (r < 0)
		return fleet_fail(f, "%s", f->link.why);
	if (is_snapshot && !f->result)
		put_snapshot(f, id);
	return n_bad ? fleet_fail(f, "%zu of %zu hosts did not carry out the request", n_bad,
			       f->hosts.n)
		     : FLEET_OK;
}

/* --- the program --- */

static int run_action(struct fleet *f, const char *action)
{
	if (!strcmp(action, "setup"))
		return setup_run(f);
	if (!strcmp(action, "hosts"))
		return run_hosts(f);
	if (!strcmp(action, "forget"))
		return run_forget(f);
	if (!strcmp(action, "fetch"))
		return fetch_run(f);
	return run_sessions(f, action);
}

static int run_request(const struct kymo_value *request)
{
	struct fleet f = {
		.args = kymo_value_get(request, "args"),
		.options = kymo_value_get(request, "options"),
		.result = kymo_value_bool(kymo_value_get(request, "json")) ? kymo_value_new()
									   : NULL,
	};
	int code = run_action(&f, kymo_value_string(kymo_value_get(request, "action")));

	if (f.result && !kymo_value_get(f.result, "ok"))
		kymo_value_set_bool(f.result, "ok", 1);
	if (f.result)
		puts(kymo_value_json(f.result));
	kymo_value_free(f.result);
	hosts_deinit(&f.hosts);
	link_close(&f.link);
	if (!code && fflush(stdout))
		return FLEET_FAILED;
	return code;
}

int main(int argc, char **argv)
{
	const char *arg = argc == 2 ? argv[1] : "";
	struct json_object *request;
	int code;

	ky_occupy_standard_files();
	ky_heed_children();
	if (!strcmp(arg, "-h") || !strcmp(arg, "--help"))
		ky_print_and_exit(help);
	if (!strcmp(arg, "-V") || !strcmp(arg, "--version"))
		ky_print_and_exit("kymo-fleet " KYMO_VERSION "\n");
	request = *arg == '{' ? json_tokener_parse(arg) : NULL;
	if (!json_object_is_type(request, json_type_object)) {
		fputs("kymo-fleet: started by 'kymo fleet', not by hand\n", stderr);
		json_object_put(request);
		return FLEET_USAGE;
	}
	signal(SIGPIPE, SIG_IGN);
	code = run_request((const struct kymo_value *)request);
	json_object_put(request);
	nats_Close();
	return code;
}
