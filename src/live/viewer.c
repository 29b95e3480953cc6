/* SPDX-License-Identifier: MIT */
#include "live/viewer.h"

#include <endian.h>
#include <fcntl.h>

#include "ship/files.h"
#include "ship/sender.h"

#define STREAMS_MAX    500u /* in one reply; 4371 bytes each */
#define PATH_FIELD     4096
#define NAME_FIELD     255
#define HOST_FIELD     64
#define METADATA_BIT   UINT32_C(0x80000000) /* in the number of a stream */
#define TIMER_US       1000000u
#define MAJOR	       2u
#define MINOR	       4u
#define SEEK_BEGINNING 1u
#define SEEK_LAST      2u

enum command {
	CONNECT = 1,
	LIST_SESSIONS,
	ATTACH,
	NEXT_INDEX,
	PACKET,
	METADATA,
	NEW_STREAMS,
	CREATE,
	DETACH,
};

enum {
	ATTACH_OK = 1,
	ATTACH_UNKNOWN = 3,
	ATTACH_BAD_SEEK = 5,
	STREAMS_OK = 1,
	STREAMS_NONE,
	STREAMS_ERROR,
	STREAMS_OVER,
	INDEX_ERROR = 4,
	PACKET_OK = 1,
	PACKET_ERROR = 3,
	METADATA_OK = 1,
	METADATA_NONE,
	DETACH_OK = 1,
	DETACH_UNKNOWN,
	HAS_METADATA = 1,
	HAS_STREAMS = 2,
};

/* --- numbers --- */

static void put32(struct ky_buf *b, uint32_t v)
{
	v = htobe32(v);
	ky_buf_append(b, &v, sizeof(v));
}

static void put64(struct ky_buf *b, uint64_t v)
{
	v = htobe64(v);
	ky_buf_append(b, &v, sizeof(v));
}

static void put_text(struct ky_buf *b, const char *text, size_t size)
{
	char *p = ky_buf_reserve(b, size);

	if (!p)
		return;
	memset(p, 0, size);
	memcpy(p, text, strnlen(text, size - 1));
	b->len += size;
}

static uint32_t get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return be32toh(v);
}

static uint64_t get64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return be64toh(v);
}

static void set32(struct ky_buf *b, size_t at, uint32_t v)
{
	v = htobe32(v);
	if (!b->error)
		memcpy(b->data + at, &v, sizeof(v));
}

/* --- sessions --- */

bool live_is_trace(int dir)
{
	static const char *const parts[] = {KY_WATERMARK_NAME, "ust", "kernel"};

	for (size_t i = 0; i < KY_ARRAY_SIZE(parts); i++)
		if (faccessat(dir, parts[i], F_OK, AT_SYMLINK_NOFOLLOW) == 0)
			return true;
	return sender_is_recorded(dir);
}

int live_add(struct live *live, const char *name, int root)
{
	struct live_session *more = reallocarray(
		live->sessions, live->n_sessions + 1, sizeof(*more));
	char *copy = strdup(name);

	if (more)
		live->sessions = more;
	if (!more || !copy) {
		free(copy);
		close(root);
		return -ENOMEM;
	}
	more[live->n_sessions++] = (struct live_session){copy, root};
	return 0;
}

void live_deinit(struct live *live)
{
	for (size_t i = 0; i < live->n_sessions; i++) {
		free(live->sessions[i].name);
		ky_close(live->sessions[i].root);
	}
	free(live->sessions);
}

/* A session and a stream have numbers: those of a session's streams are above it, from 1. */
static uint64_t stream_id(size_t session, uint32_t stream)
{
	return (uint64_t)(session + 1) << 32 | stream;
}

void viewer_init(struct viewer *v, struct live *live)
{
	*v = (struct viewer){.live = live};
}

static void add_loss(struct viewer_loss *to, const struct view *view)
{
	to->n_late += view->n_late;
	to->n_damaged += view->n_damaged;
}

/* Ends the view of a session, if there is one. */
static void end_view(struct viewer *v, size_t i)
{
	if (!v->views[i])
		return;
	add_loss(&v->lost, v->views[i]);
	view_deinit(v->views[i]);
	free(v->views[i]);
	v->views[i] = NULL;
}

void viewer_deinit(struct viewer *v)
{
	for (size_t i = 0; i < v->n_views; i++)
		end_view(v, i);
	free(v->views);
	free(v->over);
}

struct viewer_loss viewer_loss(const struct viewer *v)
{
	struct viewer_loss sum = v->lost;

	for (size_t i = 0; i < v->n_views; i++)
		if (v->views[i])
			add_loss(&sum, v->views[i]);
	return sum;
}

