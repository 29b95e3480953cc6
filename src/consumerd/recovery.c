/* SPDX-License-Identifier: MIT */
#include "consumerd/recovery.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "consumerd/consumerd.h"
#include "consumerd/requests.h"
#include "consumerd/round.h"
#include "consumerd/stream/stream-set.h"
#include "consumerd/stream/trace.h"
#include "consumerd/watermark.h"
#include "svc/log.h"
#include "svc/shm-dir.h"

#define LOCK_WAIT_NS UINT64_C(2000000000)
#define CLOCK_MAX_S  (UINT64_C(50) * 365 * 86400)
#define TEXT_MAX     (64u << 20) /* of a metadata log; the session daemon's limit */

struct recovery {
	struct consumerd consumer;
	const char *path; /* borrowed */
	int dir;
	const char *output; /* borrowed; NULL: the session's own trace */
	uint8_t *orders;    /* the contents of DIR/session */
	size_t size, pos;
	uint32_t n_sets, n_left_out; /* ring sets that exist; that were left out */
};

struct recovered {
	struct ky_cons_stats before, after;
};

/* --- reading the directory --- */

/* Reads a whole file of at most `most` bytes, and adds a NUL. The caller frees *ret_bytes. */
static int read_file(int dir, const char *name, size_t most, uint8_t **ret_bytes, size_t *ret_size)
{
	_cleanup_close_ int fd = ky_shm_open(dir, name, O_RDONLY);
	struct stat st;
	uint8_t *bytes;
	size_t n = 0;
	ssize_t r = 0;

	if (fd < 0 || fstat(fd, &st) < 0)
		return fd < 0 ? fd : -errno;
	if ((uint64_t)st.st_size > most)
		return -EFBIG;
	bytes = malloc((size_t)st.st_size + 1);
	if (!bytes)
		return -ENOMEM;
	while (n < (size_t)st.st_size && (r = read(fd, bytes + n, (size_t)st.st_size - n)) > 0)
		n += (size_t)r;
	if (r < 0) {
		r = -errno;
		free(bytes);
		return (int)r;
	}
	bytes[n] = 0;
	*ret_bytes = bytes;
	*ret_size = n;
	return 0;
}

size_t recovery_next_message(const uint8_t *bytes, size_t size, size_t *pos)
{
	struct ky_msg_hdr hdr;

	if (size - *pos < sizeof(hdr))
		return 0;
	memcpy(&hdr, bytes + *pos, sizeof(hdr));
	if (hdr.len < sizeof(hdr) || hdr.len > KY_MSG_MAX || hdr.len > size - *pos)
		return 0;
	*pos += hdr.len;
	return hdr.len;
}

size_t recovery_whole_text(const char *text, size_t size, const char *uuid, uint32_t stream)
{
	static const char end[] = "\n\n"; /* of each block and comment */
	char begin[32];

	snprintf(begin, sizeof(begin), "\nstream {\n\tid = %u;\n", stream);
	if (strncmp(text, "/* CTF 1.8 */", KY_MIN(size, 13u)) ||
		!memmem(text, size, uuid, strlen(uuid)))
		return 0;
	while (size >= sizeof(end) - 1 &&
		memcmp(text + size - (sizeof(end) - 1), end, sizeof(end) - 1))
		size--;
	return size >= sizeof(end) - 1 && memmem(text, size, begin, strlen(begin)) ? size : 0;
}

/* Returns the clock 50 years after its zero: the machine may have started again since then. */
static uint64_t latest_clock(const char *text)
{
	const char *found = strstr(text, "\n\tfreq = ");
	uint64_t freq = found ? strtoull(found + strlen("\n\tfreq = "), NULL, 10) : 0, latest;

	return !freq || __builtin_mul_overflow(freq, CLOCK_MAX_S, &latest) ? UINT64_MAX : latest;
}

/*
 * Copies the set's metadata log, as far as it is complete, and finds the limit of its clocks.
 * Returns the descriptor, or -errno.
 */
