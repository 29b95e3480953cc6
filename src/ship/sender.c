/* SPDX-License-Identifier: MIT */
#include "ship/sender.h"

#include <poll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "ship/files.h"
#include "ship/packer.h"
#include "ship/sender-internal.h"

#define WINDOW	   (8u << 20)
#define PIECE	   (64u << 10)
#define LOOK_MS	   50	/* between two looks at a trace that changes, at least */
#define LOOK_REST  4	/* and this many times as long as a look takes */
#define BLIND_MS   200	/* if changes go unnoticed */
#define IDLE_MS	   5000 /* the death of a consumer changes no file */
#define WAIT_MS	   1000 /* for an answer, before it looks how long that takes */
#define LAST_WORDS 1000
#define ALIVE_MS   5000 /* a quarter of a receiver's patience */
#define ANSWER_MS  30000
#define ABANDON_MS 10000 /* after the consumer exited without a word that it was the end */

static uint64_t now_ns(void)
{
	return ky_clock_ns(CLOCK_MONOTONIC);
}

static uint64_t now_ms(void)
{
	return now_ns() / 1000000;
}

struct link {
	struct sender *s;
	int fd;
	uint32_t n_numbers;
	bool ready, ending, ended;
	bool never_silent; /* both ends have ALIVE */
	uint64_t in_flight;
	uint64_t answered_ms, asked_ms, abandoned_ms, looked_ms, limited_ms;
	uint64_t look_ms;	   /* the duration of the last look: many files take long */
	size_t at[SENDER_KINDS];   /* of this round: all files of the kind before have been sent */
	struct sender_file *index; /* of the stream that was sent last; or NULL */
	bool complete; /* all that counted when it was looked at was sent, with the watermark */
	bool changed;  /* is the trace, since it was looked at */
	/* A segment, SEGMENT_HEAD + SEGMENT_PAYLOAD_MAX bytes; and room to compress it. */
	uint8_t *out, *spare;
	size_t n_out, out_at;
	struct packer packer;
	uint8_t in[SEGMENT_HEAD + SEGMENT_PATH_MAX];
	size_t n_in;
};

/* s->raw: zeros behind it, for SEGMENT_ZEROS; else 0. */
static void put_segment(struct link *l, struct segment *s, size_t length)
{
	const size_t packed = s->type == SEGMENT_DATA && s->codec == SEGMENT_PLAIN
				      ? packer_pack(&l->packer, l->out + SEGMENT_HEAD, length,
						l->spare + SEGMENT_HEAD)
				      : 0;

	s->raw += (uint32_t)length;
	s->crc = segment_crc(l->out + SEGMENT_HEAD, length);
	if (packed) {
		uint8_t *const raw = l->out;

		l->out = l->spare;
		l->spare = raw;
		s->codec = SEGMENT_ZSTD;
		length = packed;
	}
	s->length = (uint32_t)length;
	segment_encode(s, l->out);
	l->n_out = SEGMENT_HEAD + length;
	l->out_at = 0;
}

static void put_hello(struct link *l)
{
	struct segment s = {.type = SEGMENT_HELLO,
		.offset = (l->s->spool_max ? SEGMENT_SYNC : 0) | SEGMENT_NEVER_SILENT};
	const size_t n = strlen(l->s->name);

	memcpy(l->out + SEGMENT_HEAD, l->s->id, SEGMENT_ID_SIZE);
	memcpy(l->out + SEGMENT_HEAD + SEGMENT_ID_SIZE, l->s->name, n);
	put_segment(l, &s, SEGMENT_ID_SIZE + n);
}

/*
 * Returns how many entries of a stream's index are of packets that end at `at` or before.
 * *ret_ends: the end of the last of them and of the next packet, 0 if there is none.
 */
static uint64_t entries_up_to(
	const struct sender *s, const struct sender_file *f, uint64_t at, uint64_t ret_ends[2])
{
	struct ky_index_entry e;
	struct packets p;
	uint64_t n;

	ret_ends[0] = ret_ends[1] = 0;
	if (!packets_open(s, f->path, &p))
		return 0;
	n = packets_find(&p, at);
	if (n && packets_read(&p, n - 1, &e))
		ret_ends[0] = e.offset + e.size;
	if (packets_read(&p, n, &e))
		ret_ends[1] = e.offset + e.size;
	packets_close(&p);
	return n;
}

