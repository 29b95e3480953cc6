/* SPDX-License-Identifier: MIT */
#include "ship/receiver.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "ctf/index.h"
#include "ctf/watermark.h"
#include "ship/files.h"
#include "ship/packer.h"

#define RECORDING    ".recording"
#define NAMES_MAX    1000u
#define METADATA_MAX (64u << 20)
#define NEW_METADATA ".metadata.new"
#define ENTRY_SIZE   4096u /* what a file or directory takes of a disk, even if it is empty */
#define ENTRIES_MIN  256u
#define DUE_BYTES    (2u << 20) /* acknowledged at last: a quarter of what may be in flight */

void receiver_init(struct receiver *r, int dir)
{
	*r = (struct receiver){.dir = dir,
		.trace = -1,
		.lock = -1,
		.in = -1,
		.out = -1,
		.max = UINT64_MAX,
		.patience_ms = RECEIVER_SILENCE_S * 1000};
}

void receiver_deinit(struct receiver *r)
{
	for (uint32_t i = 0; i < r->n_paths; i++)
		free(r->paths[i]);
	free(r->paths);
	ky_close(r->lock);
	ky_close(r->trace);
}

static int fail_receiving(struct receiver *r, int error, const char *fmt, ...) KY_PRINTF(3, 4);

static int fail_receiving(struct receiver *r, int error, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->why, sizeof(r->why), fmt, ap);
	va_end(ap);
	return error;
}

/* The reason that was found first stays. */
static int fail_at(struct receiver *r, int error, const char *path)
{
	if (error == -EDQUOT && *r->why)
		return error;
	return fail_receiving(r, error, "%s/%s: %s", r->name, path, strerror(-error));
}

static int fail_damaged(struct receiver *r)
{
	return fail_receiving(r, -EBADMSG, "data was damaged on its way");
}

