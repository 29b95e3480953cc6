/* SPDX-License-Identifier: MIT */
/*
 * The connection: one JSON object a line, in each direction, on RUNDIR/control.sock; requests are
 * answered in order. A call writes its line and reads up to the newline of the reply. An error in
 * between leaves the stream at an unknown place, so the connection is then closed and not used
 * again.
 */
#include <kymo/ctl.h>

#include <json-c/json.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "abi/state.h"
#include "base/buf.h"
#include "base/rundir.h"

#define REQUEST_MAX (1u << 20) /* the protocol's limit of a line */
/* a list of all events of many applications is one line too */
#define REPLY_MAX	   (64u << 20)
#define DEFAULT_TIMEOUT_MS 30000
#define READ_BYTES	   65536

struct kymo_ctl {
	int fd; /* -1 after an error */
	unsigned timeout_ms;
	struct ky_buf in; /* received, not yet part of a reply */
	bool by_default;  /* the caller named no run directory */
	/* kymo_ctl_watch: the session, or NULL; received messages, and the next of them */
	char *watched;
	struct kymo_value *messages;
	size_t next_message;
	bool ended; /* the daemon sends no more of them */
	char rundir[PATH_MAX];
};

static int connect_to(const char *rundir)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd, r;

	r = snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/%s", rundir, KY_RUN_CONTROL);
	if (r < 0 || (size_t)r >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	/*
	 * A Unix stream socket connects at once or, while the daemon's queue is full, a little
	 * later.
	 */
	if (connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0) {
		r = -errno;
		close(fd);
		return r;
	}
	return fd;
}

/* Connects to the run directory and stores it in ctl. */
static int open_in(struct kymo_ctl *ctl, const char *rundir)
{
	int r = snprintf(ctl->rundir, sizeof(ctl->rundir), "%s", rundir);

	if (r < 0 || (size_t)r >= sizeof(ctl->rundir))
		return -ENAMETOOLONG;
	ctl->fd = connect_to(ctl->rundir);
	return ctl->fd < 0 ? ctl->fd : 0;
}

/*
 * Connects to the system's daemon first if the user may control it: only root can have made its
 * socket, and its mode admits only the members of its group.
 */
static int open_default(struct kymo_ctl *ctl)
{
	char own[PATH_MAX];
	int r;

	if (!ky_env("KYMO_RUNDIR") && open_in(ctl, KY_RUN_GLOBAL) == 0)
		return 0;
	r = ky_rundir(geteuid(), own, sizeof(own));
	return r < 0 ? r : open_in(ctl, own);
}

int kymo_ctl_open(const char *rundir, struct kymo_ctl **ret_ctl)
{
	struct kymo_ctl *ctl = calloc(1, sizeof(*ctl));
	int r;

	if (!ctl)
		return -ENOMEM;
	ctl->fd = -1;
	ctl->timeout_ms = DEFAULT_TIMEOUT_MS;
	ctl->in.max = REPLY_MAX;
	ctl->by_default = !rundir;
	r = rundir ? open_in(ctl, rundir) : open_default(ctl);
	if (r < 0) {
		kymo_ctl_close(ctl);
		return r;
	}
	*ret_ctl = ctl;
	return 0;
}

int kymo_ctl_reopen(struct kymo_ctl *ctl)
{
	ctl->fd = ky_close(ctl->fd);
	ctl->in.len = 0;
	ctl->in.error = 0;
	if (ctl->by_default)
		return open_default(ctl);
	ctl->fd = connect_to(ctl->rundir);
	return ctl->fd < 0 ? ctl->fd : 0;
}

void kymo_ctl_close(struct kymo_ctl *ctl)
{
	if (!ctl)
		return;
	ky_close(ctl->fd);
	ky_buf_deinit(&ctl->in);
	kymo_value_free(ctl->messages);
	free(ctl->watched);
	free(ctl);
}

const char *kymo_ctl_rundir(const struct kymo_ctl *ctl)
{
	return ctl->rundir;
}

void kymo_ctl_set_timeout(struct kymo_ctl *ctl, unsigned timeout_ms)
{
	ctl->timeout_ms = timeout_ms;
}

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * INT64_C(1000) + ts.tv_nsec / 1000000;
}

