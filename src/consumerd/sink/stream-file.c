/* SPDX-License-Identifier: MIT */
#include "consumerd/sink/stream-file.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "consumerd/sink/trace-dir.h"

#define PAGE KY_CTF_PAGE

/* A packet's first page, and the rest behind its whole pages with the padding. */
struct ends {
	_Alignas(PAGE) uint8_t first[PAGE];
	uint8_t last[2 * PAGE];
};

static struct {
	struct ky_list open;	      /* the first was not written for the longest time */
	struct ends ends[SINK_BATCH]; /* of the packets that are being written */
} files = {.open = KY_LIST_INIT(files.open)};

void stream_file_init(struct stream_file *f)
{
	*f = (struct stream_file){.fd = -1, .index_fd = -1};
	ky_list_init(&f->node);
}

void stream_file_deinit(struct stream_file *f)
{
	f->fd = ky_close(f->fd);
	f->index_fd = ky_close(f->index_fd);
	f->direct = false;
	ky_list_remove(&f->node);
}

/*
 * Returns true if at most a quarter of the descriptors is free. A new descriptor gets the lowest
 * free number, so this number shows how many are in use.
 */
static bool is_scarce(int any_fd)
{
	int fd = fcntl(any_fd, F_DUPFD_CLOEXEC, 0);
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim) < 0)
		lim.rlim_cur = RLIM_INFINITY;
	ky_close(fd);
	return fd < 0 || (rlim_t)fd >= lim.rlim_cur - lim.rlim_cur / 4;
}

/* Closes two files to open one, so that other parts find more free descriptors. */
static void make_room(const struct stream_place *place)
{
	if (!is_scarce(place->dir))
		return;
	for (int i = 0; i < 2 && !ky_list_empty(&files.open); i++)
		stream_file_deinit(ky_list_entry(files.open.next, struct stream_file, node));
}

/* Marks f as the file that was written last. */
static void mark_newest(struct stream_file *f)
{
	ky_list_remove(&f->node);
	ky_list_append(&files.open, &f->node);
}

void stream_file_switch(struct stream_file *f, uint64_t number)
{
	bool no_direct = f->no_direct;

	stream_file_deinit(f);
	stream_file_init(f);
	f->no_direct = no_direct;
	f->number = number;
}

struct names {
	char stream[NAME_MAX + 1], index[NAME_MAX + 1];
};

static void make_names(const struct stream_place *place, uint64_t number, struct names *names)
{
	char suffix[32] = "";

	if (place->numbered)
		snprintf(suffix, sizeof(suffix), "_%" PRIu64, number);
	snprintf(names->stream, sizeof(names->stream), "%s_%u%s", place->base, place->n, suffix);
	snprintf(names->index, sizeof(names->index), "%s_%u%s.kyx", place->base, place->n, suffix);
}