static int open_log(struct recovery *r, const struct ky_cons_ring_set *m)
{
	char name[KY_SHM_NAME_MAX], uuid[TRACE_UUID_TEXT];
	_cleanup_free_ uint8_t *text = NULL;
	size_t size;
	int fd, ret;

	ky_shm_metadata(name, m->uuid_hi, m->uuid_lo);
	ret = read_file(r->dir, name, TEXT_MAX, &text, &size);
	if (ret < 0)
		return ret;
	trace_format_uuid(uuid, m->uuid_hi, m->uuid_lo);
	size = recovery_whole_text((char *)text, size, uuid, m->stream_id);
	if (!size)
		return -EBADMSG;
	r->consumer.latest_clock = latest_clock((char *)text);
	fd = memfd_create("kymo-metadata", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, text, size) == (ssize_t)size)
		return fd;
	ky_close(fd);
	return -EIO;
}

bool recovery_header_matches(const struct ky_set_header *h, const struct ky_cons_ring_set *m,
	struct ky_geometry *ret_geometry)
{
	struct ky_geometry ours, theirs;

	KY_GEOMETRY_COPY(&ours, m);
	if (ky_geometry_take(&ours) < 0 || h->magic != KY_RING_MAGIC ||
		h->version != KY_RING_VERSION || h->number != m->set || h->uuid_hi != m->uuid_hi ||
		h->uuid_lo != m->uuid_lo)
		return false;
	theirs = ours;
	KY_GEOMETRY_COPY(&theirs, h);
	*ret_geometry = ours;
	return !memcmp(&ours, &theirs, sizeof(ours));
}

/*
 * Checks that the file is the memory of this set, and complete. Programs could write there, too:
 * this only detects files that were mixed up.
 */
static int check_buffers(int fd, const struct ky_cons_ring_set *m)
{
	struct ky_geometry g;
	struct ky_set_header h;
	struct stat st;

	if (fstat(fd, &st) < 0 || pread(fd, &h, sizeof(h), 0) != sizeof(h) ||
		!recovery_header_matches(&h, m, &g) || (uint64_t)st.st_size < g.total_size)
		return -EBADMSG;
	return 0;
}

static int open_buffers(const struct recovery *r, const struct ky_cons_ring_set *m)
{
	char name[KY_SHM_NAME_MAX];
	int fd, ret;

	ky_shm_buffers(name, m->set);
	fd = ky_shm_open(r->dir, name, O_RDONLY);
	ret = fd < 0 ? fd : check_buffers(fd, m);
	if (!ret)
		return fd;
	ky_close(fd);
	return ret;
}

static int open_positions(const struct recovery *r, const struct ky_cons_ring_set *m)
{
	char name[KY_SHM_NAME_MAX];
	struct stat st;
	int fd;

	if (r->output) /* all records, whatever the consumer's position was */
		return fcntl(r->dir, F_DUPFD_CLOEXEC, 0);
	ky_shm_positions(name, m->set);
	fd = ky_shm_open(r->dir, name, O_RDWR);
	if (fd < 0 || (!fstat(fd, &st) && (uint64_t)st.st_size >= ky_consumed_size(m->n_rings)))
		return fd;
	ky_close(fd);
	return -EBADMSG;
}

/* --- following the requests --- */

static void leave_out(struct recovery *r, uint32_t set, const char *what, int error)
{
	ky_error("%s: the %s of ring set %u cannot be used (%s): its events are left out", r->path,
		what, set,
		error == -EBADMSG ? "damaged, truncated or of another session" : strerror(-error));
	r->n_left_out++;
}

/* Counts the sets that DIR/session does not describe, because it may have been cut off. */
static void leave_out_unknown(struct recovery *r)
{
	int n = ky_shm_count_buffers(r->dir) - (int)r->n_sets;

	if (n <= 0)
		return;
	ky_error("%s/" KY_SHM_SESSION " is truncated: the buffers of %d ring sets are left out",
		r->path, n);
	r->n_left_out += (uint32_t)n;
}

/* Passes one message to the consumer as a request. Takes fds. */
static int follow_request(
	struct recovery *r, const void *message, size_t len, int *fds, size_t n_fds)
{
	int ret = requests_follow(&r->consumer, message, len, fds, n_fds);

	for (size_t i = 0; i < n_fds; i++)
		ky_close(fds[i]);
	return ret;
}