/* Opens a path below a directory, through no symbolic link. Returns a descriptor or -errno. */
static int open_beneath(int dir, const char *path, uint64_t flags)
{
	const struct open_how how = {
		.flags = flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
		.mode = flags & O_CREAT ? 0640 : 0,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	int fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

/* --- the connection --- */

/*
 * Waits for the connection. Nobody else says that it is broken: sshd keeps one for hours. Its
 * lock must not outlive it for so long.
 */
static int wait_for(struct receiver *r, int fd, short events)
{
	struct pollfd p = {.fd = fd, .events = events};
	int n;

	do
		n = poll(&p, 1, r->never_silent ? r->patience_ms : -1);
	while (n < 0 && errno == EINTR);
	if (n)
		return n < 0 ? -errno : 0;
	r->patience_ms = 0; /* for the last words */
	return fail_receiving(
		r, -ETIMEDOUT, "the connection stood still for %d s", RECEIVER_SILENCE_S);
}

/* Returns 1, 0 if the connection ends before n bytes have come, or -ETIMEDOUT with `why`. */
static int read_full(struct receiver *r, uint8_t *p, size_t n)
{
	while (n) {
		const int ret = wait_for(r, r->in, POLLIN);
		const ssize_t done = ret < 0 ? 0 : read(r->in, p, n);

		if (ret == -ETIMEDOUT)
			return ret;
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return 0;
		p += done;
		n -= (size_t)done;
	}
	return 1;
}

/* At most SEGMENT_HEAD + SEGMENT_PATH_MAX bytes: there is room for all if there is for some. */
static int write_full(struct receiver *r, const uint8_t *p, size_t n)
{
	while (n) {
		const int ret = wait_for(r, r->out, POLLOUT);
		const ssize_t done = ret < 0 ? 0 : write(r->out, p, n);

		if (ret < 0)
			return ret;
		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		p += done;
		n -= (size_t)done;
	}
	return 0;
}

static int send_segment(struct receiver *r, const struct segment *s, const void *payload)
{
	uint8_t buf[SEGMENT_HEAD + SEGMENT_PATH_MAX];
	struct segment g = *s;

	g.crc = segment_crc(payload, g.length);
	segment_encode(&g, buf);
	if (g.length)
		memcpy(buf + SEGMENT_HEAD, payload, g.length);
	return r->out < 0 ? 0 : write_full(r, buf, SEGMENT_HEAD + g.length);
}

/* --- the directory of a recording --- */

static bool is_empty(int dir)
{
	int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *e;
	bool empty = d != NULL;

	while (d && (e = readdir(d)))
		empty = empty && (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
					 !strcmp(e->d_name, RECORDING));
	if (d)
		closedir(d);
	else
		ky_close(copy);
	return empty;
}

/*
 * Takes the directory if it is this recording's, or new: it is empty, also if the receiver was
 * killed before it wrote the identifier. Returns 1 if it is another's, 0, or -errno: -EBUSY if
 * another receiver writes it.
 */
static int take_directory(struct receiver *r, const uint8_t id[SEGMENT_ID_SIZE])
{
	uint8_t there[SEGMENT_ID_SIZE];
	ssize_t n;
	int ret = 0;

	if (mkdirat(r->dir, r->name, 0750) < 0 && errno != EEXIST)
		return -errno;
	r->trace = open_beneath(r->dir, r->name, O_RDONLY | O_DIRECTORY);
	if (r->trace < 0)
		return r->trace == -ENOTDIR || r->trace == -ELOOP ? 1 : r->trace;
	r->lock = open_beneath(
		r->trace, RECORDING, O_RDWR | (is_empty(r->trace) ? (uint64_t)O_CREAT : 0));
	if (r->lock < 0)
		return r->lock == -ENOENT ? 1 : r->lock;
	n = pread(r->lock, there, sizeof(there), 0);
	if (n == (ssize_t)sizeof(there) && memcmp(there, id, sizeof(there)) != 0)
		return 1;
	if (flock(r->lock, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	if (n < (ssize_t)sizeof(there))
		ret = is_empty(r->trace) ? files_write(r->lock, id, SEGMENT_ID_SIZE, 0) : 1;
	return ret;
}

static int find_directory(struct receiver *r, const struct segment *s, const uint8_t *payload)
{
	char name[SEGMENT_NAME_MAX + 1];
	int ret = 1;

	memcpy(name, payload + SEGMENT_ID_SIZE, s->length - SEGMENT_ID_SIZE);
	name[s->length - SEGMENT_ID_SIZE] = '\0';
	for (unsigned i = 1; i <= NAMES_MAX && ret == 1; i++) {
		r->lock = ky_close(r->lock);
		r->trace = ky_close(r->trace);
		snprintf(r->name, sizeof(r->name), i > 1 ? "%s-%u" : "%s", name, i);
		ret = take_directory(r, payload);
	}
	if (ret == 1)
		return fail_receiving(
			r, -EEXIST, "there are %u other recordings of that name", NAMES_MAX);
	if (ret == -EBUSY)
		return fail_receiving(r, ret,
			"another receiver still writes %s; if its connection is broken, it ends within %d s",
			r->name, RECEIVER_SILENCE_S);
	return ret < 0 ? fail_at(r, ret, "") : 0;
}

/* --- what is here --- */

/* Cuts a file that is longer to `end` bytes. Returns the end, or -errno. */
static int64_t cut_file(int fd, uint64_t size, uint64_t end)
{
	return end < size && ftruncate(fd, (off_t)end) < 0 ? -errno : (int64_t)end;
}

/*
 * Cuts a stream to what its index says: a receiver that was killed may have left a part of a
 * packet. Returns its size, or -errno. Cuts nothing if the index cannot be read.
 */
static int64_t trim_stream(struct receiver *r, const char *path, int fd, uint64_t size)
{
	char index[SEGMENT_PATH_MAX + 16];
	int64_t end;
	int i;

	/* A sender that has holes cannot send the second part of a packet. */
	if (!files_index_of(path, index, sizeof(index)))
		return (int64_t)size;
	i = open_beneath(r->trace, index, O_RDONLY);
	if (i == -ENOENT)
		end = r->sync ? 0 : (int64_t)size;
	else
		end = i < 0 ? i : files_indexed(i, size, NULL);
	ky_close(i);
	return end < 0 ? end : cut_file(fd, size, (uint64_t)end);
}

/* Cuts an index to whole entries, of packets that are here. */
static int64_t trim_index(struct receiver *r, const char *path, int fd, uint64_t size)
{
	char stream[SEGMENT_PATH_MAX];
	int64_t packets = 0;
	uint64_t end = 0;
	struct stat st;
	int s;

	files_stream_of(path, stream, sizeof(stream));
	s = open_beneath(r->trace, stream, O_RDONLY);
	if (s >= 0)
		packets = fstat(s, &st) < 0 ? -errno
					    : files_indexed(fd, (uint64_t)st.st_size, &end);
	else if (s != -ENOENT)
		packets = s;
	ky_close(s);
	return packets < 0 ? packets : cut_file(fd, size, end);
}

static void count_directory(void *context, int dir)
{
	struct receiver *r = context;

	(void)dir;
	r->n_entries++;
}

static int report_file(void *context, const char *path)
{
	struct receiver *r = context;
	_cleanup_close_ int fd = open_beneath(r->trace, path, O_RDWR);
	struct segment s = {.type = SEGMENT_HAVE, .length = (uint32_t)strlen(path)};
	int64_t size;
	struct stat st;

	if (!segment_path_valid(path, s.length))
		return 0; /* somebody else has put it there: no sender has it */
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return fail_at(r, fd < 0 ? fd : -EBADF, path);
	size = files_is_index(path) ? trim_index(r, path, fd, (uint64_t)st.st_size)
				    : trim_stream(r, path, fd, (uint64_t)st.st_size);
	if (size < 0)
		return fail_at(r, (int)size, path);
	s.offset = (uint64_t)size;
	r->size += (uint64_t)size;
	r->n_entries++;
	return send_segment(r, &s, path);
}

static int handle_hello(struct receiver *r, const struct segment *s, const uint8_t *payload)
{
	const struct segment ready = {
		.type = SEGMENT_READY, .offset = s->offset & SEGMENT_NEVER_SILENT};
	int ret;

	r->sync = r->sync || s->offset & SEGMENT_SYNC;
	r->never_silent = s->offset & SEGMENT_NEVER_SILENT;

	if (r->trace >= 0 || s->length <= SEGMENT_ID_SIZE ||
		!segment_name_valid(
			(const char *)payload + SEGMENT_ID_SIZE, s->length - SEGMENT_ID_SIZE))
		return fail_receiving(r, -EPROTO, "the sender does not name a recording");
	ret = find_directory(r, s, payload);
	if (!ret && r->sync && syncfs(r->trace) < 0)
		ret = fail_at(r, -errno, "");
	if (!ret)
		ret = files_walk(r->trace, report_file, count_directory, r);
	return ret ? ret : send_segment(r, &ready, NULL);
}

/* --- what comes --- */

static int handle_file(struct receiver *r, const struct segment *s, const char *payload)
{
	char **paths;

	if (s->file != r->n_paths || r->n_paths == SEGMENT_FILES_MAX ||
		!segment_path_valid(payload, s->length) || !files_is_walked(payload, s->length))
		return fail_receiving(r, -EPROTO, "the sender names a file that no trace has");
	paths = reallocarray(r->paths, r->n_paths + 1, sizeof(*paths));
	if (!paths)
		return fail_receiving(r, -ENOMEM, "no memory");
	r->paths = paths;
	paths[r->n_paths] = strndup(payload, s->length);
	if (!paths[r->n_paths])
		return fail_receiving(r, -ENOMEM, "no memory");
	r->n_paths++;
	return 0;
}

/* A new file or directory: their number is limited as their bytes are. */
static int add_entry(struct receiver *r)
{
	const uint64_t most = r->max / ENTRY_SIZE + ENTRIES_MIN;

	if (r->n_entries >= most)
		return fail_receiving(r, -EDQUOT,
			"%s has its limit of %" PRIu64 " files and directories", r->name, most);
	r->n_entries++;
	return 0;
}

/* Opens a directory. Makes it if it does not exist. */
static int open_directory(struct receiver *r, int parent, const char *name)
{
	int fd = open_beneath(parent, name, O_RDONLY | O_DIRECTORY);
	int ret = fd == -ENOENT ? add_entry(r) : fd;

	if (fd != -ENOENT || ret < 0)
		return ret;
	return mkdirat(parent, name, 0750) < 0 ? -errno
					       : open_beneath(parent, name, O_RDONLY | O_DIRECTORY);
}

/* Opens the directory of a file. Makes it, and those above it, if it does not exist. */
static int open_parent(struct receiver *r, const char *path)
{
	char dir[SEGMENT_PATH_MAX + 2];
	const char *slash = strrchr(path, '/');
	int parent, fd;

	snprintf(dir, sizeof(dir), "./%.*s", slash ? (int)(slash - path) : 0, path);
	fd = open_beneath(r->trace, dir, O_RDONLY | O_DIRECTORY);
	if (fd != -ENOENT)
		return fd;
	fd = open_beneath(r->trace, ".", O_RDONLY | O_DIRECTORY);
	for (; fd >= 0 && (slash = strchr(path, '/')); path = slash + 1) {
		snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path), path);
		parent = fd;
		fd = open_directory(r, parent, dir);
		close(parent);
	}
	return fd;
}

/* Appends n bytes, and zeros up to the end; whole or not at all. */
static int append_with_zeros(int fd, const uint8_t *p, size_t n, uint64_t at, uint64_t end)
{
	int ret = files_write(fd, p, n, at);

	if (!ret && at + n < end && ftruncate(fd, (off_t)end) < 0)
		ret = -errno;
	if (ret < 0)
		cut_file(fd, end, at);
	return ret;
}

/*
 * A reader sees the text before or after: so it is written anew, and takes the place of the old,
 * which is not there (-1) at first.
 */
static int append_metadata(int parent, int old, const uint8_t *p, size_t n, uint64_t at)
{
	_cleanup_free_ uint8_t *text = at + n > METADATA_MAX ? NULL : malloc(at + n);
	_cleanup_close_ int fd = -1;
	int ret;

	if (!text || (at && pread(old, text, at, 0) != (ssize_t)at))
		return text ? -EIO : -EFBIG;
	memcpy(text + at, p, n);
	if (unlinkat(parent, NEW_METADATA, 0) < 0 && errno != ENOENT)
		return -errno;
	fd = open_beneath(parent, NEW_METADATA, O_RDWR | O_CREAT | O_EXCL);
	ret = fd < 0 ? fd : files_write(fd, text, at + n, 0);
	if (!ret && fdatasync(fd) < 0)
		ret = -errno;
	if (!ret && renameat(parent, NEW_METADATA, parent, "metadata") < 0)
		ret = -errno;
	return ret;
}

/* Opens a file. create: makes it if it does not exist. */
static int open_file(struct receiver *r, int parent, const char *name, bool create)
{
	int fd = parent < 0 ? parent : open_beneath(parent, name, O_RDWR);
	int ret = parent >= 0 && fd == -ENOENT ? add_entry(r) : fd;

	if (ret < 0)
		return ret;
	return fd == -ENOENT && create ? open_beneath(parent, name, O_RDWR | O_CREAT) : fd;
}

/*
 * Appends what is new of the segment, whose n bytes without codec are at p. *ret_size: the size of
 * the file then.
 */
static int store_segment(struct receiver *r, const char *path, const struct segment *s,
	const uint8_t *p, size_t n, uint64_t *ret_size)
{
	_cleanup_close_ int parent = open_parent(r, path);
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	const bool is_metadata = !strcmp(name, "metadata");
	_cleanup_close_ int fd = open_file(r, parent, name, !is_metadata);
	const bool is_new = is_metadata && fd == -ENOENT;
	const uint64_t end = s->offset + s->raw, known = s->offset + n;
	uint64_t size;
	struct stat st = {.st_mode = S_IFREG};
	int ret;

	if (!is_new && (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)))
		return fail_at(r, fd < 0 ? fd : -EBADF, path);
	size = *ret_size = (uint64_t)st.st_size;
	if (s->offset > size)
		return fail_receiving(
			r, -EPROTO, "%s: bytes before those that came are missing", path);
	if (end <= size)
		return 0;
	if (end - size > r->max - KY_MIN(r->size, r->max))
		return fail_receiving(
			r, -EDQUOT, "%s has its limit of %" PRIu64 " bytes", r->name, r->max);
	p += KY_MIN(size, known) - s->offset;
	n = known - KY_MIN(size, known);
	if (!is_metadata)
		ret = append_with_zeros(fd, p, n, size, end);
	else
		ret = n == end - size ? append_metadata(parent, fd, p, n, size) : -EPROTO;
	if (ret < 0)
		return fail_at(r, ret, path);
	r->size += end - size;
	*ret_size = end;
	return 0;
}

/* Returns the bytes without codec, in *ret_unpacked if that is needed; or NULL, with `why`. */
static const uint8_t *unpack(
	struct receiver *r, const struct segment *s, const uint8_t *payload, uint8_t **ret_unpacked)
{
	if (s->codec != SEGMENT_ZSTD)
		return payload;
	*ret_unpacked = malloc(s->raw);
	if (!*ret_unpacked)
		fail_receiving(r, -ENOMEM, "no memory");
	else if (!packer_unpack(payload, s->length, *ret_unpacked, s->raw))
		return *ret_unpacked;
	else
		fail_receiving(r, -EBADMSG, "compressed data was damaged on its way");
	return NULL;
}

/* Acknowledges what was not acknowledged yet, when it is on the disk. Returns 0 or -errno. */
static int acknowledge_due(struct receiver *r)
{
	int ret = r->n_due && syncfs(r->trace) < 0 ? fail_at(r, -errno, "") : 0;

	for (unsigned i = 0; i < r->n_due && !ret; i++)
		ret = send_segment(r, &r->due[i], NULL);
	r->n_due = 0;
	r->due_bytes = 0;
	return ret;
}

static int acknowledge(struct receiver *r, const struct segment *ack, uint32_t bytes)
{
	unsigned i = 0;

	if (!r->sync)
		return send_segment(r, ack, NULL);
	while (i < r->n_due && r->due[i].file != ack->file)
		i++;
	r->due[i] = *ack;
	r->n_due += i == r->n_due;
	r->due_bytes += bytes;
	return r->n_due == RECEIVER_DUE_MAX || r->due_bytes >= DUE_BYTES ? acknowledge_due(r) : 0;
}

static int handle_data(struct receiver *r, const struct segment *s, const uint8_t *payload)
{
	struct segment ack = {.type = SEGMENT_ACK, .file = s->file};
	_cleanup_free_ uint8_t *unpacked = NULL;
	const uint8_t *raw;
	int ret;

	size_t n;

	if (s->file >= r->n_paths || !s->raw)
		return fail_receiving(r, -EPROTO, "the sender sends data without a file");
	raw = unpack(r, s, payload, &unpacked);
	if (!raw)
		return -EBADMSG;
	n = s->codec == SEGMENT_ZEROS ? s->length : s->raw;
	if (segment_crc(raw, n) != s->crc)
		return fail_damaged(r);
	ret = store_segment(r, r->paths[s->file], s, raw, n, &ack.offset);
	return ret ? ret : acknowledge(r, &ack, s->length);
}

static int handle_watermark(struct receiver *r, const struct segment *s, const uint8_t *payload)
{
	_cleanup_close_ int fd = -1;
	int ret;

	if (s->length != sizeof(struct ky_watermark))
		return fail_receiving(r, -EPROTO, "the sender's watermark has another size");
	fd = open_beneath(r->trace, KY_WATERMARK_NAME, O_WRONLY | O_CREAT);
	ret = fd < 0 ? fd : files_write(fd, payload, s->length, 0);
	return ret < 0 ? fail_at(r, ret, KY_WATERMARK_NAME) : 0;
}

static int handle_end(struct receiver *r)
{
	const struct segment end = {.type = SEGMENT_END};
	int ret = acknowledge_due(r);

	if (!ret)
		ret = syncfs(r->trace) < 0 ? -errno : send_segment(r, &end, NULL);
	return ret < 0 ? fail_at(r, ret, "") : 1;
}

int receiver_handle(struct receiver *r, const struct segment *s, const void *payload)
{
	if (s->type == SEGMENT_HELLO)
		return handle_hello(r, s, payload);
	if (r->trace < 0)
		return fail_receiving(r, -EPROTO, "the sender does not introduce itself");
	switch (s->type) {
	case SEGMENT_FILE:
		return handle_file(r, s, payload);
	case SEGMENT_DATA:
		return handle_data(r, s, payload);
	case SEGMENT_WATERMARK:
		return handle_watermark(r, s, payload);
	case SEGMENT_END:
		return handle_end(r);
	case SEGMENT_ALIVE:
		return send_segment(r, s, NULL);
	default:
		return fail_receiving(r, -EPROTO, "the sender sends what only receivers send");
	}
}

/* Is there nothing to read yet? */
static bool must_wait(const struct receiver *r)
{
	struct pollfd p = {.fd = r->in, .events = POLLIN};

	return poll(&p, 1, 0) == 0;
}

static int serve_segments(struct receiver *r, uint8_t *payload)
{
	uint8_t head[SEGMENT_HEAD];
	struct segment s;
	int ret = 0;

	while (!ret) {
		if (r->n_due && must_wait(r))
			ret = acknowledge_due(r);
		if (ret < 0)
			return ret;
		ret = read_full(r, head, sizeof(head));
		if (ret <= 0)
			return ret;
		ret = segment_decode(head, &s);
		if (ret == -EPROTO)
			return fail_receiving(
				r, ret, "the sender is not 'kymo ship' of this version");
		if (ret < 0)
			return fail_damaged(r);
		ret = read_full(r, payload, s.length);
		if (ret <= 0)
			return ret;
		/* That of DATA covers what the payload becomes. */
		if (s.type != SEGMENT_DATA && segment_crc(payload, s.length) != s.crc)
			return fail_damaged(r);
		ret = receiver_handle(r, &s, payload);
	}
	return ret;
}

int receiver_serve(struct receiver *r)
{
	_cleanup_free_ uint8_t *payload = malloc(SEGMENT_PAYLOAD_MAX);
	struct segment error = {.type = SEGMENT_ERROR};
	int ret = payload ? serve_segments(r, payload) : fail_receiving(r, -ENOMEM, "no memory");

	if (ret >= 0)
		return ret;
	if (!*r->why)
		fail_receiving(r, ret, "%s", strerror(-ret));
	error.length = (uint32_t)strlen(r->why);
	send_segment(r, &error, r->why);
	return ret;
}
