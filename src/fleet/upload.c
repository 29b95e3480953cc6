/* SPDX-License-Identifier: MIT */
#include "fleet/upload.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <zstd.h>

#include "ship/files.h"
#include "ship/segment.h"

#define PIECE	 (512u << 10) /* bytes of a file in one segment */
#define LEVEL	 (-1)	      /* a quarter less time than 1, for the same size */
#define LIST_MAX (512u << 10) /* bytes of a list of files: a message has at most twice as many */
#define ROW_MAX	 96u	      /* bytes of an entry without its path */

void upload_init(
	struct upload *u, struct link *l, const struct held *h, const struct fleet_config *c)
{
	*u = (struct upload){.link = l, .held = h, .config = c, .fd = -1};
}

void upload_end(struct upload *u)
{
	for (size_t i = 0; i < u->n_files; i++)
		free(u->files[i].path);
	free(u->files);
	kymo_value_free(u->manifest);
	ky_close(u->fd);
	ZSTD_freeCCtx(u->zstd);
	free(u->raw);
	free(u->message);
	upload_init(u, u->link, u->held, u->config);
}

static int fail_upload(struct upload *u, int error, const char *what)
{
	snprintf(u->why, sizeof(u->why), "%.180s: %s", what, strerror(-error));
	return error;
}

/* --- which files --- */

static unsigned rank_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return files_is_index(path) ? 2 : strcmp(slash ? slash + 1 : path, "metadata") != 0;
}

static int add_file(void *arg, const char *path)
{
	struct upload *u = arg;
	struct upload_file *files;

	if (u->n_files == FLEET_FILES_MAX)
		return -E2BIG;
	if (!segment_path_valid(path, strlen(path)))
		return -EINVAL;
	files = reallocarray(u->files, u->n_files + 1, sizeof(*files));
	if (!files)
		return -ENOMEM;
	u->files = files;
	files[u->n_files] = (struct upload_file){
		.session = u->session, .path = strdup(path), .rank = rank_of(path)};
	if (!files[u->n_files].path)
		return -ENOMEM;
	u->n_files++;
	return 0;
}

/* So the same files have the same numbers, whenever they are listed. */
static int compare_upload_files(const void *pa, const void *pb)
{
	const struct upload_file *a = pa, *b = pb;

	if (a->session != b->session)
		return a->session < b->session ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return strcmp(a->path, b->path);
}

static const char *session_name(const struct upload *u, size_t i)
{
	const struct kymo_value *sessions = kymo_value_get(u->manifest, "sessions");

	return kymo_value_string(kymo_value_get(kymo_value_at(sessions, i), "name"));
}

