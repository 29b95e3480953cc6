/* SPDX-License-Identifier: MIT */
/*
 * fetch: brings what hosts have shipped of a snapshot into one directory, DIR/HOST/SESSION, which
 * readers show as one trace. The files are written by the receiver of `kymo receive`, which trusts
 * nothing; what is there already is not written again. Each file is compared with the host's
 * manifest. The host ships once more what the servers have lost. At last the clocks are set by what
 * was measured when the snapshot was taken.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/clock.h"
#include "fleet/fleet.h"
#include "fleet/ids.h"
#include "merge/clock.h"
#include "ship/files.h"
#include "ship/receiver.h"

#define WAIT_US	     ((uint64_t)60000000)
#define ASK_US	     ((uint64_t)10000000)
#define PATIENCE_NS  ((uint64_t)5000000000) /* before a host is asked why it has not shipped */
#define POLL_MS	     50
#define FETCHED	     ".fetched" /* in a trace: all is there, and its clock is set */
#define METADATA_MAX (256u << 20)
#define PARTS_MAX    256u /* messages of a manifest */
#define NEW_METADATA ".metadata.clock"

struct fetch {
	struct fleet *fleet;
	const char *id;
	char newest[FLEET_ID_MAX + 2]; /* if none was given */
	char path[PATH_MAX];	       /* of the directory */
	int dir;
	struct kymo_value *note; /* NULL: the command that asked has stored none */
	uint64_t end_ns, ask_us;
	uint64_t n_events, n_discarded, n_bytes;
};

/* A session of a host. */
struct trace {
	struct fetch *fetch;
	const char *host;
	const struct kymo_value *manifest;
	size_t session;	  /* number in it */
	bool is_repeated; /* it was shipped once more: what came before may be damaged */
	bool was_here;	  /* an earlier fetch has completed it */
	struct receiver receiver;
	struct offset offset;
	char why[512];
};

static int fail_trace(struct trace *t, int error, const char *fmt, ...) KY_PRINTF(3, 4);

static int fail_trace(struct trace *t, int error, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(t->why, sizeof(t->why), fmt, ap);
	va_end(ap);
	return error;
}

static const struct kymo_value *session_of(const struct trace *t)
{
	return kymo_value_at(kymo_value_get(t->manifest, "sessions"), t->session);
}

static const char *text_of(const struct kymo_value *v, const char *name)
{
	return kymo_value_string(kymo_value_get(v, name));
}

static uint64_t number_of(const struct kymo_value *v, const char *name)
{
	return kymo_value_u64(kymo_value_get(v, name));
}

/* --- files --- */