/* Makes room for a view of each session. */
static int grow_views(struct viewer *v)
{
	const size_t n = v->live->n_sessions;
	struct view **views;
	bool *over;

	if (n == v->n_views)
		return 0;
	views = reallocarray(v->views, n, sizeof(*views));
	if (views)
		v->views = views;
	over = reallocarray(v->over, n, sizeof(*over));
	if (over)
		v->over = over;
	if (!views || !over)
		return -ENOMEM;
	for (; v->n_views < n; v->n_views++) {
		views[v->n_views] = NULL;
		over[v->n_views] = false;
	}
	return 0;
}

/* Returns the attached session of a stream or session identifier, or NULL. */
static struct view *find_view(const struct viewer *v, uint64_t session)
{
	return session && session <= v->n_views ? v->views[session - 1] : NULL;
}

static struct view *find_stream(
	const struct viewer *v, uint64_t id, struct view_stream **ret_stream)
{
	struct view *view = find_view(v, id >> 32);
	const uint32_t n = (uint32_t)id;

	if (!view || !n || n > view->n_streams || !view->streams[n - 1].announced)
		return NULL;
	*ret_stream = &view->streams[n - 1];
	return view;
}

/* --- replies --- */

static int count_one(void *context, const char *path)
{
	*(uint32_t *)context += files_is_index(path);
	return 0;
}

static int list_sessions(struct viewer *v, const uint8_t *data, struct ky_buf *to)
{
	const size_t at = to->len;
	uint32_t n = 0;

	if (v->live->refresh)
		v->live->refresh(v->live);
	if (grow_views(v) < 0)
		return -ENOMEM;
	put32(to, 0);
	for (size_t i = 0; i < v->live->n_sessions; i++) {
		const struct live_session *s = &v->live->sessions[i];
		uint32_t n_streams = 0;

		if (v->over[i]) /* or a viewer that looks for it again would read it again */
			continue;
		files_walk(s->root, count_one, NULL, &n_streams);
		put64(to, i + 1);
		put32(to, TIMER_US);
		put32(to, 0); /* clients */
		put32(to, n_streams);
		put_text(to, v->live->host, HOST_FIELD);
		put_text(to, s->name, NAME_FIELD);
		n++;
	}
	set32(to, at, n);
	return 0;
}

static void put_stream(struct ky_buf *to, uint64_t id, uint64_t trace, bool is_metadata,
	const char *path, const char *name)
{
	put64(to, id);
	put64(to, trace);
	put32(to, is_metadata);
	put_text(to, path, PATH_FIELD);
	put_text(to, name, NAME_FIELD);
}

/* The streams that the viewer does not know, each behind the metadata of its trace. */
static uint32_t put_streams(size_t session, struct view *view, struct ky_buf *to)
{
	struct view_stream *s;
	uint32_t n = 0;

	while (n < STREAMS_MAX && (s = view_next_new(view))) {
		struct view_trace *t = &view->traces[s->trace];
		const uint64_t trace = stream_id(session, s->trace + 1);

		if (!t->announced) {
			put_stream(to, trace | METADATA_BIT, trace, true, t->path, "metadata");
			n++;
		}
		put_stream(to, stream_id(session, (uint32_t)(s - view->streams) + 1), trace, false,
			t->path, s->n_files ? s->files[0].name : "beacon");
		view_announce(view, s);
		n++;
	}
	return n;
}

static int attach_session(struct viewer *v, const uint8_t *data, struct ky_buf *to)
{
	const uint64_t session = get64(data);
	const uint32_t seek = get32(data + 16);
	const size_t at = to->len;
	struct view *view;
	int ret;

	if (grow_views(v) < 0)
		return -ENOMEM;
	put32(to, ATTACH_OK);
	put32(to, 0);
	if (!session || session > v->n_views || (seek != SEEK_BEGINNING && seek != SEEK_LAST)) {
		set32(to, at, seek > SEEK_LAST || !seek ? ATTACH_BAD_SEEK : ATTACH_UNKNOWN);
		return 0;
	}
	view = malloc(sizeof(*view));
	if (!view)
		return -ENOMEM;
	ret = view_init(view, v->live->sessions[session - 1].root,
		v->live->from_start || seek == SEEK_BEGINNING);
	end_view(v, session - 1);
	v->views[session - 1] = view;
	if (!ret)
		ret = view_look(view);
	if (!ret)
		set32(to, at + 4, put_streams(session - 1, view, to));
	return ret;
}

static int new_streams(struct viewer *v, const uint8_t *data, struct ky_buf *to)
{
	const uint64_t session = get64(data);
	struct view *view = find_view(v, session);
	const size_t at = to->len;
	uint32_t n;
	int ret;

	put32(to, STREAMS_ERROR);
	put32(to, 0);
	if (!view)
		return 0;
	ret = view_look(view);
	if (ret < 0)
		return ret;
	n = put_streams(session - 1, view, to);
	set32(to, at + 4, n);
	if (!n && view->over)
		v->over[session - 1] = true;
	set32(to, at, n ? STREAMS_OK : view->over ? STREAMS_OVER : STREAMS_NONE);
	return 0;
}