/* Returns the end of the last packet up to `most`, or of the next one. */
static uint64_t packet_end(const struct sender *s, const struct sender_file *f, uint64_t most)
{
	uint64_t ends[2];

	entries_up_to(s, f, most, ends);
	if (ends[0] > f->sent)
		return ends[0];
	return ends[1] ? KY_MIN(ends[1], f->counts) : most;
}

/* Lets the entries of packets that were sent follow them. */
static void index_due(struct link *l, const struct sender_file *stream)
{
	struct sender_file *index = stream->kind == SENDER_STREAM ? stream->peer : NULL;
	uint64_t ends[2], n;

	if (!index)
		return;
	n = entries_up_to(l->s, stream, stream->sent, ends);
	if (n)
		index->due = KY_MIN(ky_index_offset(n), index->counts);
	l->index = index;
}

/* Returns how many bytes of a file can be sent now. */
static uint64_t due_of(const struct sender_file *f)
{
	return f->kind == SENDER_INDEX ? f->due : f->counts;
}

/* Returns how many bytes of the file are sent next. */
static uint64_t piece_of(const struct sender *s, const struct sender_file *f, int fd)
{
	uint64_t end = KY_MIN(due_of(f), f->sent + PIECE);

	if (end < f->counts &&
		!strcmp(strrchr(f->path, '/') ? strrchr(f->path, '/') : "", "/metadata")) {
		end = KY_MIN(f->counts, f->sent + SEGMENT_PAYLOAD_MAX);
		end = end < f->counts ? KY_MAX(files_readable(fd, f->sent, end), f->sent + 1) : end;
	} else if (end < f->counts && f->kind == SENDER_INDEX) {
		end = KY_MAX(end, ky_index_offset(1));
		end -= (end - ky_index_offset(0)) % sizeof(struct ky_index_entry);
	} else if (end < f->counts) {
		end = packet_end(s, f, end);
	}
	return KY_MIN(end - f->sent, (uint64_t)SEGMENT_PAYLOAD_MAX);
}

static void put_file(struct link *l, struct sender_file *f)
{
	struct segment s = {.type = SEGMENT_FILE, .file = l->n_numbers++};

	f->number = s.file;
	l->s->numbered[s.file] = f;
	memcpy(l->out + SEGMENT_HEAD, f->path, strlen(f->path));
	put_segment(l, &s, strlen(f->path));
}

static void put_data(struct link *l, struct sender_file *f)
{
	struct segment s = {.type = SEGMENT_DATA, .file = (uint32_t)f->number, .offset = f->sent};
	_cleanup_close_ int fd = sender_file_open(l->s, f->path);
	ssize_t n = fd < 0 ? -1
			   : pread(fd, l->out + SEGMENT_HEAD, piece_of(l->s, f, fd),
				     (off_t)f->sent);
	size_t size = n > 0 ? (size_t)n : 0;

	if (l->s->spool_max)
		size = sender_change(l->s, f, l->out + SEGMENT_HEAD, size, &s);
	if (!size) {
		sender_file_lost(l->s, f);
		return;
	}
	put_segment(l, &s, size);
	f->sent += s.raw;
	index_due(l, f);
	l->in_flight += s.raw;
}

/* When all streams have been sent, so may all of the indexes: they may be of other streams. */
static void indexes_due(struct sender *s)
{
	for (size_t i = 0; i < s->n_files; i++)
		if (s->files[i]->kind == SENDER_INDEX)
			s->files[i]->due = s->files[i]->counts;
}

/* Puts the next segment of a file, if something of it is due. */
static void put_due_of(struct link *l, struct sender_file *f)
{
	while (!l->n_out && !f->lost && f->sent < due_of(f)) {
		if (f->number < 0)
			put_file(l, f);
		else
			put_data(l, f);
	}
}

/* Puts the next segment of this kind of files. Each round visits each file once: there are many. */
static void put_due(struct link *l, enum sender_kind kind)
{
	for (size_t *at = &l->at[kind]; *at < l->s->n_files; ++*at) {
		struct sender_file *f = l->s->files[*at];

		if (f->kind == kind)
			put_due_of(l, f);
		if (l->n_out)
			return;
	}
}

