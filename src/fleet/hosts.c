/* SPDX-License-Identifier: MIT */
#include "fleet/hosts.h"

#include <dirent.h>
#include <sys/random.h>
#include <time.h>

#include "base/clock.h"
#include "fleet/ids.h"

#define ASK_AGAIN_NS 1000000000
#define ABSENT_NS    UINT64_C(2000000000) /* for hosts that have not announced themselves */
#define WAIT_MS	     50
#define ROUNDS	     8
#define ROUNDS_MAX   40 /* with those that a host missed: it may have to wait for a server */
#define ROUND_NS     250000000

int64_t hosts_now_ns(void)
{
	return (int64_t)ky_clock_ns(CLOCK_REALTIME);
}

static int compare_hosts(const void *a, const void *b)
{
	return strcmp(((const struct host *)a)->name, ((const struct host *)b)->name);
}

static void sort_hosts(struct hosts *h)
{
	if (h->n)
		qsort(h->v, h->n, sizeof(*h->v), compare_hosts);
}

struct host *hosts_get(struct hosts *h, const char *name)
{
	struct host *v;

	for (size_t i = 0; i < h->n; i++)
		if (!strcmp(h->v[i].name, name))
			return &h->v[i];
	v = reallocarray(h->v, h->n + 1, sizeof(*v));
	if (!v)
		return NULL;
	h->v = v;
	v += h->n++;
	*v = (struct host){.error_ns = -1};
	snprintf(v->name, sizeof(v->name), "%s", name);
	return v;
}

void hosts_deinit(struct hosts *h)
{
	for (size_t i = 0; i < h->n; i++) {
		kymo_value_free(h->v[i].announced);
		kymo_value_free(h->v[i].answer);
	}
	free(h->v);
}

static int add_announced(struct hosts *h, const struct stored *s)
{
	const char *name = link_host(s->msg);
	struct host *host = name ? hosts_get(h, name) : NULL;

	if (!host)
		return name ? -ENOMEM : 0;
	kymo_value_free(host->announced);
	host->announced = link_value(s->msg);
	host->seen_ns = s->time_ns;
	return 0;
}

int hosts_load(struct hosts *h, struct link *l)
{
	struct stored s;
	int r;

	for (uint64_t seq = 1; !(r = link_next(l, FLEET_HOSTS, FLEET_HOSTS_PREFIX ">", seq, &s));) {
		r = add_announced(h, &s);
		seq = s.seq + 1;
		natsMsg_Destroy(s.msg);
		if (r < 0)
			return r;
	}
	sort_hosts(h);
	return r == -ENOENT ? 0 : r;
}

int hosts_add_absent(struct hosts *h, const char *path)
{
	DIR *d = opendir(path);
	const struct dirent *e;
	struct host *host;
	int r = 0;

	while (d && !r && (e = readdir(d))) {
		if (!config_host_valid(e->d_name))
			continue;
		host = hosts_get(h, e->d_name);
		r = host ? 0 : -ENOMEM;
		if (host) {
			host->has_identity = true;
			host->is_absent = !host->seen_ns;
		}
	}
	if (d)
		closedir(d);
	sort_hosts(h);
	return r;
}

/* Returns how many have announced themselves, and have not answered. */
static size_t count_missing(const struct hosts *h)
{
	size_t n = 0;

	for (size_t i = 0; i < h->n; i++)
		n += !h->v[i].answer && !h->v[i].is_absent;
	return n;
}

static size_t count_answers(const struct hosts *h)
{
	size_t n = 0;

	for (size_t i = 0; i < h->n; i++)
		n += h->v[i].answer != NULL;
	return n;
}

/* Readable, in the order of time, and nobody else's. */
static void make_id(char id[FLEET_ID_MAX + 1])
{
	uint8_t bytes[4] = {0};
	char digits[2 * sizeof(bytes) + 1], date[32];
	time_t now = time(NULL);
	struct tm tm;

	getrandom(bytes, sizeof(bytes), 0);
	ids_to_hex(bytes, sizeof(bytes), digits);
	strftime(date, sizeof(date), "%Y%m%d-%H%M%S", gmtime_r(&now, &tm));
	snprintf(id, FLEET_ID_MAX + 1, "%.20s-%s", date, digits);
}

/* A conversation: a request, and the subscription to its answers. */
struct talk {
	struct hosts *hosts;
	struct link *link;
	const char *what;
	struct kymo_value *request;
	natsSubscription *sub;
};

static int talk_begin(struct talk *t)
{
	char id[FLEET_ID_MAX + 1], subject[FLEET_SUBJECT_MAX];
	natsStatus s;

	make_id(id);
	kymo_value_set_string(t->request, "id", id);
	snprintf(subject, sizeof(subject), "kymo.rep.%s.*", id);
	s = natsConnection_SubscribeSync(&t->sub, t->link->nc, subject);
	if (s == NATS_OK)
		s = link_flush(t->link);
	return s == NATS_OK ? 0 : link_fail(t->link, s, subject);
}

