/* SPDX-License-Identifier: MIT */
#include "web/server.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/listen.h"
#include "base/text.h"
#include "web/bucket.h"

#define TOKEN_BYTES	16
#define TOKEN_LEN	(2 * TOKEN_BYTES)
#define MAX_CONNECTIONS 128
#define MAX_MEMORY	(32 << 10) /* of a connection: longer requests are refused */
#define TIMEOUT_S	10	   /* without a byte either way */
#define EVENT_S		1
#define HOST_MAX	128
#define MAX_LISTENERS	32 /* of server-sent events */
#define MAX_DATA	8  /* requests for data that run or wait */
/* From so many connections on, each new one ends the oldest that has not shown the token. */
#define CROWDED (MAX_CONNECTIONS / 2)
/* Requests: so many at once, and so many in a second. */
#define BURST 200
#ifndef KY_WEB_RATE /* a fuzzer asks more often */
#define KY_WEB_RATE 100
#endif

/* A connection. */
struct guest {
	struct ky_list node;
	int fd;
	bool has_token; /* it has made a request with the token */
};

struct ky_web {
	struct ky_web_content content;
	struct MHD_Daemon *daemon;
	char token[TOKEN_LEN + 1];
	char host[HOST_MAX]; /* as the Host header of requests */
	char link[HOST_MAX + TOKEN_LEN + 16];
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t changed;
	bool ends;
	struct ky_list guests; /* the oldest first */
	unsigned n_guests, n_listeners, n_data;
	struct ky_bucket known, unknown; /* requests with the token, and others */
};

/* --- replies --- */

static enum MHD_Result reply(
	struct MHD_Connection *c, unsigned status, const char *type, struct ky_buf *body)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(
		body->len, body->data, MHD_RESPMEM_MUST_FREE);
	enum MHD_Result result;

	if (!r) {
		ky_buf_deinit(body);
		return MHD_NO;
	}
	*body = (struct ky_buf){0};
	MHD_add_response_header(r, "Content-Type", type);
	MHD_add_response_header(r, "Cache-Control", "no-store");
	MHD_add_response_header(r, "Referrer-Policy", "no-referrer");
	MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(r, "X-Frame-Options", "DENY");
	MHD_add_response_header(r, "Cross-Origin-Resource-Policy", "same-origin");
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(r, "Allow", "GET, HEAD");
	result = MHD_queue_response(c, status, r);
	MHD_destroy_response(r);
	return result;
}

static enum MHD_Result refuse_request(struct MHD_Connection *c, unsigned status, const char *why)
{
	struct ky_buf body = {0};

	ky_buf_printf(&body, "%s\n", why);
	return reply(c, status, "text/plain; charset=utf-8", &body);
}

/* --- who may ask --- */

/* Takes the same time for any wrong token. */
static bool is_token(const struct ky_web *w, const char *given)
{
	unsigned char differs = 0;

	if (strlen(given) != TOKEN_LEN)
		return false;
	for (size_t i = 0; i < TOKEN_LEN; i++)
		differs |= (unsigned char)(given[i] ^ w->token[i]);
	return !differs;
}

/*
 * Compares the hosts of two HOST:PORT. A page of another host cannot make a browser call this
 * server by its address. The port may be another one: that of `ssh -L`.
 */
static bool is_host(const char *given, const char *host)
{
	const char *end = strrchr(host, ':');
	const size_t n = end ? (size_t)(end - host) : strlen(host);

	return !strncmp(given, host, n) && (given[n] == ':' || !given[n]);
}

/* Returns true unless another page made the request, or another name led to this address. */
static bool is_own_page(const struct ky_web *w, struct MHD_Connection *c)
{
	const char *host = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Host");
	const char *origin = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Origin");
	const char *site = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Sec-Fetch-Site");

	if (!host || (!is_host(host, w->host) && !is_host(host, "localhost:")))
		return false;
	if (origin && (strncmp(origin, "http://", 7) || strcmp(origin + 7, host)))
		return false;
	return !site || !strcmp(site, "same-origin") || !strcmp(site, "none");
}

/* --- how much may be asked for --- */

static int64_t now_ns(void)
{
	return (int64_t)ky_clock_ns(CLOCK_MONOTONIC);
}

/* Counts a request. Returns false if there were too many. */
static bool admit_request(struct ky_web *w, struct MHD_Connection *c, bool has_token)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(
		c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct guest *g = info ? info->socket_context : NULL;
	bool is_admitted;

	pthread_mutex_lock(&w->lock);
	is_admitted = ky_bucket_take(
		has_token ? &w->known : &w->unknown, now_ns(), BURST, KY_WEB_RATE);
	if (g && has_token)
		g->has_token = true;
	pthread_mutex_unlock(&w->lock);
	return is_admitted;
}

/* Increments a counter unless it is at its limit. */
static bool acquire_slot(struct ky_web *w, unsigned *n, unsigned max)
{
	bool has_room;

	pthread_mutex_lock(&w->lock);
	has_room = *n < max;
	*n += has_room;
	pthread_mutex_unlock(&w->lock);
	return has_room;
}