static int next_index(struct viewer *v, const uint8_t *data, struct ky_buf *to)
{
	struct view_index i = {0};
	uint32_t status = INDEX_ERROR;
	struct view_stream *s;
	struct view *view = find_stream(v, get64(data), &s);
	int ret = view ? view_look(view) : 0;

	if (ret < 0)
		return ret;
	if (view) {
		find_stream(v, get64(data), &s); /* it may have moved */
		view_next_index(view, s, &i);
		status = i.status;
	}
	put64(to, i.offset);
	put64(to, i.size * 8);
	put64(to, i.content_bits);
	put64(to, i.begin);
	put64(to, i.end);
	put64(to, i.discarded);
	put64(to, i.class_id);
	put32(to, status);
	put32(to, (i.new_metadata ? HAS_METADATA : 0u) | (i.new_streams ? HAS_STREAMS : 0u));
	return 0;
}

static int packet(struct viewer *v, const uint8_t *data, struct ky_buf *to)
{
	const size_t at = to->len;
	struct view_stream *s;
	struct view *view = find_stream(v, get64(data), &s);
	int64_t n;

	put32(to, PACKET_OK);
	put32(to, 0);
	put32(to, 0); /* flags */
	n = view ? view_read(view, s, get64(data + 8), get32(data + 16), to) : -EINVAL;
	if (n < 0)
		set32(to, at, PACKET_ERROR);
	else
		set32(to, at + 4, (uint32_t)n);
	return n == -ENOMEM ? -ENOMEM : 0;
}

static int metadata(struct viewer *v, const uint8_t *data, struct ky_buf *to)
{
	const uint64_t id = get64(data);
	const uint32_t n = (uint32_t)id & ~METADATA_BIT;
	struct view *view = find_view(v, id >> 32);
	struct ky_buf text = {0};
	int64_t size = 0;

	if (view && id & METADATA_BIT && n && n <= view->n_traces && view->traces[n - 1].announced)
		size = view_read_metadata(view, &view->traces[n - 1], &text);
	if (size >= 0) {
		put64(to, (uint64_t)size);
		put32(to, size ? METADATA_OK : METADATA_NONE);
		ky_buf_append(to, text.data, (size_t)size);
	}
	ky_buf_deinit(&text);
	return size < 0 ? (int)size : 0;
}

static int connect_viewer(struct viewer *v, const uint8_t *data, struct ky_buf *to)
{
	put64(to, 1); /* the viewer's session */
	put32(to, MAJOR);
	put32(to, KY_MIN(get32(data + 12), MINOR));
	put32(to, get32(data + 16));
	return 0;
}

static int create_viewer_session(struct viewer *v, const uint8_t *data, struct ky_buf *to)
{
	put32(to, 1);
	return 0;
}

static int detach_session(struct viewer *v, const uint8_t *data, struct ky_buf *to)
{
	const uint64_t session = get64(data);
	const bool is_attached = find_view(v, session) != NULL;

	if (is_attached)
		end_view(v, session - 1);
	put32(to, is_attached ? DETACH_OK : DETACH_UNKNOWN);
	return 0;
}

static const struct {
	int (*handle)(struct viewer *v, const uint8_t *data, struct ky_buf *to);
	size_t size; /* of what follows the head */
} commands[] = {
	[CONNECT] = {connect_viewer, 20},
	[LIST_SESSIONS] = {list_sessions, 0},
	[ATTACH] = {attach_session, 20},
	[NEXT_INDEX] = {next_index, 8},
	[PACKET] = {packet, 20},
	[METADATA] = {metadata, 8},
	[NEW_STREAMS] = {new_streams, 8},
	[CREATE] = {create_viewer_session, 0},
	[DETACH] = {detach_session, 8},
};

int64_t viewer_request_size(const uint8_t *data, size_t n)
{
	uint64_t size;

	if (n < VIEWER_HEAD)
		return 0;
	size = get64(data);
	return size <= VIEWER_REQUEST_MAX ? (int64_t)(VIEWER_HEAD + size) : -EPROTO;
}

int viewer_handle(struct viewer *v, const uint8_t *request, size_t n, struct ky_buf *reply)
{
	uint32_t command;
	int ret;

	if (n < VIEWER_HEAD)
		return -EPROTO;
	command = get32(request + 8);
	if (command >= KY_ARRAY_SIZE(commands) || !commands[command].handle ||
		n - VIEWER_HEAD < commands[command].size)
		return -EPROTO;
	ret = commands[command].handle(v, request + VIEWER_HEAD, reply);
	return ret ? ret : reply->error;
}