static int talk_ask(struct talk *t)
{
	char subject[FLEET_SUBJECT_MAX];
	natsStatus s;
	int r;

	snprintf(subject, sizeof(subject), FLEET_ASK "%s", t->what);
	r = link_say(t->link, subject, t->request);
	if (r < 0)
		return r;
	/* One that is lost with a server is asked again. */
	s = link_flush(t->link);
	return s != NATS_CONNECTION_CLOSED ? 0 : link_fail(t->link, s, subject);
}

/* Notes which agent has answered. The first one answers again after another: both run. */
static void note_agent(struct host *h, const struct kymo_value *answer)
{
	const uint64_t agent = kymo_value_u64(kymo_value_get(answer, "agent"));

	if (!agent)
		return;
	if (!h->agents[0])
		h->agents[0] = agent;
	else if (agent != h->agents[0])
		h->agents[1] = agent;
	else if (h->agents[1])
		h->is_double = true;
}

/* Waits a little for an answer. Returns the host; NULL with *ret_r 0 or -errno. */
static struct host *talk_hear(struct talk *t, struct kymo_value **ret_answer, int *ret_r)
{
	_cleanup_msg_ natsMsg *msg = NULL;
	natsStatus s = natsSubscription_NextMsg(&msg, t->sub, WAIT_MS);
	const char *name = s == NATS_OK ? link_host(msg) : NULL;
	struct host *host;

	*ret_r = s == NATS_OK || s == NATS_TIMEOUT ? 0 : link_fail(t->link, s, "answers");
	*ret_answer = name ? link_value(msg) : NULL;
	host = *ret_answer ? hosts_get(t->hosts, name) : NULL;
	if (host)
		note_agent(host, *ret_answer);
	return host;
}

/* How long is the time of the answers that are missing? */
static uint64_t time_for(const struct hosts *h, uint64_t timeout_ns)
{
	return count_missing(h)		 ? timeout_ns
	       : count_answers(h) < h->n ? KY_MIN(timeout_ns, ABSENT_NS)
					 : 0;
}

int hosts_ask(struct hosts *h, struct link *l, const char *what, struct kymo_value *request,
	uint64_t timeout_us)
{
	struct talk t = {.hosts = h, .link = l, .what = what, .request = request};
	const uint64_t begin = ky_clock_ns(CLOCK_MONOTONIC);
	uint64_t now = begin, asked = 0;
	int r = talk_begin(&t);

	while (!r && now - begin < time_for(h, timeout_us * 1000)) {
		struct kymo_value *answer = NULL;
		struct host *host;

		if (!asked || now - asked > ASK_AGAIN_NS) {
			asked = now;
			r = talk_ask(&t);
		}
		host = r ? NULL : talk_hear(&t, &answer, &r);
		if (host && !host->answer)
			host->answer = answer;
		else
			kymo_value_free(answer);
		now = ky_clock_ns(CLOCK_MONOTONIC);
	}
	natsSubscription_Destroy(t.sub);
	return r;
}

/*
 * The host's clocks were read between our two moments: in the middle, wrong by half of the way at
 * most.
 */
static void take_clock(struct host *h, const struct kymo_value *answer, int64_t t1, int64_t t2)
{
	const int64_t error = (t2 - t1) / 2 + 1;

	if (t2 < t1 || (h->error_ns >= 0 && error >= h->error_ns))
		return;
	h->counter = kymo_value_u64(kymo_value_get(answer, "counter"));
	h->monotonic = kymo_value_u64(kymo_value_get(answer, "monotonic"));
	h->at_ns = t1 + (t2 - t1) / 2;
	h->error_ns = error;
}

/* One round: until all that are wanted have answered it, which counts it, or its time is over. */
static int measure_once(struct talk *t, unsigned round, size_t n_wanted, unsigned *n_whole)
{
	const int64_t t1 = hosts_now_ns();
	const uint64_t begin = ky_clock_ns(CLOCK_MONOTONIC);
	size_t n = 0;
	int r;

	kymo_value_set_u64(t->request, "round", round);
	r = talk_ask(t);
	while (!r && n < n_wanted && ky_clock_ns(CLOCK_MONOTONIC) - begin < ROUND_NS) {
		struct kymo_value *answer = NULL;
		struct host *host = talk_hear(t, &answer, &r);

		if (host && kymo_value_u64(kymo_value_get(answer, "round")) == round) {
			take_clock(host, answer, t1, hosts_now_ns());
			n++;
		}
		kymo_value_free(answer);
	}
	*n_whole += n == n_wanted;
	return r;
}

int hosts_measure(struct hosts *h, struct link *l)
{
	_cleanup_value_ struct kymo_value *request = kymo_value_new();
	struct talk t = {.hosts = h, .link = l, .what = "time", .request = request};
	const size_t n = count_answers(h);
	unsigned n_whole = 0;
	int r;

	r = talk_begin(&t);
	for (unsigned round = 1; !r && n && n_whole < ROUNDS && round <= ROUNDS_MAX; round++) {
		if (link_is_late(l))
			break;
		r = measure_once(&t, round, n, &n_whole);
	}
	natsSubscription_Destroy(t.sub);
	return r;
}