static void release_slot(struct ky_web *w, unsigned *n)
{
	pthread_mutex_lock(&w->lock);
	--*n;
	pthread_mutex_unlock(&w->lock);
}

/* Ends the oldest connection that has not shown the token. The caller has the lock. */
static void end_stranger(struct ky_web *w)
{
	struct guest *g;

	ky_list_foreach (g, &w->guests, node) {
		if (g->has_token)
			continue;
		shutdown(g->fd, SHUT_RDWR);
		g->has_token = true; /* is ending: is not ended twice */
		return;
	}
}

/* libmicrohttpd accepted a connection, or is about to close one. */
static void note_connection(void *arg, struct MHD_Connection *c, void **context,
	enum MHD_ConnectionNotificationCode code)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(
		c, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct ky_web *w = arg;
	struct guest *g = *context;

	pthread_mutex_lock(&w->lock);
	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		if (w->n_guests >= CROWDED)
			end_stranger(w);
		*context = g = info ? calloc(1, sizeof(*g)) : NULL;
		if (g) {
			g->fd = info->connect_fd;
			ky_list_append(&w->guests, &g->node);
			w->n_guests++;
		}
	} else if (g) {
		ky_list_remove(&g->node);
		w->n_guests--;
		free(g);
		*context = NULL;
	}
	pthread_mutex_unlock(&w->lock);
}

/* --- what is asked for --- */

static bool get_number(struct MHD_Connection *c, const char *name, int64_t *ret)
{
	const char *text = MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, name);
	char *end;

	if (!text || !*text)
		return false;
	errno = 0;
	*ret = strtoll(text, &end, 10);
	return !errno && !*end;
}

static enum MHD_Result reply_page(struct ky_web *w, struct MHD_Connection *c)
{
	struct ky_buf body = {0};
	int e = w->content.page(w->content.arg, &body);

	if (!e && !body.error)
		return reply(c, MHD_HTTP_OK, "text/html; charset=utf-8", &body);
	ky_buf_deinit(&body);
	return refuse_request(c, MHD_HTTP_INTERNAL_SERVER_ERROR, strerror(-e));
}

static enum MHD_Result reply_data(struct ky_web *w, struct MHD_Connection *c)
{
	struct ky_buf body = {0};
	int64_t begin, end;
	int e;

	if (!get_number(c, "begin", &begin) || !get_number(c, "end", &end) || end < begin)
		return refuse_request(
			c, MHD_HTTP_BAD_REQUEST, "begin and end are nanoseconds since 1970");
	if (!acquire_slot(w, &w->n_data, MAX_DATA))
		return refuse_request(c, MHD_HTTP_TOO_MANY_REQUESTS, "too many requests at once");
	e = w->content.data(w->content.arg, begin, end, &body);
	e = e ? e : body.error;
	release_slot(w, &w->n_data);
	if (!e)
		return reply(c, MHD_HTTP_OK, "text/html; charset=utf-8", &body);
	ky_buf_deinit(&body);
	return e == -ENODATA ? refuse_request(c, MHD_HTTP_NOT_FOUND, "no event is there")
			     : refuse_request(c, MHD_HTTP_INTERNAL_SERVER_ERROR, strerror(-e));
}

/* The server-sent events of one listener. */
struct listener {
	struct ky_web *w;
	struct ky_buf text; /* of which `at` bytes were sent */
	size_t at;
	bool is_first;
};

/* Waits until the next event is due. Returns false if the server ends. */
static bool wait_for_event(struct ky_web *w)
{
	struct timespec until;
	bool ends;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += EVENT_S;
	pthread_mutex_lock(&w->lock);
	while (!w->ends && !pthread_cond_timedwait(&w->changed, &w->lock, &until))
		;
	ends = w->ends;
	pthread_mutex_unlock(&w->lock);
	return !ends;
}

static ssize_t next_event(void *arg, uint64_t position, char *to, size_t max)
{
	struct listener *l = arg;
	size_t n;

	if (l->at == l->text.len) {
		if (!l->is_first && !wait_for_event(l->w))
			return MHD_CONTENT_READER_END_OF_STREAM;
		l->is_first = false;
		l->text.len = l->at = 0;
		ky_buf_puts(&l->text, "data: ");
		if (l->w->content.state(l->w->content.arg, &l->text) < 0 || l->text.error)
			return MHD_CONTENT_READER_END_WITH_ERROR;
		ky_buf_puts(&l->text, "\n\n");
	}
	n = KY_MIN(max, l->text.len - l->at);
	memcpy(to, l->text.data + l->at, n);
	l->at += n;
	return (ssize_t)n;
}

static void free_listener(void *arg)
{
	struct listener *l = arg;

	release_slot(l->w, &l->w->n_listeners);
	ky_buf_deinit(&l->text);
	free(l);
}

static enum MHD_Result reply_events(struct ky_web *w, struct MHD_Connection *c)
{
	struct listener *l;
	struct MHD_Response *r;
	enum MHD_Result result;