/* Metadata and others first, then entries of packets that were sent, then streams. */
static void put_files(struct link *l)
{
	put_due(l, SENDER_OTHER);
	if (!l->n_out && l->index)
		put_due_of(l, l->index);
	if (!l->n_out)
		put_due(l, SENDER_STREAM);
	if (!l->n_out && !l->at[SENDER_INDEX])
		indexes_due(l->s);
	if (!l->n_out)
		put_due(l, SENDER_INDEX);
}

/*
 * Returns the watermark of what was sent. Nothing is added to a directory whose recording is over,
 * also if that was rotated or abandoned.
 */
static struct ky_watermark watermark_of(const struct sender *s)
{
	struct ky_watermark w = s->has_watermark ? s->watermark
						 : (struct ky_watermark){.chunk = s->chunk};

	if (s->final && (s->moved || !s->once)) {
		w.clock = UINT64_MAX;
		w.flags |= KY_WATERMARK_ENDED;
	}
	return w;
}

/* Puts the next segment of this round, if there is one. */
static void put_next(struct link *l)
{
	struct sender *s = l->s;
	struct segment m = {.type = SEGMENT_WATERMARK};
	const struct ky_watermark w = watermark_of(s);

	put_files(l);
	if (l->n_out)
		return;
	l->complete = true;
	if (!w.clock || !memcmp(&w, &s->sent_watermark, sizeof(w)))
		return;
	s->sent_watermark = w;
	memcpy(l->out + SEGMENT_HEAD, &w, sizeof(w));
	put_segment(l, &m, sizeof(w));
}

/* Looks whether the recording has ended, then at its files. */
static int look_again(struct link *l)
{
	struct sender *s = l->s;
	const bool moved = sender_is_moved(s);
	bool over = moved || s->once;
	int ret;

	l->looked_ms = now_ms();
	l->changed = false;
	watch_take(&s->watch);
	if (!over && sender_is_recorded(s->trace)) {
		l->abandoned_ms = 0;
	} else if (!over) {
		sender_read_watermark(s);
		if (!l->abandoned_ms)
			l->abandoned_ms = l->looked_ms;
		over = !s->has_watermark || s->watermark.flags & KY_WATERMARK_ENDED ||
		       l->looked_ms - l->abandoned_ms > ABANDON_MS;
	}
	l->complete = false;
	l->index = NULL;
	memset(l->at, 0, sizeof(l->at));
	ret = sender_look(s, over, moved);
	l->look_ms = now_ms() - l->looked_ms;
	l->looked_ms += l->look_ms;
	return ret;
}

/* Returns how long a complete copy may stay as it is; 0: the trace has to be looked at now. */
static uint64_t rest_ms(const struct link *l)
{
	const struct sender *s = l->s;
	const uint64_t passed = now_ms() - l->looked_ms;
	const bool ends = l->abandoned_ms ||
			  (s->has_watermark && s->watermark.flags & KY_WATERMARK_ENDED);
	const uint64_t least = l->changed || ends ? LOOK_MS : s->watch.blind ? BLIND_MS : IDLE_MS;
	const uint64_t rest = KY_MAX(least, l->look_ms * LOOK_REST);

	return passed < rest ? rest - passed : 0;
}

/* Returns the time to the next ALIVE, which is also sent among data: not all data is answered. */
static uint64_t alive_ms(const struct link *l)
{
	const uint64_t passed = now_ms() - l->asked_ms;

	if (!l->never_silent || l->n_out || l->ending)
		return IDLE_MS;
	return passed < ALIVE_MS ? ALIVE_MS - passed : 0;
}

static int fill_output(struct link *l)
{
	struct segment end = {.type = SEGMENT_END}, alive = {.type = SEGMENT_ALIVE};
	int ret = 0;

	if (!alive_ms(l)) {
		l->asked_ms = now_ms();
		put_segment(l, &alive, 0);
	}
	if (l->n_out || !l->ready || l->ending || l->in_flight >= WINDOW)
		return 0;
	if (l->complete && !l->s->final && !rest_ms(l))
		ret = look_again(l);
	if (!ret && !l->complete)
		put_next(l);
	if (!ret && !l->n_out && l->s->final && !l->in_flight) {
		put_segment(l, &end, 0);
		l->ending = true;
	}
	return ret;
}

