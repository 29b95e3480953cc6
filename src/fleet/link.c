/* SPDX-License-Identifier: MIT */
#include "fleet/link.h"

#include <json-c/json.h>

#include "base/clock.h"

#define VALUE_MAX    (1 << 20)
#define DEPTH_MAX    8
#define TRY_MS	     1000 /* for one attempt */
#define PAUSE_MS     100  /* between two */
#define ATTEMPTS     12	  /* a leader that was just elected knows all messages then */
#define RECONNECT_MS 200
#define JITTER_MS    500
#define PING_MS	     5000
#define BUFFER_BYTES (1 << 20)

/* The connection remembers such an error: link_fail() reports it. The library's own would print. */
static void on_error(natsConnection *nc, natsSubscription *sub, natsStatus status, void *closure)
{
}

static bool is_refused(const struct link *l)
{
	const char *text = NULL;

	if (l->nc)
		natsConnection_GetLastError(l->nc, &text);
	return text && strcasestr(text, "permissions violation");
}

/* Returns the library's last words, without the place in its source that they begin with. */
static const char *last_words(natsStatus status)
{
	const char *last = nats_GetLastError(NULL);
	const char *end = last && *last == '(' ? strstr(last, "): ") : NULL;

	return end ? end + 3 : last && *last ? last : natsStatus_GetText(status);
}

int link_fail(struct link *l, natsStatus status, const char *what)
{
	if (is_refused(l)) {
		snprintf(l->why, sizeof(l->why), "%s: the server does not permit that to '%s'",
			what, l->name);
		return -EACCES;
	}
	/* The library's words, and the subject, say nothing to a user. */
	if (status == NATS_TIMEOUT || status == NATS_NO_RESPONDERS)
		snprintf(l->why, sizeof(l->why),
			"the servers did not answer in time ('kymo fleet setup' says which do not run)");
	else
		snprintf(l->why, sizeof(l->why), "%s: %s", what,
			status == NATS_NO_SERVER
				? "no server answers (is the address right, and does it run?)"
				: last_words(status));
	switch (status) {
	case NATS_TIMEOUT:
		return -ETIMEDOUT;
	case NATS_CONNECTION_CLOSED:
	case NATS_CONNECTION_DISCONNECTED:
	case NATS_NO_SERVER:
	case NATS_NO_RESPONDERS:
		return -ENOTCONN;
	default:
		return -EIO;
	}
}

/* servers: a list with commas. The library takes an array. */
static natsStatus set_servers(natsOptions *o, const char *servers)
{
	const char *list[FLEET_SERVERS_MAX];
	char copy[1024], *rest = copy, *one;
	int n = 0;

	snprintf(copy, sizeof(copy), "%s", servers);
	while (n < (int)FLEET_SERVERS_MAX && (one = strsep(&rest, ", ")))
		if (*one)
			list[n++] = one;
	return natsOptions_SetServers(o, list, n);
}

static natsStatus set_options(natsOptions *o, const struct fleet_config *c)
{
	char inbox[FLEET_HOST_MAX + 16];
	natsStatus s = set_servers(o, c->servers);

	snprintf(inbox, sizeof(inbox), "_INBOX.%s", c->name);
	if (s == NATS_OK)
		s = natsOptions_SetName(o, c->name);
	if (s == NATS_OK)
		s = natsOptions_SetCustomInboxPrefix(o, inbox);
	if (s == NATS_OK)
		s = natsOptions_SetErrorHandler(o, on_error, NULL);
	if (s == NATS_OK)
		s = natsOptions_SetSecure(o, true);
	if (s == NATS_OK)
		s = natsOptions_LoadCATrustedCertificates(o, c->ca);
	if (s == NATS_OK)
		s = natsOptions_LoadCertificatesChain(o, c->cert, c->key);
	if (s == NATS_OK)
		s = natsOptions_SetExpectedHostname(o, FLEET_SERVER_NAME);
	if (s == NATS_OK)
		s = natsOptions_SetTimeout(o, FLEET_WAIT_MS);
	if (s == NATS_OK)
		s = natsOptions_SetMaxReconnect(o, -1);
	if (s == NATS_OK)
		s = natsOptions_SetReconnectWait(o, RECONNECT_MS);
	if (s == NATS_OK)
		s = natsOptions_SetReconnectJitter(o, JITTER_MS, JITTER_MS);
	if (s == NATS_OK)
		s = natsOptions_SetPingInterval(o, PING_MS);
	if (s == NATS_OK)
		s = natsOptions_SetReconnectBufSize(o, BUFFER_BYTES);
	return s;
}

