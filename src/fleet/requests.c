/* SPDX-License-Identifier: MIT */
#include "fleet/requests.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/text.h"
#include "fleet/ids.h"
#include "ship/files.h"
#include "ship/segment.h"

#define CALL_MS	    20000
#define SNAPSHOT_MS 300000 /* a slow disk may need so long for all buffers */
#define LIST_MS	    2000
#define TRACE_SIZE  16u

static void set_failure(struct kymo_value *answer, const char *text)
{
	kymo_value_set_bool(answer, "ok", 0);
	kymo_value_set_string(answer, "error", text);
}

/* --- the session daemon --- */

/* Calls this host's daemon. Returns its reply, or NULL after a report into `to`. */
static struct kymo_value *call(struct kymo_value *to, const char *command,
	const struct kymo_value *params, unsigned timeout_ms)
{
	struct kymo_ctl *ctl = NULL;
	struct kymo_value *reply = NULL;
	char late[64];
	int r = kymo_ctl_open(NULL, &ctl);

	if (!r) {
		kymo_ctl_set_timeout(ctl, timeout_ms);
		r = kymo_ctl_call(ctl, command, params, &reply);
	}
	kymo_ctl_close(ctl);
	if (!r && kymo_reply_ok(reply))
		return reply;
	snprintf(late, sizeof(late), "the session daemon has not answered within %u s",
		timeout_ms / 1000);
	set_failure(to, !r				     ? kymo_reply_error(reply)
			: r == -ETIMEDOUT		     ? late
			: r == -ENOENT || r == -ECONNREFUSED ? "no session daemon runs"
							     : strerror(-r));
	kymo_value_free(reply);
	return NULL;
}

struct kymo_value *requests_describe(const struct requests *r)
{
	struct kymo_value *v = kymo_value_new();
	_cleanup_value_ struct kymo_value *trouble = kymo_value_new();
	_cleanup_value_ struct kymo_value *list = call(trouble, "list", NULL, LIST_MS);
	const struct kymo_value *sessions = kymo_value_get(list, "sessions"), *s;
	char boot[64] = "";
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

	if (f && fgets(boot, sizeof(boot), f))
		boot[strcspn(boot, "\n")] = '\0';
	if (f)
		fclose(f);
	kymo_value_set_string(v, "host", r->host);
	kymo_value_set_string(v, "boot", boot);
	kymo_value_set_string(v, "version", KYMO_VERSION);
	kymo_value_set_u64(v, "pid", (uint64_t)getpid());
	if (!list)
		kymo_value_set(v, "trouble", kymo_value_get(trouble, "error"));
	kymo_value_set_list(v, "sessions");
	for (size_t i = 0; i < KY_MIN(kymo_value_count(sessions), (size_t)FLEET_SESSIONS_MAX);
		i++) {
		struct kymo_value *one = kymo_value_new();

		s = kymo_value_at(sessions, i);
		kymo_value_set(one, "name", kymo_value_get(s, "name"));
		kymo_value_set(one, "state", kymo_value_get(s, "state"));
		kymo_value_add(v, "sessions", one);
		kymo_value_free(one);
	}
	return v;
}

/* --- sessions of a request --- */

/* Returns whether the names are such that sessions can have. */
static bool sessions_valid(const struct kymo_value *sessions)
{
	if (kymo_value_count(sessions) > FLEET_SESSIONS_MAX)
		return false;
	for (size_t i = 0; i < kymo_value_count(sessions); i++)
		if (!ky_name_valid(kymo_value_string(kymo_value_at(sessions, i))))
			return false;
	return true;
}

/* Adds what came of a session to the answer, which fails with the first that fails. */
static void add_outcome(struct kymo_value *answer, const char *name, struct kymo_value *outcome)
{
	char text[512];

	kymo_value_set_string(outcome, "name", name);
	if (!kymo_value_get(outcome, "ok"))
		kymo_value_set_bool(outcome, "ok", 1);
	kymo_value_add(answer, "sessions", outcome);
	if (kymo_reply_ok(outcome) || !kymo_reply_ok(answer))
		return;
	snprintf(text, sizeof(text), "%s", kymo_reply_error(outcome));
	set_failure(answer, text);
}