static int handle_have(struct link *l, const struct segment *g, const uint8_t *payload)
{
	char path[SEGMENT_PATH_MAX + 1];
	_cleanup_close_ int here = -1;
	struct sender_file *f;

	snprintf(path, sizeof(path), "%.*s", (int)g->length, (const char *)payload);
	if (!segment_path_valid(path, strlen(path)))
		return 0;
	/* Each file takes time at each look: a receiver must not add some that are not here. */
	here = sender_file_open(l->s, path);
	if (here < 0)
		return 0;
	f = sender_file_get(l->s, path);
	if (f)
		f->sent = f->acked = g->offset;
	return f ? 0 : -ENOMEM;
}

static int handle_ack(struct link *l, const struct segment *g)
{
	struct sender_file *f = g->file < l->n_numbers ? l->s->numbered[g->file] : NULL;

	if (!f || g->offset > f->sent || g->offset < f->acked)
		return sender_fail(
			l->s, -EPROTO, "the receiver acknowledges data that was not sent");
	l->in_flight -= g->offset - f->acked;
	l->s->acked += KY_MIN(g->offset, f->counts) - KY_MIN(f->acked, f->counts);
	f->acked = g->offset;
	if (l->s->progress)
		l->s->progress(l->s);
	return sender_release_acked(l->s, f);
}

static int handle_segment(struct link *l, const struct segment *g, const uint8_t *payload)
{
	int ret = 0;

	switch (g->type) {
	case SEGMENT_HAVE:
		return l->ready ? -EPROTO : handle_have(l, g, payload);
	case SEGMENT_READY:
		if (l->ready)
			return -EPROTO;
		l->ready = true;
		l->never_silent = g->offset & SEGMENT_NEVER_SILENT;
		for (size_t i = 0; !ret && i < l->s->n_files; i++)
			ret = sender_release_acked(l->s, l->s->files[i]);
		return ret ? ret : look_again(l);
	case SEGMENT_ACK:
		return handle_ack(l, g);
	case SEGMENT_END:
		l->ended = l->ending;
		return l->ending ? 0 : -EPROTO;
	case SEGMENT_ALIVE:
		return l->never_silent ? 0 : -EPROTO;
	case SEGMENT_ERROR:
		return sender_fail(l->s, -EREMOTEIO, "the receiver says: %.*s", (int)g->length,
			(const char *)payload);
	default:
		return -EPROTO;
	}
}

/* Handles what came. Returns -ECONNRESET at the end of the connection. */
static int receive_segments(struct link *l)
{
	ssize_t n = recv(l->fd, l->in + l->n_in, sizeof(l->in) - l->n_in, MSG_DONTWAIT);
	struct segment g;
	int ret = 0;

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (!n)
		return -ECONNRESET;
	l->answered_ms = now_ms();
	l->n_in += (size_t)n;
	while (!ret && l->n_in >= SEGMENT_HEAD) {
		ret = segment_decode(l->in, &g);
		if (ret == -EPROTO || (!ret && g.length > SEGMENT_PATH_MAX))
			return sender_fail(l->s, -EPROTO, "the other end is not 'kymo receive'");
		if (!ret && l->n_in < SEGMENT_HEAD + g.length)
			break;
		if (ret || segment_crc(l->in + SEGMENT_HEAD, g.length) != g.crc)
			return sender_fail(l->s, -EBADMSG, "an answer was damaged on its way");
		ret = handle_segment(l, &g, l->in + SEGMENT_HEAD);
		l->n_in -= SEGMENT_HEAD + g.length;
		memmove(l->in, l->in + SEGMENT_HEAD + g.length, l->n_in);
	}
	return ret;
}