/* Waits for events on the socket. deadline_ms < 0: no limit. */
static int wait_for(const struct kymo_ctl *ctl, short events, int64_t deadline_ms)
{
	struct pollfd p = {.fd = ctl->fd, .events = events};
	int64_t left = -1;
	int r;

	do {
		if (deadline_ms >= 0)
			left = KY_MAX(deadline_ms - now_ms(), INT64_C(0));
		r = poll(&p, 1, (int)KY_MIN(left, (int64_t)INT_MAX));
	} while (r < 0 && errno == EINTR);
	if (r < 0)
		return -errno;
	return r ? 0 : -ETIMEDOUT;
}

static int send_line(struct kymo_ctl *ctl, const char *line, int64_t deadline_ms)
{
	size_t len = strlen(line), done = 0;
	ssize_t n;
	int r;

	while (done < len) {
		n = send(ctl->fd, line + done, len - done, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n >= 0) {
			done += (size_t)n;
			continue;
		}
		if (errno == EPIPE)
			return -ECONNRESET; /* no daemon read the end of the line */
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		r = wait_for(ctl, POLLOUT, deadline_ms);
		if (r < 0)
			return r;
	}
	return 0;
}

/*
 * Reads until ctl->in holds a whole line; *ret_len is its length without the newline. The kernel
 * returns ECONNRESET if the daemon never accepted the connection, or closed it with unread data.
 */
static int receive_line(struct kymo_ctl *ctl, int64_t deadline_ms, size_t *ret_len)
{
	const char *newline = NULL;
	size_t seen = 0;
	ssize_t n;
	char *to;
	int r;

	for (;;) {
		if (ctl->in.len > seen)
			newline = memchr(ctl->in.data + seen, '\n', ctl->in.len - seen);
		if (newline) {
			*ret_len = (size_t)(newline - ctl->in.data);
			return 0;
		}
		seen = ctl->in.len;
		r = wait_for(ctl, POLLIN, deadline_ms);
		if (r < 0)
			return r;
		to = ky_buf_reserve(&ctl->in, READ_BYTES);
		if (!to)
			return ctl->in.error;
		n = recv(ctl->fd, to, READ_BYTES, MSG_DONTWAIT);
		if (n == 0)
			return -EPIPE;
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		ctl->in.len += n > 0 ? (size_t)n : 0;
	}
}

/* Parses the first line of ctl->in as a reply, and removes it. */
static int take_reply(struct kymo_ctl *ctl, size_t len, struct kymo_value **ret_reply)
{
	struct json_object *reply;

	ctl->in.data[len] = '\0';
	reply = json_tokener_parse(ctl->in.data);
	ky_buf_consume(&ctl->in, len + 1);
	if (!json_object_is_type(reply, json_type_object)) {
		json_object_put(reply);
		return -EPROTO;
	}
	*ret_reply = (struct kymo_value *)reply;
	return 0;
}

/* Formats the request's line: the parameters and the command, with the newline. */
static int format_request(struct ky_buf *line, const char *command, const struct kymo_value *params)
{
	struct json_object *request = json_object_new_object();
	struct json_object *from = (struct json_object *)params;
	const char *text = NULL;
	int r = 0;

	if (!request ||
		json_object_object_add(request, "command", json_object_new_string(command)) < 0)
		r = -ENOMEM;
	if (!r && json_object_is_type(from, json_type_object)) {
		json_object_object_foreach(from, name, member)
		{
			r = r ? r : json_object_object_add(request, name, json_object_get(member));
		}
	}
	if (!r)
		text = json_object_to_json_string_ext(request, JSON_C_TO_STRING_PLAIN);
	if (text)
		ky_buf_puts(line, text);
	ky_buf_puts(line, "\n");
	json_object_put(request);
	return text ? line->error : -ENOMEM;
}

static int exchange_line(struct kymo_ctl *ctl, const char *line, struct kymo_value **ret_reply)
{
	int64_t deadline_ms = ctl->timeout_ms ? now_ms() + ctl->timeout_ms : -1;
	size_t len = 0;
	int sent, r;

	/* A daemon that has no room for the client says so, and may not read the line. */
	sent = send_line(ctl, line, deadline_ms);
	r = !sent || sent == -ECONNRESET ? receive_line(ctl, deadline_ms, &len) : sent;
	if (r < 0 && sent < 0)
		r = sent;
	if (!r)
		r = take_reply(ctl, len, ret_reply);
	return r;
}