static void start_or_stop(
	struct kymo_value *answer, const char *what, const struct kymo_value *sessions)
{
	if (!kymo_value_count(sessions))
		set_failure(answer, "the request names no session");
	for (size_t i = 0; i < kymo_value_count(sessions); i++) {
		const char *name = kymo_value_string(kymo_value_at(sessions, i));
		_cleanup_value_ struct kymo_value *outcome = kymo_value_new(),
						  *params = kymo_value_new(), *reply = NULL;

		kymo_value_set_string(params, "session", name);
		reply = call(outcome, what, params, CALL_MS);
		add_outcome(answer, name, outcome);
	}
}

/* --- snapshots --- */

/* Stores the sessions that record for snapshots. Returns false after a report. */
static bool find_flights(struct kymo_value *answer, struct kymo_value *to)
{
	_cleanup_value_ struct kymo_value *list = call(answer, "list", NULL, CALL_MS);
	const struct kymo_value *sessions = kymo_value_get(list, "sessions");

	kymo_value_set_list(to, "sessions");
	for (size_t i = 0; i < kymo_value_count(sessions); i++) {
		const struct kymo_value *s = kymo_value_at(sessions, i);
		const char *name = kymo_value_string(kymo_value_get(s, "name"));
		_cleanup_value_ struct kymo_value *params = kymo_value_new(),
						  *nothing = kymo_value_new(), *status;

		kymo_value_set_string(params, "session", name);
		status = call(nothing, "status", params, CALL_MS);
		s = kymo_value_get(status, "session");
		if (kymo_value_bool(kymo_value_get(s, "snapshot")) &&
			!strcmp(kymo_value_string(kymo_value_get(s, "state")), "started"))
			kymo_value_add_string(to, "sessions", name);
	}
	return list != NULL;
}

struct search {
	int dir;
	const uint8_t *id;
};

/*
 * A trace id lies in records as its 16 bytes do: nothing has to be decoded. Returns 1 if the file
 * has it, 0, or -errno.
 */
static int search_file(void *arg, const char *path)
{
	struct search *s = arg;
	_cleanup_close_ int fd = openat(s->dir, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	bool hit;
	void *p;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!st.st_size)
		return 0;
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	hit = memmem(p, (size_t)st.st_size, s->id, TRACE_SIZE) != NULL;
	munmap(p, (size_t)st.st_size);
	return hit;
}

/* Returns 1 if the snapshot has the trace id, 0, or -errno. */
static int find_trace(const struct held *h, const char *id, const uint8_t trace[TRACE_SIZE])
{
	struct search s = {openat(h->dir, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC), trace};
	int r = s.dir < 0 ? -errno : files_walk(s.dir, search_file, NULL, &s);

	ky_close(s.dir);
	return r;
}

/* The daemon's counts of a snapshot, for the far end's accounts. */
static void copy_counts(struct kymo_value *to, const struct kymo_value *snapshot)
{
	static const char *const counts[] = {
		"recorded", "discarded", "overwritten", "left_out", "bytes"};

	for (size_t i = 0; i < KY_ARRAY_SIZE(counts); i++)
		if (kymo_value_get(snapshot, counts[i]))
			kymo_value_set(to, counts[i], kymo_value_get(snapshot, counts[i]));
}

static void take_one(const struct requests *r, struct kymo_value *answer, const char *id,
	const char *name, const struct kymo_value *max_size)
{
	_cleanup_value_ struct kymo_value *outcome = kymo_value_new(), *params = kymo_value_new(),
					  *reply = NULL;
	char output[PATH_MAX + FLEET_ID_MAX + KY_OBJECT_NAME_MAX + 3], recording[40];
	uint8_t bytes[SEGMENT_ID_SIZE];

	snprintf(output, sizeof(output), "%s/%s/%s", r->held->path, id, name);
	kymo_value_set_string(params, "session", name);
	kymo_value_set_string(params, "output", output);
	if (max_size)
		kymo_value_set(params, "max_size", max_size);
	reply = call(outcome, "snapshot", params, SNAPSHOT_MS);
	copy_counts(outcome, kymo_value_get(reply, "snapshot"));
	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		set_failure(outcome, "cannot get random numbers");
	ids_to_hex(bytes, sizeof(bytes), recording);
	kymo_value_set_string(outcome, "recording", recording);
	add_outcome(answer, name, outcome);
}