/* Returns how many bytes were sent, or -errno. */
static ssize_t transmit(struct link *l)
{
	const size_t size = pace_piece(&l->s->pace, l->n_out - l->out_at);
	ssize_t n = send(l->fd, l->out + l->out_at, size, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	pace_note(&l->s->pace, now_ns(), (size_t)n);
	l->out_at += (size_t)n;
	if (l->out_at == l->n_out)
		l->n_out = 0;
	return n;
}

static bool awaits_answer(const struct link *l)
{
	return (l->in_flight || !l->ready || l->ending) && !l->ended;
}

/* Waits for what can be done. Returns 0 or -errno. */
static int wait_for(struct link *l, struct pollfd fds[3])
{
	const bool waits = l->n_out || l->in_flight >= WINDOW;
	const uint64_t began = now_ns();
	uint64_t rest = awaits_answer(l) || l->n_out || l->s->spool_max ? WAIT_MS : IDLE_MS;

	if (l->ready && l->complete && !l->s->final)
		rest = KY_MIN(rest, rest_ms(l));
	rest = KY_MIN(rest, alive_ms(l));
	if (l->n_out && pace_rest_ns(&l->s->pace, began))
		rest = KY_MIN(rest, pace_rest_ns(&l->s->pace, began) / 1000000 + 1);
	if (poll(fds, 3, (int)rest) < 0)
		return errno == EINTR ? 0 : -errno;
	if (waits)
		packer_account(&l->packer, now_ns(), now_ns() - began, 0);
	if (fds[2].revents)
		l->changed = watch_take(&l->s->watch) || l->changed;
	return fds[1].revents ? -ECANCELED : 0;
}

/* One turn: waits for what can be done, and does it. */
static int turn(struct link *l, int stop)
{
	const bool awaited = l->never_silent || awaits_answer(l);
	int ret = fill_output(l); /* it may look at the trace: then the next change is waited for */
	struct pollfd fds[] = {{.fd = l->fd}, {.fd = stop, .events = POLLIN},
		{.fd = l->changed ? -1 : l->s->watch.fd, .events = POLLIN}};
	const struct pollfd *p = fds;
	ssize_t n = 0;

	if (!ret && l->s->spool_max && now_ms() - l->limited_ms > WAIT_MS) {
		l->limited_ms = now_ms();
		ret = sender_limit(l->s);
	}
	if (!awaited)
		l->answered_ms = now_ms();
	if (ret < 0)
		return ret;
	fds[0].events = POLLIN;
	if (l->n_out && !pace_rest_ns(&l->s->pace, now_ns()))
		fds[0].events |= POLLOUT;
	ret = wait_for(l, fds);
	if (ret < 0)
		return ret;
	/* A receiver that fails says why before it ends. */
	if (p->revents & (POLLIN | POLLHUP | POLLERR))
		ret = receive_segments(l);
	if (!ret && l->n_out && p->revents & POLLOUT)
		n = transmit(l);
	if (n > 0)
		packer_account(&l->packer, now_ns(), 0, (size_t)n);
	else if (n)
		ret = (int)n;
	/* The reason may have come meanwhile. */
	for (int i = 0; i < LAST_WORDS && ret == -EPIPE; i++) {
		const int why = receive_segments(l);

		if (why)
			return why;
	}
	if (!ret && awaited && now_ms() - l->answered_ms > ANSWER_MS)
		return sender_fail(l->s, -ETIMEDOUT, "no answer for %d s", ANSWER_MS / 1000);
	return ret;
}

int sender_run(struct sender *s, int fd, int stop)
{
	struct link l = {.s = s, .fd = fd, .answered_ms = now_ms()};
	int ret = 0;

	s->why[0] = '\0';
	l.out = malloc(SEGMENT_HEAD + SEGMENT_PAYLOAD_MAX);
	l.spare = malloc(SEGMENT_HEAD + SEGMENT_PAYLOAD_MAX);
	packer_init(&l.packer, now_ns());
	if (!l.out || !l.spare)
		ret = sender_fail(s, -ENOMEM, "no memory");
	for (size_t i = 0; i < s->n_files; i++) {
		s->files[i]->sent = s->files[i]->acked = s->files[i]->due = 0;
		s->files[i]->number = -1;
	}
	memset(&s->sent_watermark, 0, sizeof(s->sent_watermark));
	if (!ret)
		put_hello(&l);
	while (!ret && !l.ended)
		ret = turn(&l, stop);
	packer_deinit(&l.packer);
	for (size_t i = 0; i < s->n_files; i++)
		s->files[i]->sent = s->files[i]->acked; /* what was on its way may expire */
	if (!ret)
		sender_add_expired(s);
	free(l.out);
	free(l.spare);
	if (ret < 0 && !*s->why)
		sender_fail(s, ret, "%s",
			ret == -ECONNRESET || ret == -EPIPE ? "the connection was closed"
							    : strerror(-ret));
	return ret;
}