int kymo_ctl_call(struct kymo_ctl *ctl, const char *command, const struct kymo_value *params,
	struct kymo_value **ret_reply)
{
	struct ky_buf line = {.max = REQUEST_MAX};
	int r;

	if (ctl->fd < 0)
		return -EPIPE;
	r = format_request(&line, command, params);
	if (!r)
		r = exchange_line(ctl, line.data, ret_reply);
	if (r < 0)
		ctl->fd = ky_close(ctl->fd);
	ky_buf_deinit(&line);
	return r;
}

/* --- messages of triggers --- */

/* Returns NULL if there is no memory for all of them. */
static struct kymo_value *watch_params(const struct kymo_ctl *ctl, const struct kymo_value *reply)
{
	struct kymo_value *params = kymo_value_new();
	int r = params ? 0 : -ENOMEM;

	if (!r && ctl->watched)
		r = kymo_value_set_string(params, "session", ctl->watched);
	if (!r && reply)
		r = kymo_value_set_u64(
			params, "after", kymo_value_u64(kymo_value_get(reply, "last")));
	if (!r)
		return params;
	kymo_value_free(params);
	return NULL;
}

/* Requests the messages after those of the reply. */
static int request_more(struct kymo_ctl *ctl, const struct kymo_value *reply)
{
	struct ky_buf line = {.max = REQUEST_MAX};
	struct kymo_value *params = watch_params(ctl, reply);
	int r = params ? format_request(&line, "watch", params) : -ENOMEM;

	if (!r)
		r = send_line(ctl, line.data, now_ms() + ctl->timeout_ms);
	kymo_value_free(params);
	ky_buf_deinit(&line);
	return r;
}

int kymo_ctl_watch(
	struct kymo_ctl *ctl, const char *session, int all, struct kymo_value **ret_reply)
{
	struct kymo_value *params;
	int r;

	free(ctl->watched);
	kymo_value_free(ctl->messages);
	ctl->messages = NULL;
	ctl->next_message = 0;
	ctl->ended = false;
	ctl->watched = session ? strdup(session) : NULL;
	params = !session || ctl->watched ? watch_params(ctl, NULL) : NULL;
	r = params ? kymo_ctl_call(ctl, "watch", params, ret_reply) : -ENOMEM;
	kymo_value_free(params);
	if (!r && kymo_reply_ok(*ret_reply) && all)
		kymo_value_set_u64(*ret_reply, "last", 0);
	return r || !kymo_reply_ok(*ret_reply) ? r : request_more(ctl, *ret_reply);
}

int kymo_ctl_fd(const struct kymo_ctl *ctl)
{
	return ctl->fd;
}

/* Takes a reply with messages, if there is one, and requests more. Returns as kymo_ctl_message. */
static int receive_messages(struct kymo_ctl *ctl)
{
	size_t len = 0;
	int r = receive_line(ctl, 0, &len);

	if (r < 0)
		return r == -ETIMEDOUT ? 0 : r;
	kymo_value_free(ctl->messages);
	ctl->messages = NULL;
	ctl->next_message = 0;
	r = take_reply(ctl, len, &ctl->messages);
	if (!r && !kymo_reply_ok(ctl->messages))
		return -ESHUTDOWN;
	/* The daemon ends: these are its last messages. */
	if (!r && kymo_value_bool(kymo_value_get(ctl->messages, "ended"))) {
		ctl->ended = true;
		return 1;
	}
	if (!r)
		r = request_more(ctl, ctl->messages);
	return r ? r : 1;
}

int kymo_ctl_message(struct kymo_ctl *ctl, struct kymo_value **ret_message)
{
	const struct kymo_value *message;
	int r;

	if (ctl->fd < 0)
		return -EPIPE;
	do {
		message = kymo_value_at(
			kymo_value_get(ctl->messages, "messages"), ctl->next_message);
		r = message ? 1 : ctl->ended ? -ESHUTDOWN : receive_messages(ctl);
	} while (!message && r > 0);
	if (r <= 0)
		return r;
	ctl->next_message++;
	*ret_message = (struct kymo_value *)json_object_get((struct json_object *)message);
	return 1;
}