/* Is the file as the manifest says? */
static bool is_complete(const struct trace *t, const struct kymo_value *file)
{
	const uint64_t size = number_of(file, "size");
	_cleanup_close_ int fd = openat(
		t->receiver.trace, text_of(file, "path"), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	uint32_t crc;
	struct stat st;
	void *p;

	if (fd < 0 || fstat(fd, &st) < 0 || (uint64_t)st.st_size != size)
		return false;
	p = size ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
	if (p == MAP_FAILED)
		return false;
	crc = segment_crc(p, size);
	if (p)
		munmap(p, size);
	return crc == number_of(file, "crc32c");
}

/* Hands a message to the receiver. Returns 0 or -errno, with `why`. */
static int receive_segment(struct trace *t, const struct segment *s, const void *payload)
{
	const int r = receiver_handle(&t->receiver, s, payload);

	return r < 0 ? fail_trace(t, r, "%s", t->receiver.why) : 0;
}

static uint64_t size_of(const struct trace *t, const char *path)
{
	struct stat st;

	return fstatat(t->receiver.trace, path, &st, AT_SYMLINK_NOFOLLOW) < 0
		       ? 0
		       : (uint64_t)st.st_size;
}

/*
 * number: of the file in the stream. Gets its next segment from seq on; -ENOENT: there is none. The
 * file has less than the manifest says.
 */
static int get_segment(struct trace *t, size_t number, const struct kymo_value *file, uint64_t *seq)
{
	const unsigned shard = config_shard(t->fetch->fleet->config.shards, t->host);
	char subject[FLEET_SUBJECT_MAX], stream[FLEET_STREAM_MAX];
	_cleanup_msg_ natsMsg *msg = NULL;
	const uint8_t *data;
	struct segment s;
	struct stored stored;
	int n, r;

	snprintf(stream, sizeof(stream), FLEET_SHARD, shard);
	snprintf(subject, sizeof(subject), FLEET_SEGMENTS ".%s.%zu", shard, t->host, t->fetch->id,
		number);
	r = link_next(&t->fetch->fleet->link, stream, subject, *seq, &stored);
	if (r < 0)
		return r == -ENOENT ? r : fail_trace(t, r, "%s", t->fetch->fleet->link.why);
	msg = stored.msg;
	*seq = stored.seq + 1;
	data = (const uint8_t *)natsMsg_GetData(msg);
	n = natsMsg_GetDataLength(msg);
	if (n < (int)SEGMENT_HEAD || segment_decode(data, &s) < 0 || s.type != SEGMENT_DATA ||
		s.length != (uint32_t)n - SEGMENT_HEAD)
		return fail_trace(t, -EPROTO, "the host has stored a message that is no segment");
	if (s.offset > size_of(t, text_of(file, "path")))
		return 0; /* what belongs before it is lost, or was shipped once more, behind it */
	if (s.raw > number_of(file, "size") - s.offset)
		return fail_trace(t, -EPROTO,
			"the host has stored more of %s than its manifest says",
			text_of(file, "path"));
	s.file = t->receiver.n_paths - 1;
	return receive_segment(t, &s, data + SEGMENT_HEAD);
}

static int get_file(struct trace *t, size_t number, const struct kymo_value *file)
{
	const char *path = text_of(file, "path");
	const struct segment s = {.type = SEGMENT_FILE,
		.length = (uint32_t)strlen(path),
		.file = t->receiver.n_paths};
	const uint64_t size = number_of(file, "size");
	uint64_t seq = 1;
	int r = receive_segment(t, &s, path);

	if (r < 0 || is_complete(t, file) || !size)
		return r;
	if (t->is_repeated)
		unlinkat(t->receiver.trace, path, 0);
	while (!r && size_of(t, path) < size)
		r = get_segment(t, number, file, &seq);
	/* A file of that size with other contents does not change any more. */
	if (r == -ENOENT || (!r && !is_complete(t, file)))
		return fail_trace(t, -ENODATA,
			"the server does not have all of %s any more, or it was damaged", path);
	return r;
}

static bool is_metadata(const char *path)
{
	const char *slash = strrchr(path, '/');

	return !strcmp(slash ? slash + 1 : path, "metadata");
}

/* Gets the metadata, or all other files. */
static int get_files(struct trace *t, bool metadata)
{
	const struct kymo_value *files = kymo_value_get(t->manifest, "files"), *file;
	int r = 0;

	for (size_t i = 0; !r && i < kymo_value_count(files); i++) {
		file = kymo_value_at(files, i);
		if (number_of(file, "session") == t->session &&
			is_metadata(text_of(file, "path")) == metadata)
			r = get_file(t, i, file);
	}
	return r;
}

/* --- clocks --- */

/* How far the clock of this metadata has to be moved, by what was measured on its host. */
static int find_offset(struct trace *t, const char *text, size_t n, struct offset *ret)
{
	const struct kymo_value *hosts = kymo_value_get(t->fetch->note, "hosts"), *h = NULL;
	int64_t ns;
	int r;

	*ret = (struct offset){0, OFFSETS_UNKNOWN};
	for (size_t i = 0; i < kymo_value_count(hosts); i++)
		if (!strcmp(text_of(kymo_value_at(hosts, i), "host"), t->host))
			h = kymo_value_at(hosts, i);
	if (!kymo_value_get(h, "at_ns"))
		return 0;
	r = clock_time(text, n, number_of(h, "counter"), number_of(h, "monotonic"), &ns);
	if (r < 0)
		return r;
	ret->shift_ns = (int64_t)number_of(h, "at_ns") - ns;
	ret->error_ns = (int64_t)number_of(h, "error_ns");
	return 0;
}

static int write_metadata(int parent, const struct ky_buf *b)
{
	_cleanup_close_ int fd = openat(
		parent, NEW_METADATA, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);

	int r = fd < 0 ? -errno : files_write(fd, b->data, b->len, 0);

	if (!r && (fsync(fd) < 0 || renameat(parent, NEW_METADATA, parent, "metadata") < 0))
		r = -errno;
	return r;
}

static int rewrite(struct trace *t, int parent)
{
	_cleanup_close_ int fd = openat(parent, "metadata", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	_cleanup_free_ char *text = NULL;
	struct ky_buf b = {0};
	struct clock_note note = {.source = "recorded"};
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	text = st.st_size > (off_t)METADATA_MAX ? NULL : malloc((size_t)st.st_size + 1);
	if (!text || read(fd, text, (size_t)st.st_size) != st.st_size)
		return -EIO;
	r = find_offset(t, text, (size_t)st.st_size, &t->offset);
	if (t->offset.error_ns != OFFSETS_UNKNOWN)
		note = (struct clock_note){"round-trip", t->fetch->id};
	if (!r)
		r = clock_rewrite(&b, text, (size_t)st.st_size, &t->offset, &note);
	if (!r)
		r = write_metadata(parent, &b);
	ky_buf_deinit(&b);
	return r;
}

static int set_clock(struct trace *t, const char *path)
{
	char dir[SEGMENT_PATH_MAX];
	const char *slash = strrchr(path, '/');
	_cleanup_close_ int parent = -1;
	int r;

	snprintf(dir, sizeof(dir), "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
	parent = openat(t->receiver.trace, dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	r = parent < 0 ? -errno : rewrite(t, parent);
	return r < 0 ? fail_trace(t, r, "%s: %s", path,
			       r == -EINVAL ? "this is no metadata that Kymo wrote" : strerror(-r))
		     : 0;
}

/* For each metadata of the trace: fn. */
static int each_metadata(struct trace *t, int (*fn)(struct trace *t, const char *path))
{
	const struct kymo_value *files = kymo_value_get(t->manifest, "files"), *file;
	int r = 0;

	for (size_t i = 0; !r && i < kymo_value_count(files); i++) {
		const char *path = text_of(kymo_value_at(files, i), "path");

		file = kymo_value_at(files, i);
		if (number_of(file, "session") != t->session || !is_metadata(path))
			continue;
		r = segment_path_valid(path, strlen(path))
			    ? fn(t, path)
			    : fail_trace(t, -EPROTO, "its manifest names a file that no trace has");
	}
	return r;
}

/* An earlier fetch may have ended behind this step: then it is no longer as it was shipped. */
static int discard_metadata(struct trace *t, const char *path)
{
	unlinkat(t->receiver.trace, path, 0);
	return 0;
}

/* --- a trace, a host --- */

static int open_trace(struct trace *t)
{
	const char *name = text_of(session_of(t), "name");
	uint8_t hello[SEGMENT_ID_SIZE + SEGMENT_NAME_MAX];
	struct segment s = {
		.type = SEGMENT_HELLO, .length = (uint32_t)(SEGMENT_ID_SIZE + strlen(name))};

	if (strlen(name) > SEGMENT_NAME_MAX ||
		!ids_from_hex(text_of(session_of(t), "recording"), hello, SEGMENT_ID_SIZE))
		return fail_trace(t, -EPROTO, "its manifest names no recording");
	memcpy(hello + SEGMENT_ID_SIZE, name, strlen(name));
	return receive_segment(t, &s, hello);
}

static int finish_trace(struct trace *t)
{
	const struct segment end = {.type = SEGMENT_END};
	int r = each_metadata(t, set_clock);
	int fd;

	if (!r)
		r = receive_segment(t, &end, NULL);
	if (r < 0)
		return r;
	fd = openat(t->receiver.trace, FETCHED, O_WRONLY | O_CREAT | O_CLOEXEC, 0640);
	if (fd < 0)
		return fail_trace(t, -errno, "%s: %s", FETCHED, strerror(errno));
	close(fd);
	return 0;
}

static int get_trace(struct trace *t)
{
	int r = open_trace(t);

	t->was_here = !r && !faccessat(t->receiver.trace, FETCHED, F_OK, 0);
	if (t->was_here)
		return 0;
	if (!r)
		r = each_metadata(t, discard_metadata);
	if (r)
		return r;
	/* Without metadata, nobody takes a part of the files for the trace. */
	r = get_files(t, false);
	if (!r)
		r = get_files(t, true);
	if (!r)
		r = finish_trace(t);
	if (r)
		each_metadata(t, discard_metadata);
	return r;
}

static void put_trace(const struct trace *t)
{
	const struct kymo_value *s = session_of(t);

	if (t->fetch->fleet->result)
		return;
	printf("%s/%s: %" PRIu64 " events, %" PRIu64 " discarded", t->host, t->receiver.name,
		number_of(s, "recorded"), number_of(s, "discarded"));
	if (t->offset.error_ns == OFFSETS_UNKNOWN)
		puts("; its clock was not measured");
	else if (t->offset.error_ns)
		printf("; clock set by %+" PRId64 " ns, its error is at most %" PRId64 " ns\n",
			t->offset.shift_ns, t->offset.error_ns);
	else
		puts(t->was_here ? "; was here" : "");
}

static void add_trace(const struct trace *t)
{
	const struct kymo_value *s = session_of(t);
	struct kymo_value *v;

	t->fetch->n_events += number_of(s, "recorded");
	t->fetch->n_discarded += number_of(s, "discarded");
	t->fetch->n_bytes += t->receiver.size;
	put_trace(t);
	if (!t->fetch->fleet->result)
		return;
	v = kymo_value_new();
	kymo_value_set_string(v, "host", t->host);
	kymo_value_set_string(v, "session", t->receiver.name);
	kymo_value_set_u64(v, "recorded", number_of(s, "recorded"));
	kymo_value_set_u64(v, "discarded", number_of(s, "discarded"));
	if (t->offset.error_ns && t->offset.error_ns != OFFSETS_UNKNOWN)
		kymo_value_set_u64(v, "clock_error_ns", (uint64_t)t->offset.error_ns);
	kymo_value_add(t->fetch->fleet->result, "traces", v);
	kymo_value_free(v);
}

/* A host's part of the snapshot: how far it is here. */
struct part {
	struct fetch *fetch;
	const char *host;
	struct kymo_value *manifest; /* owned */
	uint64_t seq;		     /* of the manifest; 0: there is none yet */
	size_t session;		     /* the next one */
	bool was_asked;		     /* to ship once more */
	char why[512];
};

/* Fetches the next session, or says why there is no snapshot of it. Returns as get_sessions(). */
static int get_session(struct part *p, int dir)
{
	struct trace t = {.fetch = p->fetch,
		.host = p->host,
		.manifest = p->manifest,
		.session = p->session,
		.is_repeated = p->was_asked};
	const struct kymo_value *s = session_of(&t);
	int r;

	if (!kymo_reply_ok(s) && *kymo_reply_error(s)) {
		fleet_warn("%s/%s is not in the snapshot: %s", p->host, text_of(s, "name"),
			kymo_reply_error(s));
		return 0;
	}
	receiver_init(&t.receiver, dir);
	r = get_trace(&t);
	if (!r)
		add_trace(&t);
	snprintf(p->why, sizeof(p->why), "%s", t.why);
	receiver_deinit(&t.receiver);
	return r;
}

/* Fetches a host's sessions. Returns 0, or -errno with `why`; -ENODATA: servers have lost some. */
static int get_sessions(struct part *p)
{
	const size_t n = kymo_value_count(kymo_value_get(p->manifest, "sessions"));
	_cleanup_close_ int dir = -1;
	int r = mkdirat(p->fetch->dir, p->host, 0750) < 0 && errno != EEXIST ? -errno : 0;

	if (!r) {
		dir = openat(
			p->fetch->dir, p->host, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = dir < 0 ? -errno : 0;
	}
	if (r < 0)
		snprintf(p->why, sizeof(p->why), "its directory: %s", strerror(-r));
	for (; !r && p->session < n; p->session += !r)
		r = get_session(p, dir);
	return r;
}

/* --- what the servers have lost --- */

/* host: who shall ship it once more; NULL: the hosts only say whether they hold it. */
static int ask_ship(struct fetch *f, struct hosts *hosts, const char *host)
{
	_cleanup_value_ struct kymo_value *request = kymo_value_new();

	kymo_value_set_string(request, "snapshot", f->id);
	if (host)
		kymo_value_set_string(request, "host", host);
	return hosts_ask(hosts, &f->fleet->link, "ship", request, f->ask_us);
}

/* Returns 0 if the host ships it once more, or -errno with that in `why`: -EAGAIN: no answer. */
static int ship_again(struct part *p)
{
	struct hosts one = {0};
	const struct kymo_value *answer = NULL;
	int r = -EAGAIN;

	if (hosts_get(&one, p->host) && !ask_ship(p->fetch, &one, p->host))
		answer = one.v[0].answer;
	p->was_asked = answer != NULL;
	if (answer)
		r = kymo_reply_ok(answer) ? 0 : -ENODATA;
	if (r < 0) {
		const size_t n = strlen(p->why);

		snprintf(p->why + n, sizeof(p->why) - n, "; the host: %s",
			answer ? kymo_reply_error(answer) : "no answer");
	}
	hosts_deinit(&one);
	return r;
}

/* Is it a message that only lists files? The manifest follows it. */
static bool is_part(const struct kymo_value *v)
{
	return number_of(v, "part") != 0;
}

/* Finds the parts of a manifest among the messages before it. The later one of a number counts. */
static int find_parts(struct part *p, const char *subject, struct kymo_value **parts, size_t n)
{
	struct link *l = &p->fetch->fleet->link;
	struct stored s;
	uint64_t seq = 1;
	int r;

	for (; !(r = link_next(l, FLEET_STREAM, subject, seq, &s)) && s.seq < p->seq;
		seq = s.seq + 1) {
		struct kymo_value *v = link_value(s.msg);
		const uint64_t number = number_of(v, "part");

		natsMsg_Destroy(s.msg);
		if (!number || number > n ||
			strcmp(text_of(v, "attempt"), text_of(p->manifest, "attempt"))) {
			kymo_value_free(v);
			continue;
		}
		kymo_value_free(parts[number - 1]);
		parts[number - 1] = v;
	}
	if (!r)
		natsMsg_Destroy(s.msg);
	if (r < 0 && r != -ENOENT) {
		snprintf(p->why, sizeof(p->why), "%s", l->why);
		return r;
	}
	for (size_t i = 0; i < n; i++)
		if (!parts[i]) {
			snprintf(p->why, sizeof(p->why),
				"the server does not have all of its manifest any more");
			return -ENODATA;
		}
	return 0;
}

/* Puts the files of all parts into the manifest, in their order: a file's place is its number. */
static void join_files(struct part *p, struct kymo_value **parts, size_t n)
{
	_cleanup_value_ struct kymo_value *all = kymo_value_new();

	kymo_value_set_list(all, "files");
	for (size_t i = 0; i <= n; i++) {
		const struct kymo_value *files = kymo_value_get(
			i < n ? parts[i] : p->manifest, "files");

		for (size_t k = 0; k < kymo_value_count(files); k++)
			kymo_value_add(all, "files", kymo_value_at(files, k));
	}
	kymo_value_set(p->manifest, "files", kymo_value_get(all, "files"));
}

/* A manifest of many files is in several messages. Returns as get_sessions(). */
static int join_manifest(struct part *p, const char *subject)
{
	const size_t n = number_of(p->manifest, "parts");
	struct kymo_value *parts[PARTS_MAX] = {NULL};
	int r;

	if (!n)
		return 0;
	if (n > PARTS_MAX) {
		snprintf(p->why, sizeof(p->why), "its manifest has too many parts");
		return -EPROTO;
	}
	r = find_parts(p, subject, parts, n);
	if (!r)
		join_files(p, parts, n);
	for (size_t i = 0; i < n; i++)
		kymo_value_free(parts[i]);
	return r;
}

/*
 * Looks whether there is a manifest that was not seen yet. Returns 0, -ENOENT if there is none, or
 * -errno, also if it is no manifest.
 */
static int get_manifest(struct part *p, const char *subject)
{
	struct stored s;
	struct kymo_value *v;
	int r = link_last(&p->fetch->fleet->link, FLEET_STREAM, subject, &s);

	if (r < 0)
		return r;
	v = s.seq == p->seq ? NULL : link_value(s.msg);
	natsMsg_Destroy(s.msg);
	if (s.seq == p->seq || is_part(v)) {
		kymo_value_free(v);
		return -ENOENT;
	}
	p->seq = s.seq;
	kymo_value_free(p->manifest);
	p->manifest = v;
	return v ? 0 : -EPROTO;
}

/* Waits for a manifest that was not seen yet. Returns 0, or -errno with `why`. */
static int wait_manifest(struct part *p)
{
	const uint64_t begin = ky_clock_ns(CLOCK_MONOTONIC);
	struct link *l = &p->fetch->fleet->link;
	char subject[FLEET_SUBJECT_MAX];
	uint64_t now;
	int r;

	snprintf(subject, sizeof(subject), "kymo.done.%s.%s", p->fetch->id, p->host);
	while ((r = get_manifest(p, subject)) && r != -EPROTO) {
		now = ky_clock_ns(CLOCK_MONOTONIC);
		snprintf(p->why, sizeof(p->why), "the host has not shipped all of it");
		if (now >= p->fetch->end_ns) {
			if (r != -ENOENT)
				snprintf(p->why, sizeof(p->why), "%s", l->why);
			return -ETIMEDOUT;
		}
		/* Without the note, its manifest is likely to be lost, too. */
		if (!p->was_asked && now - begin > (p->fetch->note ? PATIENCE_NS : 0) &&
			ship_again(p) == -ENODATA)
			return -ENODATA;
		nats_Sleep(POLL_MS);
	}
	if (r < 0)
		snprintf(p->why, sizeof(p->why), "no manifest");
	return r;
}

/* Gets the host's sessions by the manifest that was found. Returns as get_sessions(). */
static int get_shipped(struct part *p)
{
	char subject[FLEET_SUBJECT_MAX];
	int r;

	snprintf(subject, sizeof(subject), "kymo.done.%s.%s", p->fetch->id, p->host);
	r = join_manifest(p, subject);
	return r ? r : get_sessions(p);
}

/* Fetches what a host has shipped; once more, if the servers have lost some of it. */
static int get_host(struct fetch *f, const char *host)
{
	struct part p = {.fetch = f, .host = host};
	int r;

	while (!(r = wait_manifest(&p)) && (r = get_shipped(&p)) == -ENODATA)
		if (p.was_asked || ship_again(&p) < 0)
			break;
	if (r < 0)
		fleet_fail(f->fleet, "%s: %s", host, p.why);
	kymo_value_free(p.manifest);
	return r;
}

/*
 * The note is lost, and with it who has the snapshot: all hosts are asked, and those that do not
 * answer are named. Returns a code.
 */
static int find_holders(struct fetch *f, struct hosts *to)
{
	struct hosts *all = &f->fleet->hosts;

	if (ask_ship(f, all, NULL) < 0)
		return fleet_fail(f->fleet, "%s", f->fleet->link.why);
	for (size_t i = 0; i < all->n; i++) {
		const struct host *h = &all->v[i];

		if (!h->answer)
			fleet_warn(
				"%s does not answer: it may hold a part of the snapshot", h->name);
		else if (kymo_reply_ok(h->answer) &&
			 kymo_value_bool(kymo_value_get(h->answer, "ships")) &&
			 !hosts_get(to, h->name))
			return fleet_fail(f->fleet, "no memory");
	}
	return FLEET_OK;
}

/* --- the snapshot --- */

/* Finds the newest snapshot. */
static int find_newest(struct fetch *f)
{
	struct stored s;
	uint64_t seq = 1;
	int r;

	for (; !(r = link_next(&f->fleet->link, FLEET_STREAM, "kymo.note.*", seq, &s));
		seq = s.seq + 1) {
		snprintf(f->newest, sizeof(f->newest), "%s", link_what(s.msg));
		natsMsg_Destroy(s.msg);
	}
	if (r != -ENOENT)
		return fleet_fail(f->fleet, "%s", f->fleet->link.why);
	if (!link_id_valid(f->newest))
		return fleet_fail(
			f->fleet, "the server has no snapshot: 'kymo fleet snapshot' makes one");
	f->id = f->newest;
	return FLEET_OK;
}

static int get_note(struct fetch *f)
{
	char subject[FLEET_SUBJECT_MAX];
	struct stored s;
	int r;

	snprintf(subject, sizeof(subject), "kymo.note.%s", f->id);
	r = link_last(&f->fleet->link, FLEET_STREAM, subject, &s);
	if (r == -ENOENT)
		return FLEET_OK;
	if (r < 0)
		return fleet_fail(f->fleet, "%s", f->fleet->link.why);
	f->note = link_value(s.msg);
	natsMsg_Destroy(s.msg);
	return FLEET_OK;
}

/* Hosts that ship it: by the note, and those that have. They are left in `to`. */
static int find_hosts(struct fetch *f, struct hosts *to)
{
	const struct kymo_value *hosts = kymo_value_get(f->note, "hosts");
	char subject[FLEET_SUBJECT_MAX];
	struct stored s;
	int r = 0;

	for (size_t i = 0; i < kymo_value_count(hosts); i++) {
		const char *name = text_of(kymo_value_at(hosts, i), "host");

		if (kymo_value_bool(kymo_value_get(kymo_value_at(hosts, i), "ships")) &&
			config_host_valid(name) && !hosts_get(to, name))
			return fleet_fail(f->fleet, "no memory");
	}
	snprintf(subject, sizeof(subject), "kymo.done.%s.*", f->id);
	for (uint64_t seq = 1; !(r = link_next(&f->fleet->link, FLEET_STREAM, subject, seq, &s));) {
		const char *name = link_host(s.msg);
		const bool fits = !name || hosts_get(to, name);

		seq = s.seq + 1;
		natsMsg_Destroy(s.msg);
		if (!fits)
			return fleet_fail(f->fleet, "no memory");
	}
	return r == -ENOENT ? FLEET_OK : fleet_fail(f->fleet, "%s", f->fleet->link.why);
}

static bool is_in(const struct hosts *hosts, const char *name)
{
	for (size_t i = 0; i < hosts->n; i++)
		if (!strcmp(hosts->v[i].name, name))
			return true;
	return false;
}

/* Names each host that should have it and does not. One that answered late may have it. */
static void report_missing(const struct fetch *f, const struct hosts *in)
{
	const struct kymo_value *hosts = kymo_value_get(f->note, "hosts"), *h;

	for (size_t i = 0; i < kymo_value_count(hosts); i++) {
		h = kymo_value_at(hosts, i);
		if (!kymo_reply_ok(h) && !is_in(in, text_of(h, "host")))
			fleet_warn("%s is not in the snapshot: %s", text_of(h, "host"),
				kymo_reply_error(h));
	}
}

static int open_output(struct fetch *f)
{
	const char *given = fleet_option(f->fleet, "output");

	snprintf(f->path, sizeof(f->path), "%s", given ? given : f->id);
	if (mkdir(f->path, 0750) < 0 && errno != EEXIST)
		return fleet_fail(f->fleet, "%s: %s", f->path, strerror(errno));
	f->dir = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return f->dir < 0 ? fleet_fail(f->fleet, "%s: %s", f->path, strerror(errno)) : FLEET_OK;
}

static int get_hosts(struct fetch *f, const struct hosts *hosts)
{
	int code = FLEET_OK;

	if (f->fleet->result)
		kymo_value_set_list(f->fleet->result, "traces");
	for (size_t i = 0; i < hosts->n; i++)
		if (get_host(f, hosts->v[i].name) < 0)
			code = FLEET_FAILED;
	return code;
}

static int report_fetched(struct fetch *f, const struct hosts *hosts)
{
	struct kymo_value *result = f->fleet->result;

	report_missing(f, hosts);
	if (result) {
		kymo_value_set_string(result, "output", f->path);
		kymo_value_set_u64(result, "recorded", f->n_events);
		kymo_value_set_u64(result, "discarded", f->n_discarded);
		return FLEET_OK;
	}
	if (*text_of(f->note, "reason")) {
		fputs("reason: ", stdout);
		fleet_put(text_of(f->note, "reason"));
		putchar('\n');
	}
	printf("%" PRIu64 " events of %zu host%s in %s\n", f->n_events, hosts->n,
		hosts->n == 1 ? "" : "s", f->path);
	return FLEET_OK;
}

int fetch_run(struct fleet *f)
{
	struct fetch fetch = {
		.fleet = f, .id = kymo_value_string(kymo_value_at(f->args, 0)), .dir = -1};
	struct hosts hosts = {0};
	uint64_t us;
	int code = fleet_timeout(f, WAIT_US, &us);

	if (!code)
		code = fleet_timeout(f, ASK_US, &fetch.ask_us);
	if (!code && (kymo_value_count(f->args) > 1 || (*fetch.id && !link_id_valid(fetch.id))))
		code = fleet_usage(f,
			"one snapshot is fetched at a time: 'kymo fleet fetch ID', as 'kymo fleet snapshot' printed it");
	if (!code)
		code = fleet_connect(f, 0);
	f->link.has_copies = strchr(f->config.servers, ',');
	if (!code && !*fetch.id)
		code = find_newest(&fetch);
	if (!code)
		code = get_note(&fetch);
	if (!code)
		code = find_hosts(&fetch, &hosts);
	if (!code && !fetch.note)
		code = find_holders(&fetch, &hosts);
	if (!code && !fetch.note && !hosts.n)
		code = fleet_fail(
			f, "neither the servers nor the hosts have snapshot '%s'", fetch.id);
	if (!code && !hosts.n)
		code = fleet_fail(f, "no host ships snapshot '%s'", fetch.id);
	if (!code)
		code = open_output(&fetch);
	fetch.end_ns = ky_clock_ns(CLOCK_MONOTONIC) + us * 1000;
	if (!code)
		code = get_hosts(&fetch, &hosts);
	if (!code)
		code = report_fetched(&fetch, &hosts);
	kymo_value_free(fetch.note);
	hosts_deinit(&hosts);
	ky_close(fetch.dir);
	return code;
}