/* Says which certificate is at fault. A server that refuses ours closes the connection. */
static void explain_failure(struct link *l, natsStatus status, const struct fleet_config *c)
{
	if (status == NATS_PROTOCOL_ERROR)
		snprintf(l->why, sizeof(l->why),
			"%.150s: the server refuses '%.150s': it is not valid by the server's clock, or is of another fleet",
			c->servers, c->cert);
	else if (status == NATS_SSL_ERROR)
		snprintf(l->why, sizeof(l->why),
			"%.150s: its certificate is not valid by this host's clock, or '%.150s' is of another fleet (%.120s)",
			c->servers, c->ca, last_words(status));
	else
		link_fail(l, status, c->servers);
}

int link_open(struct link *l, const struct fleet_config *c)
{
	natsOptions *o = NULL;
	natsStatus s = natsOptions_Create(&o);

	*l = (struct link){0};
	snprintf(l->name, sizeof(l->name), "%s", c->name);
	if (s == NATS_OK)
		s = set_options(o, c);
	if (s != NATS_OK) {
		snprintf(l->why, sizeof(l->why), "%s", last_words(s));
	} else {
		s = natsConnection_Connect(&l->nc, o);
		if (s == NATS_OK)
			s = natsConnection_JetStream(&l->js, l->nc, NULL);
		if (s != NATS_OK)
			explain_failure(l, s, c);
	}
	natsOptions_Destroy(o);
	if (s == NATS_OK)
		return 0;
	natsConnection_Destroy(l->nc);
	l->nc = NULL;
	return -ENOTCONN;
}

void link_close(struct link *l)
{
	jsCtx_Destroy(l->js);
	natsConnection_Destroy(l->nc);
	*l = (struct link){0};
}

void link_limit(struct link *l, uint64_t us)
{
	l->end_ns = ky_clock_ns(CLOCK_MONOTONIC) + us * 1000 + FLEET_WAIT_MS * UINT64_C(1000000);
}

bool link_is_late(const struct link *l)
{
	return l->end_ns && ky_clock_ns(CLOCK_MONOTONIC) >= l->end_ns;
}

natsStatus link_flush(struct link *l)
{
	const uint64_t now = ky_clock_ns(CLOCK_MONOTONIC);
	uint64_t ms = FLEET_WAIT_MS;

	if (l->end_ns)
		ms = l->end_ns > now ? KY_MIN(ms, (l->end_ns - now) / 1000000 + 1) : 1;
	return natsConnection_FlushTimeout(l->nc, (int64_t)ms);
}

int link_say(struct link *l, const char *subject, const struct kymo_value *v)
{
	natsStatus s = natsConnection_PublishString(l->nc, subject, kymo_value_json(v));

	return s == NATS_OK ? 0 : link_fail(l, s, subject);
}

/* Is it worth another attempt? A server is waited for that is busy, or starts again. */
static bool is_passing(const struct link *l, natsStatus s, uint64_t begin_ns)
{
	const uint64_t ms = (ky_clock_ns(CLOCK_MONOTONIC) - begin_ns) / 1000000;

	if (s == NATS_OK || s == NATS_NOT_FOUND || s == NATS_CONNECTION_CLOSED ||
		ms > FLEET_WAIT_MS || link_is_late(l) || is_refused(l))
		return false;
	nats_Sleep(PAUSE_MS); /* without a leader, a stream refuses at once */
	return true;
}

int link_store(struct link *l, const char *subject, const char *id, const void *data, size_t n)
{
	jsPubOptions o;
	jsErrCode code;
	const uint64_t begin = ky_clock_ns(CLOCK_MONOTONIC);
	natsStatus s;

	jsPubOptions_Init(&o);
	o.MaxWait = TRY_MS;
	o.MsgId = id;
	do
		s = js_Publish(NULL, l->js, subject, data, (int)n, &o, &code);
	while (is_passing(l, s, begin));
	return s == NATS_OK ? 0 : link_fail(l, s, subject);
}

int link_store_value(
	struct link *l, const char *subject, const char *id, const struct kymo_value *v)
{
	const char *text = kymo_value_json(v);

	return link_store(l, subject, id, text, strlen(text));
}