/* Writes all or fails; the position of fd is not used. Changes iov. */
static int write_at(int fd, struct iovec *iov, int n_iov, uint64_t at)
{
	while (n_iov) {
		ssize_t n = pwritev(fd, iov, n_iov, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		at += (uint64_t)n;
		for (; n_iov && (size_t)n >= iov->iov_len; n_iov--, iov++)
			n -= (ssize_t)iov->iov_len;
		if (n_iov) {
			iov->iov_base = (char *)iov->iov_base + n;
			iov->iov_len -= (size_t)n;
		}
	}
	return 0;
}

static int write_one(int fd, const void *data, size_t len, uint64_t at)
{
	struct iovec iov = {.iov_base = (void *)data, .iov_len = len};

	return write_at(fd, &iov, 1, at);
}

static int write_index_header(int fd)
{
	struct ky_index_header header;

	ky_index_header_init(&header);
	return write_one(fd, &header, sizeof(header), 0);
}

/* Writes the index entries of packets that are end to end in the file. */
static int write_index_entries(const struct stream_file *f, const struct sink_packet *packets,
	unsigned int n, uint64_t offset, uint64_t i)
{
	struct ky_index_entry entries[SINK_BATCH];

	for (unsigned int k = 0; k < n; k++) {
		ky_index_entry_init(&entries[k], &packets[k].header, offset);
		offset += entries[k].size;
	}
	return write_one(f->index_fd, entries, n * sizeof(entries[0]), ky_index_offset(i));
}

/* Removes the files without a first packet: a file exists only once it has data. */
static void remove_files(struct stream_file *f, const struct stream_place *place)
{
	struct names names;

	make_names(place, f->number, &names);
	if (f->index_fd >= 0 && unlinkat(place->index_dir, names.index, 0) < 0)
		f->left = true;
	if (f->fd >= 0 && unlinkat(place->dir, names.stream, 0) < 0)
		f->left = true;
	stream_file_deinit(f);
}

void stream_file_remove(const struct stream_place *place, uint64_t number)
{
	struct names names;

	make_names(place, number, &names);
	unlinkat(place->dir, names.stream, 0);
	unlinkat(place->index_dir, names.index, 0);
}

static int move_file(int from, const char *name, int to)
{
	int ret = renameat2(from, name, to, name, RENAME_NOREPLACE) < 0 ? -errno : 0;

	return ret == -ENOENT || ret == -EEXIST ? 0 : ret;
}

int stream_file_set_apart(const struct stream_place *place, uint64_t number)
{
	_cleanup_close_ int damaged = -1;
	struct names names;
	int ret;

	make_names(place, number, &names);
	if (faccessat(place->dir, names.stream, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	ret = trace_dir_open_below(place->dir, "damaged", true, &damaged);
	if (!ret)
		ret = move_file(place->dir, names.stream, damaged);
	return ret ? ret : move_file(place->index_dir, names.index, damaged);
}

int stream_file_count(const struct stream_place *place, uint64_t number, uint64_t *ret_n)
{
	struct ky_index_entry entries[64];
	uint64_t n_events = 0, at = ky_index_offset(0);
	struct names names;
	int fd = -1, ret;
	ssize_t n = 0;

	make_names(place, number, &names);
	ret = trace_dir_open_file(place->index_dir, names.index, 0, &fd);
	while (!ret && (n = pread(fd, entries, sizeof(entries), (off_t)at)) > 0) {
		for (size_t i = 0; i < (size_t)n / sizeof(entries[0]); i++)
			n_events += entries[i].n_events;
		at += (uint64_t)n;
	}
	if (n < 0)
		ret = -errno;
	ky_close(fd);
	if (ret < 0 && ret != -ENOENT)
		return ret;
	*ret_n = n_events;
	return 0;
}

static int open_both(struct stream_file *f, const struct stream_place *place, int flags)
{
	struct names names;
	int ret;

	make_room(place);
	make_names(place, f->number, &names);
	ret = trace_dir_open_file(place->dir, names.stream, flags, &f->fd);
	return ret < 0 ? ret
		       : trace_dir_open_file(place->index_dir, names.index, flags, &f->index_fd);
}

static int create_files(struct stream_file *f, const struct stream_place *place)
{
	int ret;

	if (f->left)
		stream_file_remove(place, f->number);
	ret = open_both(f, place, O_CREAT | O_EXCL);
	if (ret < 0)
		return ret;
	f->left = false;
	return write_index_header(f->index_fd);
}

/* Opens files again that were closed because descriptors are scarce. */
static int open_again(struct stream_file *f, const struct stream_place *place)
{
	int ret = open_both(f, place, 0);

	if (ret < 0)
		stream_file_deinit(f);
	return ret;
}

/* Returns the bytes of records in the first page, behind the header. */
static uint32_t n_first(const struct sink_packet *p)
{
	return KY_MIN(p->len, PAGE - (uint32_t)sizeof(p->header));
}

static void lay_out(const struct sink_packet *p, struct ends *e, struct iovec iov[3])
{
	size_t size = p->header.packet_bits / 8, n = n_first(p), head = KY_MIN(size, PAGE);
	size_t pages = (p->len - n) & ~((size_t)PAGE - 1), rest = p->len - n - pages;
	size_t tail = size - head - pages;

	memcpy(e->first, &p->header, sizeof(p->header));
	memcpy(e->first + sizeof(p->header), p->data, n);
	memset(e->first + sizeof(p->header) + n, 0, head - sizeof(p->header) - n);
	memcpy(e->last, p->data + n + pages, rest);
	memset(e->last + rest, 0, tail - rest);
	iov[0] = (struct iovec){.iov_base = e->first, .iov_len = head};
	iov[1] = (struct iovec){.iov_base = (void *)(p->data + n), .iov_len = pages};
	iov[2] = (struct iovec){.iov_base = e->last, .iov_len = tail};
}

static void set_direct(struct stream_file *f, bool direct)
{
	if (direct == f->direct)
		return;
	if (fcntl(f->fd, F_SETFL, direct ? O_DIRECT : 0) < 0)
		f->no_direct = true;
	else
		f->direct = direct;
}

static int write_packets(struct stream_file *f, const struct sink_packet *packets, unsigned int n)
{
	struct iovec iov[3 * SINK_BATCH];

	for (unsigned int i = 0; i < n; i++)
		lay_out(&packets[i], &files.ends[i], &iov[3 * i]);
	return write_at(f->fd, iov, 3 * (int)n, f->size);
}

static int append_packets(
	struct stream_file *f, const struct sink_packet *packets, unsigned int n, bool direct)
{
	int ret;

	set_direct(f, direct && stream_file_may_be_direct(f, packets, n));
	ret = write_packets(f, packets, n);
	if (ret == -EINVAL && f->direct) {
		f->no_direct = true;
		set_direct(f, false);
		ret = write_packets(f, packets, n);
	}
	return ret < 0 ? ret : write_index_entries(f, packets, n, f->size, f->n_packets);
}

/* Truncates the files to their whole packets. Until that works, nothing is appended. */
static int cut_back(struct stream_file *f, const struct stream_place *place)
{
	f->torn = true;
	if (!f->n_packets)
		remove_files(f, place);
	else if (ftruncate(f->fd, (off_t)f->size) < 0 ||
		 ftruncate(f->index_fd, (off_t)ky_index_offset(f->n_packets)) < 0)
		return -errno;
	f->torn = false;
	return 0;
}

bool stream_file_may_be_direct(
	const struct stream_file *f, const struct sink_packet *packets, unsigned int n)
{
	uint64_t bytes = f->size;

	for (unsigned int i = 0; i < n; i++)
		bytes |= packets[i].header.packet_bits / 8 |
			 (uintptr_t)(packets[i].data + n_first(&packets[i]));
	return !f->no_direct && bytes % PAGE == 0;
}

static void count_packets(struct stream_file *f, const struct sink_packet *packets, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		f->size += packets[i].header.packet_bits / 8;
	f->n_packets += n;
}

int stream_file_append(struct stream_file *f, const struct stream_place *place,
	const struct sink_packet *packets, unsigned int n, bool direct)
{
	int ret = 0;

	if (f->fd < 0)
		ret = f->n_packets ? open_again(f, place) : create_files(f, place);
	if (!ret && f->torn)
		ret = cut_back(f, place);
	if (!ret)
		ret = append_packets(f, packets, n, direct);
	if (ret < 0)
		cut_back(f, place);
	else
		count_packets(f, packets, n);
	if (f->fd >= 0)
		mark_newest(f);
	return ret;
}

/*
 * Reads the header at f->size. Returns 1 for a whole packet, 0 for a torn packet or the end, or
 * -errno.
 */
static int read_packet(struct stream_file *f, uint64_t file_size, const struct ky_ctf_packet *like,
	struct ky_ctf_packet *p)
{
	ssize_t n = pread(f->fd, p, sizeof(*p), (off_t)f->size);
	int64_t size;

	if (n < 0)
		return -errno;
	if (n < (ssize_t)sizeof(*p))
		return 0;
	size = ky_ctf_packet_check(p, like);
	/* A file that begins as something else is not ours: do not truncate it. */
	if (size < 0)
		return f->n_packets ? 0 : (int)size;
	return (uint64_t)size <= file_size - f->size;
}

/* Returns the number of whole index entries. Writes the header if even that is missing. */
static int64_t open_index(struct stream_file *f, const struct stream_place *place, const char *name)
{
	struct stat st;
	int ret = trace_dir_open_file(place->index_dir, name, O_CREAT, &f->index_fd);

	if (ret < 0)
		return ret;
	if (fstat(f->index_fd, &st) < 0)
		return -errno;
	if ((uint64_t)st.st_size >= ky_index_offset(0))
		return (int64_t)(((uint64_t)st.st_size - ky_index_offset(0)) /
				 sizeof(struct ky_index_entry));
	return write_index_header(f->index_fd);
}

int stream_file_resume(struct stream_file *f, const struct stream_place *place,
	const struct ky_ctf_packet *like, sink_visit_fn *visit, void *context)
{
	struct sink_packet p;
	struct names names;
	struct stat st;
	int64_t n_entries;
	int ret;

	make_room(place);
	make_names(place, f->number, &names);
	ret = trace_dir_open_file(place->dir, names.stream, 0, &f->fd);
	f->left = ret == -ENOENT; /* an index, perhaps */
	if (ret < 0)
		return f->left ? 0 : ret;
	if (fstat(f->fd, &st) < 0)
		return -errno;
	ret = read_packet(f, (uint64_t)st.st_size, like, &p.header);
	n_entries = ret < 0 ? ret : open_index(f, place, names.index);
	if (n_entries < 0)
		return (int)n_entries;
	while ((ret = read_packet(f, (uint64_t)st.st_size, like, &p.header)) > 0) {
		if (f->n_packets >= (uint64_t)n_entries)
			ret = write_index_entries(f, &p, 1, f->size, f->n_packets);
		if (ret < 0)
			return ret;
		f->size += p.header.packet_bits / 8;
		f->n_packets++;
		visit(context, &p.header);
	}
	if (!ret)
		ret = cut_back(f, place);
	if (f->fd >= 0)
		mark_newest(f);
	return ret;
}