static bool has_session(const struct kymo_value *answer)
{
	const struct kymo_value *sessions = kymo_value_get(answer, "sessions");
	size_t i = 0;

	while (i < kymo_value_count(sessions) && !kymo_reply_ok(kymo_value_at(sessions, i)))
		i++;
	return i < kymo_value_count(sessions);
}

/*
 * Is it to be shipped: what was asked for, what there is, and what was found. If the search fails,
 * it may have what was asked for.
 */
static void decide(const struct requests *r, struct kymo_value *answer, const char *id,
	const char *trace, bool is_wanted)
{
	uint8_t bytes[TRACE_SIZE];
	bool ships = is_wanted && has_session(answer);

	if (ids_from_hex(trace, bytes, sizeof(bytes))) {
		const int hit = find_trace(r->held, id, bytes);
		char text[128];

		snprintf(text, sizeof(text), "the search for the trace id failed: %s",
			strerror(-hit));
		if (hit >= 0)
			kymo_value_set_bool(answer, "hit", hit);
		else if (kymo_reply_ok(answer))
			set_failure(answer, text);
		ships = ships && hit;
	}
	kymo_value_set_bool(answer, "ships", ships);
}

static int count_file(void *arg, const char *path)
{
	unsigned *n = arg;

	(void)path;
	return ++*n > FLEET_FILES_MAX;
}