static natsStatus get_once(
	struct link *l, const char *stream, jsDirectGetMsgOptions *o, natsMsg **ret)
{
	const uint64_t begin = ky_clock_ns(CLOCK_MONOTONIC);
	jsOptions wait;
	natsStatus s;

	jsOptions_Init(&wait);
	wait.Wait = TRY_MS;
	do
		s = js_DirectGetMsg(ret, l->js, stream, &wait, o);
	while (is_passing(l, s, begin));
	return s;
}

/*
 * Does the stream's leader say that there is none? No answer says nothing, nor does that of a
 * server whose copy is damaged: it knows no such stream.
 */
static bool leader_has_none(struct link *l, const char *stream, const jsDirectGetMsgOptions *o)
{
	_cleanup_value_ struct kymo_value *request = kymo_value_new(), *answer = NULL;
	_cleanup_msg_ natsMsg *msg = NULL;
	char subject[FLEET_SUBJECT_MAX];

	if (o->LastBySubject) {
		kymo_value_set_string(request, "last_by_subj", o->LastBySubject);
	} else {
		kymo_value_set_u64(request, "seq", o->Sequence);
		kymo_value_set_string(request, "next_by_subj", o->NextBySubject);
	}
	snprintf(subject, sizeof(subject), "$JS.API.STREAM.MSG.GET.%s", stream);
	if (natsConnection_RequestString(&msg, l->nc, subject, kymo_value_json(request), TRY_MS) ==
		NATS_OK)
		answer = link_value(msg);
	return kymo_value_u64(kymo_value_get(kymo_value_get(answer, "error"), "err_code")) ==
	       (uint64_t)JSNoMessageFoundErr;
}

/*
 * A copy of the stream may be behind, or damaged, the leader's too, and any of them answers. So
 * where there are copies, a message is absent only if whoever answers has none ATTEMPTS times, and
 * the leader likewise.
 */
static int get_stored(
	struct link *l, const char *stream, jsDirectGetMsgOptions *o, struct stored *ret)
{
	const uint64_t begin = ky_clock_ns(CLOCK_MONOTONIC);
	unsigned n_absent = 0;
	natsStatus s;

	*ret = (struct stored){0};
	while ((s = get_once(l, stream, o, &ret->msg)) == NATS_NOT_FOUND) {
		if (!l->has_copies)
			return -ENOENT;
		n_absent = leader_has_none(l, stream, o) ? n_absent + 1 : 0;
		if (n_absent == ATTEMPTS)
			return -ENOENT;
		s = NATS_TIMEOUT; /* another one has it, or there is no leader */
		if (!is_passing(l, s, begin))
			break;
	}
	if (s != NATS_OK)
		return link_fail(l, s, stream);
	ret->seq = natsMsg_GetSequence(ret->msg);
	ret->time_ns = natsMsg_GetTime(ret->msg);
	return 0;
}

int link_next(
	struct link *l, const char *stream, const char *subject, uint64_t seq, struct stored *ret)
{
	jsDirectGetMsgOptions o;

	jsDirectGetMsgOptions_Init(&o);
	o.Sequence = seq;
	o.NextBySubject = subject;
	return get_stored(l, stream, &o, ret);
}

int link_last(struct link *l, const char *stream, const char *subject, struct stored *ret)
{
	jsDirectGetMsgOptions o;

	jsDirectGetMsgOptions_Init(&o);
	o.LastBySubject = subject;
	return get_stored(l, stream, &o, ret);
}

struct kymo_value *link_value(const natsMsg *msg)
{
	const int n = natsMsg_GetDataLength(msg);
	struct json_tokener *t = n > 0 && n <= VALUE_MAX ? json_tokener_new_ex(DEPTH_MAX) : NULL;
	struct json_object *o = t ? json_tokener_parse_ex(t, natsMsg_GetData(msg), n) : NULL;

	if (t)
		json_tokener_free(t);
	if (json_object_is_type(o, json_type_object))
		return (struct kymo_value *)o;
	json_object_put(o);
	return NULL;
}

const char *link_host(const natsMsg *msg)
{
	const char *dot = strrchr(natsMsg_GetSubject(msg), '.');

	return dot && config_host_valid(dot + 1) ? dot + 1 : NULL;
}

const char *link_what(const natsMsg *msg)
{
	return strrchr(natsMsg_GetSubject(msg), '.') + 1;
}

bool link_id_valid(const char *id)
{
	const size_t n = strspn(
		id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-");

	return n && n <= FLEET_ID_MAX && !id[n];
}