	if (!acquire_slot(w, &w->n_listeners, MAX_LISTENERS))
		return refuse_request(c, MHD_HTTP_TOO_MANY_REQUESTS, "too many pages listen");
	l = calloc(1, sizeof(*l));
	if (!l) {
		release_slot(w, &w->n_listeners);
		return MHD_NO;
	}
	l->w = w;
	l->is_first = true;
	r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, next_event, l, free_listener);
	if (!r) {
		free_listener(l);
		return MHD_NO;
	}
	MHD_add_response_header(r, "Content-Type", "text/event-stream");
	MHD_add_response_header(r, "Cache-Control", "no-store");
	result = MHD_queue_response(c, MHD_HTTP_OK, r);
	MHD_destroy_response(r);
	return result;
}

/* Paths: /TOKEN/, /TOKEN/data?begin=NS&end=NS, /TOKEN/events. */
static enum MHD_Result handle_request(void *arg, struct MHD_Connection *c, const char *url,
	const char *method, const char *version, const char *body, size_t *body_size, void **state)
{
	static int seen;
	struct ky_web *w = arg;
	char given[TOKEN_LEN + 2] = "";
	const char *rest;
	bool is_known;

	if (strcmp(method, MHD_HTTP_METHOD_GET) && strcmp(method, MHD_HTTP_METHOD_HEAD))
		return refuse_request(c, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET");
	if (!*state) { /* the first call is before the body, of which there should be none */
		*state = &seen;
		return MHD_YES;
	}
	if (*body_size)
		return MHD_NO;
	rest = *url == '/' ? strchr(url + 1, '/') : NULL;
	if (rest && rest - url - 1 == TOKEN_LEN)
		memcpy(given, url + 1, TOKEN_LEN);
	is_known = is_token(w, given) && is_own_page(w, c);
	if (!admit_request(w, c, is_known))
		return is_known ? refuse_request(c, MHD_HTTP_TOO_MANY_REQUESTS, "too many requests")
				: MHD_NO;
	if (!is_known)
		return refuse_request(
			c, MHD_HTTP_FORBIDDEN, "open the link that kymo web has printed");
	if (!strcmp(rest, "/"))
		return reply_page(w, c);
	if (!strcmp(rest, "/data"))
		return reply_data(w, c);
	if (!strcmp(rest, "/events"))
		return reply_events(w, c);
	return refuse_request(c, MHD_HTTP_NOT_FOUND, "there is no such page");
}

/* --- starting --- */

static int make_token(struct ky_web *w)
{
	uint8_t bytes[TOKEN_BYTES];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return -EIO;
	for (size_t i = 0; i < TOKEN_BYTES; i++)
		snprintf(w->token + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

static void make_link(struct ky_web *w, const struct sockaddr_storage *address)
{
	char host[INET6_ADDRSTRLEN] = "";
	unsigned port;

	if (address->ss_family == AF_INET6) {
		const struct sockaddr_in6 *a = (const struct sockaddr_in6 *)address;

		inet_ntop(AF_INET6, &a->sin6_addr, host, sizeof(host));
		port = ntohs(a->sin6_port);
		snprintf(w->host, sizeof(w->host), "[%s]:%u", host, port);
	} else {
		const struct sockaddr_in *a = (const struct sockaddr_in *)address;

		inet_ntop(AF_INET, &a->sin_addr, host, sizeof(host));
		port = ntohs(a->sin_port);
		snprintf(w->host, sizeof(w->host), "%s:%u", host, port);
	}
	snprintf(w->link, sizeof(w->link), "http://%s/%s/", w->host, w->token);
}

static void init_waiting(struct ky_web *w)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->changed, &attr);
	pthread_condattr_destroy(&attr);
	ky_list_init(&w->guests);
}

int ky_web_start(struct ky_web **ret, const char *listen, const struct ky_web_content *content)
{
	struct sockaddr_storage address;
	struct ky_web *w = calloc(1, sizeof(*w));
	int fd, e = w ? make_token(w) : -ENOMEM;

	fd = e ? e : ky_listen(listen, &address);
	if (fd < 0) {
		free(w);
		return fd;
	}
	w->content = *content;
	init_waiting(w);
	make_link(w, &address);
	/* A thread for each connection: what it asks for is made in it. */
	w->daemon = MHD_start_daemon(
		MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION, 0, NULL, NULL,
		handle_request, w, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned)MAX_CONNECTIONS, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MAX_MEMORY,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)TIMEOUT_S, MHD_OPTION_NOTIFY_CONNECTION,
		note_connection, w, MHD_OPTION_END);
	if (!w->daemon) {
		ky_close(fd);
		free(w);
		return -ENOMEM;
	}
	*ret = w;
	return 0;
}

const char *ky_web_link(const struct ky_web *w)
{
	return w->link;
}

void ky_web_stop(struct ky_web *w)
{
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->ends = true;
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
	MHD_stop_daemon(w->daemon);
	pthread_cond_destroy(&w->changed);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

__attribute__((visibility("default"))) const struct ky_web_ops ky_web_ops = {
	.start = ky_web_start, .link = ky_web_link, .stop = ky_web_stop};