static void recover_set(struct recovery *r, const uint8_t *message, size_t len)
{
	static const char *const what[] = {"buffers", "positions", "metadata"};
	struct ky_cons_ring_set m;
	struct ky_reader reader;
	int fds[3] = {-1, -1, -1}, ret;

	if (ky_msg_open(&reader, message, len) != KY_CONS_RING_SET ||
		ky_cons_ring_set_decode(&reader, &m) < 0)
		return;
	fds[0] = open_buffers(r, &m);
	if (fds[0] == -ENOENT) /* the process exited: its rings were written */
		return;
	r->n_sets++;
	fds[1] = open_positions(r, &m);
	fds[2] = open_log(r, &m);
	for (size_t i = 0; i < KY_ARRAY_SIZE(fds); i++) {
		if (fds[i] >= 0)
			continue;
		leave_out(r, m.set, what[i], fds[i]);
		for (size_t k = 0; k < KY_ARRAY_SIZE(fds); k++)
			if (fds[k] >= 0)
				ky_close(fds[k]);
		return;
	}
	ret = follow_request(r, message, len, fds, KY_ARRAY_SIZE(fds));
	if (ret < 0)
		leave_out(r, m.set, "buffers", ret);
}

/*
 * Returns true if the directory is this user's. The recovery trusts the directory's contents, also
 * the path to write to, so it refuses those of another user.
 */
static bool is_ours(int dir)
{
	struct stat st;

	return !fstat(dir, &st) && st.st_uid == geteuid();
}

/*
 * Locks the session's memory. A process that was killed keeps its lock until it has exited, so
 * the lock is tried for LOCK_WAIT_NS. Returns 0, or -1 if a process has the session.
 */
static int lock_memory(int fd)
{
	const struct timespec pause = {.tv_nsec = 10000000};
	uint64_t end = ky_clock_ns(CLOCK_MONOTONIC) + LOCK_WAIT_NS;
	int ret;

	while ((ret = flock(fd, LOCK_EX | LOCK_NB)) < 0 && errno == EWOULDBLOCK &&
		ky_clock_ns(CLOCK_MONOTONIC) < end)
		nanosleep(&pause, NULL);
	return ret;
}

/*
 * Opens the session's memory, if this is the directory itself and no process has the session.
 * Returns the descriptor, or -1 after an error message.
 */
static int open_memory(const struct recovery *r)
{
	_cleanup_close_ int fd = ky_shm_open(r->dir, KY_SHM_MEMORY, O_RDWR);
	struct ky_resume_session memory;
	struct stat st;
	int ret;

	if (fd < 0 || fstat(fd, &st) < 0 ||
		pread(fd, &memory, sizeof(memory), 0) != sizeof(memory)) {
		ky_error(
			"%s/" KY_SHM_MEMORY
			" cannot be used (%s): give --output=TRACE, for a trace of what the buffers hold",
			r->path, fd < 0 ? strerror(-fd) : "cut off");
	} else if (memory.device != st.st_dev || memory.file != st.st_ino) {
		ky_error("%s is a copy: give --output=TRACE, for a trace of what its buffers hold",
			r->path);
	} else if (!is_ours(r->dir)) {
		ky_error(
			"%s is another user's: recover it as that user, or give --output=TRACE, for a trace of what its buffers hold",
			r->path);
	} else if (lock_memory(fd) < 0) {
		ky_error(
			"the session of %s is in use: 'kymo destroy' ends it; --output=TRACE writes what its buffers hold now",
			r->path);
	} else {
		ret = fd;
		fd = -1;
		return ret;
	}
	return -1;
}

/* Makes the memory of a new session. Returns the descriptor, or -1 after an error message. */
static int make_memory(void)
{
	int fd = memfd_create("kymo-session", MFD_CLOEXEC);

	if (fd >= 0 && !ftruncate(fd, sizeof(struct ky_resume_session)))
		return fd;
	ky_error("no memory for a recovery: %s", strerror(errno));
	return ky_close(fd);
}

/* Returns true if there is a place to write to; else prints an error message. */
static bool check_output(const struct recovery *r, const struct ky_cons_init *m)
{
	if (r->output)
		return true;
	if (!*m->output)
		ky_error(
			"session '%s' wrote no trace: give --output=TRACE, for one of what its buffers hold",
			m->session);
	else if (m->resume && access(m->output, F_OK) < 0)
		ky_error(
			"the trace of session '%s', %s: %s: give --output=TRACE, for one of what its buffers hold",
			m->session, m->output, strerror(errno));
	else
		return true;
	return false;
}