static int list_session(struct upload *u)
{
	char path[PATH_MAX];
	_cleanup_close_ int dir = -1;

	snprintf(path, sizeof(path), "%s/%s", u->id, session_name(u, u->session));
	dir = openat(u->held->dir, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return errno == ENOENT ? 0 : -errno; /* nothing was recorded */
	return files_walk(dir, add_file, NULL, u);
}

int upload_begin(struct upload *u, const char *id)
{
	int r = 0;

	upload_end(u);
	snprintf(u->id, sizeof(u->id), "%s", id);
	u->manifest = held_report(u->held, id);
	if (!u->manifest)
		return fail_upload(u, -ENOENT, id);
	for (; !r && u->session < kymo_value_count(kymo_value_get(u->manifest, "sessions"));
		u->session++)
		r = list_session(u);
	if (r < 0)
		return fail_upload(u, r, id);
	if (u->n_files)
		qsort(u->files, u->n_files, sizeof(*u->files), compare_upload_files);
	kymo_value_set_list(u->manifest, "files");
	r = held_get_again(u->held, id, u->again);
	return r < 0 ? fail_upload(u, r, id) : 0;
}

/* --- segments --- */

static void subject_of(const struct upload *u, char subject[FLEET_SUBJECT_MAX])
{
	snprintf(subject, FLEET_SUBJECT_MAX, FLEET_SEGMENTS ".%s.%zu",
		config_shard(u->config->shards, u->config->name), u->config->name, u->id, u->file);
}

/* Asks how much of the next file is stored. Segments before the last one may be lost. */
static int find_offset(struct upload *u)
{
	char subject[FLEET_SUBJECT_MAX], stream[FLEET_STREAM_MAX];
	struct stored last;
	struct segment s;
	int r;

	u->offset = 0;
	if (*u->again)
		return 0;
	subject_of(u, subject);
	snprintf(stream, sizeof(stream), FLEET_SHARD,
		config_shard(u->config->shards, u->config->name));
	r = link_last(u->link, stream, subject, &last);
	if (r < 0 && r != -ENOENT) {
		snprintf(u->why, sizeof(u->why), "%s", u->link->why);
		return r;
	}
	if (!r && natsMsg_GetDataLength(last.msg) >= (int)SEGMENT_HEAD &&
		!segment_decode((const uint8_t *)natsMsg_GetData(last.msg), &s))
		u->offset = s.offset + s.raw;
	natsMsg_Destroy(last.msg);
	return 0;
}

/* Of the file's first bytes. */
static int crc_of(int fd, uint64_t size, uint32_t *ret)
{
	void *p = size ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;

	if (p == MAP_FAILED)
		return -errno;
	*ret = segment_crc(p, size);
	if (p)
		munmap(p, size);
	return 0;
}

static int open_file(struct upload *u)
{
	struct upload_file *f = &u->files[u->file];
	char path[PATH_MAX];
	struct stat st;
	int r = find_offset(u);

	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "%s/%s/%s", u->id, session_name(u, f->session), f->path);
	u->fd = openat(u->held->dir, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (u->fd < 0 || fstat(u->fd, &st) < 0)
		return fail_upload(u, -errno, path);
	f->size = (uint64_t)st.st_size;
	u->offset = KY_MIN(u->offset, f->size);
	r = crc_of(u->fd, u->offset, &u->crc);
	return r < 0 ? fail_upload(u, r, path) : 0;
}

static int allocate_buffers(struct upload *u)
{
	if (!u->zstd)
		u->zstd = ZSTD_createCCtx();
	if (!u->raw)
		u->raw = malloc(PIECE);
	if (!u->message)
		u->message = malloc(SEGMENT_HEAD + ZSTD_compressBound(PIECE));
	return u->zstd && u->raw && u->message ? 0 : -ENOMEM;
}

/* Stores the next piece of the open file, which is in `raw`. */
static int store_piece(struct upload *u, size_t n)
{
	uint8_t *message = u->message;
	char subject[FLEET_SUBJECT_MAX], id[FLEET_SUBJECT_MAX];
	struct segment s = {.type = SEGMENT_DATA,
		.offset = u->offset,
		.raw = (uint32_t)n,
		.crc = segment_crc(u->raw, n)};
	size_t packed;
	int r;

	packed = ZSTD_compressCCtx(
		u->zstd, message + SEGMENT_HEAD, ZSTD_compressBound(PIECE), u->raw, n, LEVEL);
	if (!ZSTD_isError(packed) && packed < n) {
		s.codec = SEGMENT_ZSTD;
	} else {
		memcpy(message + SEGMENT_HEAD, u->raw, n);
		packed = n;
	}
	s.length = (uint32_t)packed;
	segment_encode(&s, message);
	subject_of(u, subject);
	/* The server knows identifiers of messages that it has lost. */
	snprintf(id, sizeof(id), "%s/%s/%zu/%" PRIu64 "/%zu/%s", u->config->name, u->id, u->file,
		u->offset, n, u->again);
	r = link_store(u->link, subject, id, message, SEGMENT_HEAD + packed);
	u->n_sent = SEGMENT_HEAD + packed;
	if (r < 0) {
		snprintf(u->why, sizeof(u->why), "%s", u->link->why);
		return r;
	}
	u->offset += n;
	u->crc = segment_crc_join(u->crc, s.crc, n);
	return 0;
}

static int ship_piece(struct upload *u)
{
	const size_t n = KY_MIN(u->files[u->file].size - u->offset, (uint64_t)PIECE);

	if (allocate_buffers(u) < 0)
		return fail_upload(u, -ENOMEM, u->id);
	if (pread(u->fd, u->raw, n, (off_t)u->offset) != (ssize_t)n)
		return fail_upload(u, -EIO, u->files[u->file].path);
	return store_piece(u, n);
}

/* Stores a message of the manifest; part: counts from 1, 0 is the last message. */
static int store_manifest(struct upload *u, size_t part, struct kymo_value *v)
{
	char subject[FLEET_SUBJECT_MAX], id[FLEET_SUBJECT_MAX];
	int r;

	snprintf(subject, sizeof(subject), "kymo.done.%s.%s", u->id, u->config->name);
	snprintf(id, sizeof(id), "%s/%s/done/%s/%zu", u->config->name, u->id, u->again, part);
	if (part)
		kymo_value_set_u64(v, "part", part);
	kymo_value_set_string(v, "attempt", u->again);
	r = link_store_value(u->link, subject, id, v);
	if (r < 0)
		snprintf(u->why, sizeof(u->why), "%s", u->link->why);
	return r;
}

/* Stores the list of files that the manifest has until now, and begins it anew. */
static int store_part(struct upload *u)
{
	struct kymo_value *v = kymo_value_new();
	int r;

	kymo_value_set(v, "files", kymo_value_get(u->manifest, "files"));
	r = store_manifest(u, u->n_parts + 1, v);
	kymo_value_free(v);
	if (r < 0)
		return r;
	u->n_parts++;
	u->n_listed = 0;
	kymo_value_set_list(u->manifest, "files");
	return 0;
}

/* The file is stored: notes it in the manifest. Returns 0 or -errno, with `why`. */
static int close_file(struct upload *u)
{
	const struct upload_file *f = &u->files[u->file];
	struct kymo_value *v = kymo_value_new();

	kymo_value_set_u64(v, "session", f->session);
	kymo_value_set_string(v, "path", f->path);
	kymo_value_set_u64(v, "size", f->size);
	kymo_value_set_u64(v, "crc32c", u->crc);
	kymo_value_add(u->manifest, "files", v);
	kymo_value_free(v);
	u->fd = ky_close(u->fd);
	u->file++;
	u->n_listed += strlen(f->path) + ROW_MAX;
	return u->n_listed > LIST_MAX ? store_part(u) : 0;
}

static int finish_upload(struct upload *u)
{
	int r;

	kymo_value_set_u64(u->manifest, "parts", u->n_parts);
	r = store_manifest(u, 0, u->manifest);
	if (r < 0)
		return r;
	r = held_set_shipped(u->held, u->id);
	return r < 0 ? fail_upload(u, r, u->id) : 0;
}

int upload_step(struct upload *u)
{
	int r;

	u->n_sent = 0;
	if (u->file == u->n_files)
		return finish_upload(u);
	r = u->fd < 0 ? open_file(u) : 0;
	if (!r && u->offset < u->files[u->file].size)
		r = ship_piece(u);
	if (!r && u->offset == u->files[u->file].size)
		r = close_file(u);
	return r < 0 ? r : 1;
}