/* The host refuses now what it cannot ship later. */
static void check_files(const struct requests *r, struct kymo_value *answer, const char *id)
{
	_cleanup_close_ int dir = openat(r->held->dir, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	unsigned n = 0;

	if (dir < 0 || files_walk(dir, count_file, NULL, &n) <= 0)
		return;
	set_failure(answer, "the snapshot has more than 65535 files");
	kymo_value_set_bool(answer, "ships", 0);
}

static void take_snapshot(
	struct requests *r, struct kymo_value *answer, const struct kymo_value *request)
{
	const char *id = kymo_value_string(kymo_value_get(request, "id"));
	const struct kymo_value *sessions = kymo_value_get(request, "sessions");
	const char *trace = kymo_value_string(kymo_value_get(request, "trace_id"));
	_cleanup_value_ struct kymo_value *flights = kymo_value_new();
	uint8_t bytes[TRACE_SIZE];
	int ret;

	if (*trace && !ids_from_hex(trace, bytes, sizeof(bytes))) {
		set_failure(answer, "the trace id has not 32 hexadecimal digits");
		return;
	}
	if (!kymo_value_count(sessions)) {
		if (!find_flights(answer, flights))
			return;
		sessions = kymo_value_get(flights, "sessions");
		if (!kymo_value_count(sessions)) {
			set_failure(answer, "no session records for snapshots");
			return;
		}
	}
	ret = held_make(r->held, id);
	if (ret == -EDQUOT) {
		set_failure(answer,
			"no room: the snapshots that wait to be shipped have reached 'hold-size'");
		return;
	}
	for (size_t i = 0; !ret && i < kymo_value_count(sessions); i++)
		take_one(r, answer, id, kymo_value_string(kymo_value_at(sessions, i)),
			kymo_value_get(request, "max_size"));
	if (!ret)
		decide(r, answer, id, trace, !kymo_value_bool(kymo_value_get(request, "hold")));
	if (!ret)
		check_files(r, answer, id);
	if (!ret)
		ret = held_complete(r->held, id, answer);
	if (ret < 0) {
		set_failure(answer, strerror(-ret));
		held_remove(r->held, id); /* nobody can use it, and the disk may be full */
	}
}

/*
 * Answers whether this host holds a snapshot. If the request names this host, the agent ships the
 * snapshot once more, because the servers have lost it.
 */
static struct kymo_value *find_held(
	struct requests *r, const struct kymo_value *request, struct kymo_value *answer)
{
	const char *id = kymo_value_string(kymo_value_get(request, "snapshot"));
	const char *host = kymo_value_string(kymo_value_get(request, "host"));
	struct kymo_value *report = link_id_valid(id) ? held_report(r->held, id) : NULL;
	int ret = 0;

	if (!report) {
		set_failure(answer, "it does not hold the snapshot (any more)");
		return answer;
	}
	kymo_value_free(answer);
	kymo_value_set_bool(report, "ok", 1); /* it may have failed in part, when it was taken */
	if (*host && kymo_value_bool(kymo_value_get(report, "ships")))
		ret = held_set_again(r->held, id, kymo_value_string(kymo_value_get(request, "id")));
	if (ret < 0)
		set_failure(report, strerror(-ret));
	return report;
}

/* --- answers --- */

static struct kymo_value *answer_to(
	struct requests *r, const char *what, const struct kymo_value *request)
{
	const char *id = kymo_value_string(kymo_value_get(request, "id"));
	const struct kymo_value *sessions = kymo_value_get(request, "sessions");
	struct kymo_value *answer;

	if (!strcmp(what, "hosts"))
		answer = requests_describe(r);
	else if (!strcmp(what, "snapshot") && (answer = held_report(r->held, id)))
		return answer;
	else
		answer = kymo_value_new();
	kymo_value_set_string(answer, "host", r->host);
	kymo_value_set_bool(answer, "ok", 1);
	if (!sessions_valid(sessions))
		set_failure(answer, "the request names a session that cannot exist");
	else if (!strcmp(what, "start") || !strcmp(what, "stop"))
		start_or_stop(answer, what, sessions);
	else if (!strcmp(what, "snapshot"))
		take_snapshot(r, answer, request);
	else if (!strcmp(what, "ship"))
		answer = find_held(r, request, answer);
	else if (strcmp(what, "hosts") && strcmp(what, "time"))
		set_failure(answer, "this agent does not know the request: is it older?");
	return answer;
}

static struct kymo_value *find_kept(const struct requests *r, const char *id)
{
	for (unsigned i = 0; i < REQUESTS_KEPT; i++)
		if (r->kept[i].answer && !strcmp(r->kept[i].id, id))
			return r->kept[i].answer;
	return NULL;
}

static void keep_answer(struct requests *r, const char *id, struct kymo_value *answer)
{
	const unsigned i = r->next++ % REQUESTS_KEPT;

	kymo_value_free(r->kept[i].answer);
	snprintf(r->kept[i].id, sizeof(r->kept[i].id), "%s", id);
	r->kept[i].answer = answer;
}

const char *requests_handle(struct requests *r, const char *what, const struct kymo_value *request,
	const struct kymo_value **ret_answer)
{
	const char *id = kymo_value_string(kymo_value_get(request, "id"));
	const char *host = kymo_value_string(kymo_value_get(request, "host"));
	struct kymo_value *answer;

	*ret_answer = NULL;
	if (!link_id_valid(id) || (*host && strcmp(host, r->host)))
		return NULL;
	answer = find_kept(r, id);
	if (!answer) {
		answer = answer_to(r, what, request);
		keep_answer(r, id, answer);
	}
	kymo_value_set_u64(answer, "agent", r->agent);
	/* For the clock's error: both clocks at this moment, and which round it was. */
	kymo_value_set_u64(answer, "counter", ky_clock_counter());
	kymo_value_set_u64(answer, "monotonic", ky_clock_ns(CLOCK_MONOTONIC));
	kymo_value_set_u64(answer, "round", kymo_value_u64(kymo_value_get(request, "round")));
	*ret_answer = answer;
	return id;
}