static int send_init(struct recovery *r, const struct ky_cons_init *m)
{
	struct ky_cons_init init = *m;
	uint8_t buf[KY_MSG_MAX];
	struct ky_writer w = {.buf = buf, .cap = sizeof(buf)};
	int len, fd;

	if (!check_output(r, m))
		return -EINVAL;
	init.rendezvous = "";
	if (r->output) {
		init.output = r->output;
		init.resume = 0;
	} else {
		r->consumer.source_fd = r->dir;
	}
	fd = r->output ? make_memory() : open_memory(r);
	if (fd < 0)
		return -EINVAL;
	len = ky_cons_init_encode(&w, &init);
	return len < 0 ? len : follow_request(r, buf, (size_t)len, &fd, 1);
}

static int begin_snapshot(struct recovery *r)
{
	uint8_t buf[64];
	struct ky_writer w = {.buf = buf, .cap = sizeof(buf)};
	int len = ky_cons_snapshot_encode(&w, &(struct ky_cons_snapshot){.reason = ""});

	return r->output ? follow_request(r, buf, (size_t)len, NULL, 0) : 0;
}

/* Begins the session. Returns 0, or -errno after an error message. */
static int begin_session(struct recovery *r)
{
	size_t len = recovery_next_message(r->orders, r->size, &r->pos);
	struct ky_reader reader;
	struct ky_cons_init m;
	int ret;

	if (!len || ky_msg_open(&reader, r->orders, len) != KY_CONS_INIT ||
		ky_cons_init_decode(&reader, &m) < 0) {
		ky_error("%s/" KY_SHM_SESSION " is damaged: nothing can be recovered without it",
			r->path);
		return -EBADMSG;
	}
	ret = send_init(r, &m);
	if (!ret)
		ret = begin_snapshot(r);
	if (!ret && r->consumer.status) {
		ky_error("%s", r->consumer.message);
		ret = r->consumer.status;
	}
	return ret;
}

static void add_up(const struct recovery *r, struct ky_cons_stats *stats)
{
	const struct stream_set *set;

	*stats = (struct ky_cons_stats){0};
	ky_list_foreach (set, &r->consumer.sets, node)
		stream_set_add_stats(set, stats);
}

/* --- the result --- */

/* Prints one line, which `kymo recover` parses. */
static void print_result(const struct recovery *r, const struct recovered *n)
{
	printf("recovered %llu discarded %llu damaged %u left-out %u trace %s\n",
		(unsigned long long)(n->after.recorded - n->before.recorded),
		(unsigned long long)n->after.discarded, n->after.n_quarantined, r->n_left_out,
		r->consumer.output);
}

static int write_all(struct recovery *r, struct recovered *n)
{
	add_up(r, &n->before);
	round_flush(&r->consumer);
	add_up(r, &n->after);
	return r->consumer.status;
}

static int recover_session(struct recovery *r)
{
	struct recovered n;
	size_t begin, len;

	if (begin_session(r) < 0)
		return 1;
	for (begin = r->pos; (len = recovery_next_message(r->orders, r->size, &r->pos));
		begin = r->pos)
		recover_set(r, r->orders + begin, len);
	leave_out_unknown(r);
	if (write_all(r, &n) < 0)
		return 1; /* reported, and the user can try again */
	if (r->n_left_out && ky_list_empty(&r->consumer.sets))
		return 1;
	print_result(r, &n);
	watermark_end(&r->consumer);
	if (!r->output && !r->n_left_out && !n.after.n_quarantined)
		ky_shm_dir_empty(r->dir);
	return 0;
}

static int open_dir(struct recovery *r)
{
	int ret = ky_shm_dir_open(r->path, &r->dir);

	if (!ret)
		ret = read_file(r->dir, KY_SHM_SESSION, KY_SHM_ORDERS_MAX, &r->orders, &r->size);
	if (ret == -ENOENT)
		ky_error(
			"%s is not there, or holds no buffers of a session: give the directory that was --shm-path",
			r->path);
	else if (ret < 0)
		ky_error("%s: %s", r->path, strerror(-ret));
	return ret;
}

int recovery_run(const char *path, const char *output)
{
	struct recovery r = {.path = path, .dir = -1, .output = output};
	int ret = consumerd_init(&r.consumer);

	r.consumer.recovers = true;
	if (!ret)
		ret = open_dir(&r);
	ret = ret < 0 ? 1 : recover_session(&r);
	consumerd_deinit(&r.consumer);
	free(r.orders);
	ky_close(r.dir);
	return ret;
}
