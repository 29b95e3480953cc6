/* SPDX-License-Identifier: MIT */
#include "sessiond/journal.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "sessiond/control/client.h"
#include "sessiond/control/selection.h"
#include "sessiond/daemon.h"
#include "sessiond/control/json.h"
#include "svc/log.h"

#define JOURNAL_MAX (64 << 20) /* bytes of one journal */

/* Of a session's journal; or of the directory, if the name is "". In one static buffer. */
static const char *path_of(const struct daemon *d, const char *name)
{
	static char path[RUNDIR_MAX + sizeof(KY_RUN_SESSIONS) + NAME_MAX + 2];

	snprintf(path, sizeof(path), "%s/" KY_RUN_SESSIONS "%s%s", d->run.path, *name ? "/" : "",
		name);
	return path;
}

/* --- writing --- */

void journal_close(struct session *s)
{
	s->journal_fd = ky_close(s->journal_fd);
}

void journal_end(struct session *s)
{
	if (s->journal_fd < 0)
		return;
	if (rundir_leads_to(path_of(s->daemon, s->name), s->journal_fd))
		unlink(path_of(s->daemon, s->name));
	journal_close(s);
}

/* Takes the line. What cannot be written down whole is not written down at all. */
static void append(struct session *s, struct json_object *line)
{
	static unsigned int left_out;
	const char *text = json_object_to_json_string_ext(line, JSON_C_TO_STRING_PLAIN);
	struct iovec v[] = {{(void *)text, text ? strlen(text) : 0}, {(void *)"\n", 1}};
	struct stat st;

	if (s->journal_fd >= 0 &&
		(json_is_incomplete(&left_out) || !text || fstat(s->journal_fd, &st) < 0 ||
			st.st_size > JOURNAL_MAX ||
			writev(s->journal_fd, v, 2) != (ssize_t)v[0].iov_len + 1)) {
		journal_end(s);
		session_notice(s,
			"session '%s' would not survive the session daemon: it cannot be written down in %s/" KY_RUN_SESSIONS,
			s->name, s->daemon->run.path);
	}
	json_object_put(line);
}

static void add_number(struct json_object *o, const char *name, uint64_t value)
{
	json_add(o, name, json_object_new_uint64(value));
}

/* A line { kind: { } }, and what is inside to fill in. */
static struct json_object *new_line(const char *kind, struct json_object **ret_inside)
{
	struct json_object *line = json_object_new_object();

	*ret_inside = NULL;
	json_add(line, kind, json_object_new_object());
	json_object_object_get_ex(line, kind, ret_inside);
	return line;
}

static void add_hex(struct json_object *o, const char *name, const uint8_t *bytes, size_t n)
{
	static const char digits[] = "0123456789abcdef";
	char *text = malloc(2 * n + 1);

	for (size_t i = 0; text && i < n; i++) {
		text[2 * i] = digits[bytes[i] >> 4];
		text[2 * i + 1] = digits[bytes[i] & 15];
	}
	json_add(o, name, text ? json_object_new_string_len(text, (int)(2 * n)) : NULL);
	free(text);
}

static void add_file(struct json_object *o, const char *name, int fd)
{
	struct stat st;

	add_number(o, name, fstat(fd, &st) < 0 ? 0 : st.st_ino);
}

void journal_request(struct session *s, uid_t uid, gid_t gid, struct json_object *request)
{
	struct json_object *line = json_object_new_object();

	json_add(line, "request", json_object_get(request));
	add_number(line, "uid", uid);
	add_number(line, "gid", gid);
	append(s, line);
}

void journal_begin(struct session *s, struct json_object *create_request)
{
	const int flags = O_WRONLY | O_APPEND | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW;
	struct json_object *o, *line;

	if (s->daemon->options.bound)
		return;
	mkdir(path_of(s->daemon, ""), 0700);
	s->journal_fd = open(path_of(s->daemon, s->name), flags, 0600);
	if (s->journal_fd < 0) {
		session_notice(s, "session '%s' would not survive the session daemon: %s: %s",
			s->name, path_of(s->daemon, s->name), strerror(errno));
		return;
	}
	json_add(create_request, "session", json_object_new_string(s->name));
	journal_request(s, s->uid, s->gid, create_request);
	line = new_line("clock", &o);
	add_number(o, "clock", s->clock.clock);
	append(s, line);
	journal_consumer(s);
}

void journal_selected(struct session *s, uid_t uid)
{
	struct json_object *o, *line = new_line("selected", &o);

	add_number(o, "uid", uid);
	add_number(o, "when", ky_clock_ns(CLOCK_MONOTONIC));
	append(s, line);
}

void journal_state(struct session *s)
{
	struct json_object *line = json_object_new_object();
	const char *state = s->step == SESSION_DROPPING ? "ending" : session_state(s);

	json_add(line, "state", json_object_new_string(state));
	append(s, line);
}

void journal_consumer(struct session *s)
{
	struct json_object *o, *line = new_line("consumer", &o);

	add_number(o, "pid", (uint64_t)s->consumer.pid);
	add_file(o, "memory", s->consumer.memory_fd);
	append(s, line);
}

void journal_chunk(struct session *s, bool cleared)
{
	struct json_object *o, *line = new_line("chunk", &o);

	add_number(o, "number", s->rotation.chunk);
	add_number(o, "begin", (uint64_t)s->rotation.begin);
	add_number(o, "archived", s->rotation.n_archived);
	add_number(o, "cleared", cleared);
	append(s, line);
}

void journal_registry(struct session *s, const struct registry *r)
{
	struct json_object *o, *line = new_line("registry", &o);

	add_number(o, "uid", r->uid);
	add_number(o, "abi_bits", r->abi_bits);
	add_hex(o, "uuid", r->uuid, sizeof(r->uuid));
	add_file(o, "log", r->log_fd);
	append(s, line);
}

void journal_set(const struct ring_set *set)
{
	const struct ky_geometry *g = &set->geometry;
	struct json_object *o, *line = new_line("set", &o);

	json_add(o, "channel", json_object_new_string(set->channel->name));
	add_number(o, "number", set->number);
	add_number(o, "uid", set->uid);
	add_number(o, "abi_bits", set->abi_bits);
	if (ring_set_is_own(set)) {
		add_number(o, "kind", set->kind->number);
		add_number(o, "pid", (uint64_t)set->pid);
		add_number(o, "process", set->process);
		add_number(o, "image", set->image);
	}
	add_number(o, "stream_id", set->stream_id);
	add_number(o, "mode", set->mode);
	add_number(o, "clock", g->clock);
	add_number(o, "overwrite", g->overwrite);
	add_number(o, "n_rings", g->n_rings);
	add_number(o, "n_blocks", g->n_blocks);
	add_number(o, "block_size", g->block_size);
	add_number(o, "at", set->registry->log_size);
	add_file(o, "rings", set->memory.rings_fd);
	add_file(o, "consumed", set->memory.consumed_fd);
	append(set->channel->session, line);
}

/* clang-format off */
#define COUNT(name) {#name, offsetof(struct consumer_counts, name)}
/* clang-format on */
static const struct {
	const char *name;
	size_t offset;
} numbers[] = {COUNT(recorded), COUNT(discarded), COUNT(discarded_too_big),
	COUNT(discarded_refused), COUNT(unwritten), COUNT(bytes), COUNT(packets),
	COUNT(n_quarantined), COUNT(overwritten), COUNT(removed), COUNT(cleared),
	COUNT(discarded_no_slot)};

static uint64_t *number_of(struct consumer_counts *counts, size_t i)
{
	return (uint64_t *)((char *)counts + numbers[i].offset);
}

void journal_retired(const struct ring_set *set, const struct consumer_counts *counts,
	uint64_t chunk, uint64_t kept)
{
	struct json_object *o, *line = new_line("retired", &o);
	struct consumer_counts copy = *counts;

	add_number(o, "set", set->number);
	add_number(o, "chunk", chunk);
	add_number(o, "kept", kept);
	for (size_t i = 0; i < KY_ARRAY_SIZE(numbers); i++)
		add_number(o, numbers[i].name, *number_of(&copy, i));
	append(set->channel->session, line);
}

void journal_event(const struct ring_set *set, const struct set_event *e)
{
	struct json_object *o, *line = new_line("event", &o);

	add_number(o, "set", set->number);
	add_number(o, "id", e->id);
	add_number(o, "n_contexts", e->n_contexts);
	add_number(o, "at", set->registry->log_size);
	add_number(o, "pid", (uint64_t)e->by.pid);
	json_add(o, "program", json_object_new_string(e->by.name));
	add_hex(o, "desc", e->desc->bytes, e->desc->len);
	append(set->channel->session, line);
}

/* --- reading: our own files, but a line may be missing, or cut --- */

static uint64_t get_number(struct json_object *o, const char *name)
{
	struct json_object *v;

	return json_object_object_get_ex(o, name, &v) ? json_object_get_uint64(v) : 0;
}

static const char *get_string(struct json_object *o, const char *name)
{
	struct json_object *v;

	return json_object_object_get_ex(o, name, &v) ? json_object_get_string(v) : "";
}

/* At most `size` bytes; how many they are. */
static size_t get_hex(struct json_object *o, const char *name, uint8_t *bytes, size_t size)
{
	const char *text = get_string(o, name);
	unsigned byte;
	size_t n;

	for (n = 0; n < size && sscanf(text + 2 * n, "%2x", &byte) == 1; n++)
		bytes[n] = (uint8_t)byte;
	return n;
}

static void read_registry(struct session *s, struct json_object *o)
{
	struct registry *r = registry_new(
		s, (uid_t)get_number(o, "uid"), (uint32_t)get_number(o, "abi_bits"));

	if (!r)
		return;
	get_hex(o, "uuid", r->uuid, sizeof(r->uuid));
	r->log_file = get_number(o, "log");
}

/* The set that a line is about, known but without what is described. */
static struct ring_set *get_set(struct session *s, struct json_object *o)
{
	struct channel *c = channel_find(s, get_string(o, "channel"));
	uint32_t kind = (uint32_t)get_number(o, "kind");

	if (!c)
		return NULL;
	if (!kind)
		return ring_set_get(c, (uid_t)get_number(o, "uid"),
			(uint32_t)get_number(o, "abi_bits"), (uint32_t)get_number(o, "mode"));
	return ring_set_find(s, kind)
		       ? ring_set_of_process(ring_set_find(s, kind), (pid_t)get_number(o, "pid"),
				 (uint32_t)get_number(o, "process"), get_number(o, "image"))
		       : NULL;
}

static void read_set(struct session *s, struct json_object *o)
{
	struct registry *r = registry_find(
		s, (uid_t)get_number(o, "uid"), (uint32_t)get_number(o, "abi_bits"));
	struct ring_set *set = r ? get_set(s, o) : NULL;

	if (!set)
		return;
	set->number = (uint32_t)get_number(o, "number");
	s->daemon->last_number = KY_MAX(s->daemon->last_number, set->number);
	set->stream_id = (uint32_t)get_number(o, "stream_id");
	set->registry = r;
	if (!ring_set_is_own(set)) {
		set->described = true;
		r->last_set = set;
		r->log_size = get_number(o, "at");
		r->n_streams = KY_MAX(r->n_streams, set->stream_id + 1);
	}
	set->geometry = (struct ky_geometry){
		.mode = set->mode,
		.clock = (uint32_t)get_number(o, "clock"),
		.overwrite = (uint32_t)get_number(o, "overwrite"),
		.n_rings = (uint32_t)get_number(o, "n_rings"),
		.n_blocks = (uint32_t)get_number(o, "n_blocks"),
		.block_size = (uint32_t)get_number(o, "block_size"),
	};
	set->pool_size = set->channel->pool_size;
	set->rings_file = get_number(o, "rings");
	set->consumed_file = get_number(o, "consumed");
	set->made = !ky_geometry_init(&set->geometry);
}

static void read_retired(struct session *s, struct json_object *o)
{
	struct ring_set *set = ring_set_find(s, (uint32_t)get_number(o, "set"));
	struct consumer_counts counts = {0};

	for (size_t i = 0; i < KY_ARRAY_SIZE(numbers); i++)
		*number_of(&counts, i) = get_number(o, numbers[i].name);
	consumer_add_retired(&s->consumer, &counts, get_number(o, "chunk"), get_number(o, "kept"));
	if (set)
		ring_set_free(set);
}

static void read_event(struct session *s, struct json_object *o)
{
	struct ring_set *set = ring_set_find(s, (uint32_t)get_number(o, "set"));
	struct user *u = set ? user_get(&s->daemon->users, set->uid) : NULL;
	struct definer by = {.pid = (pid_t)get_number(o, "pid")};
	size_t size = strlen(get_string(o, "desc")) / 2;
	uint8_t *bytes = malloc(size + 1);
	struct event_desc *d;
	const char *why;

	snprintf(by.name, sizeof(by.name), "%s", get_string(o, "program"));
	if (u && bytes) {
		size = get_hex(o, "desc", bytes, size);
		if (!user_intern(u, (struct ky_bytes){bytes, (uint32_t)size}, &d, &why)) {
			set->registry->log_size = get_number(o, "at");
			ring_set_restore(set, d, &by, (uint32_t)get_number(o, "id"),
				(uint32_t)get_number(o, "n_contexts"));
			event_desc_unref(d);
		}
	}
	user_unref(u);
	free(bytes);
}

static void read_selected(struct session *s, struct json_object *o)
{
	selection_set(s->daemon, (uid_t)get_number(o, "uid"), s, get_number(o, "when"));
}

static void read_state(struct session *s, struct json_object *v)
{
	const char *state = json_object_get_string(v);

	s->started = state && !strcmp(state, "started");
	s->was_started |= s->started;
	s->paused = state && !strcmp(state, "paused");
	s->doomed = state && !strcmp(state, "ending");
}

static void read_clock(struct session *s, struct json_object *o)
{
	ky_clock_measure((enum ky_clock)get_number(o, "clock"), &s->clock);
}

static void read_consumer(struct session *s, struct json_object *o)
{
	s->consumer.awaited = (pid_t)get_number(o, "pid");
	s->consumer.memory_file = get_number(o, "memory");
}

static void read_chunk(struct session *s, struct json_object *o)
{
	consumer_chunk_ended(&s->consumer, s->rotation.chunk, get_number(o, "cleared"));
	s->rotation.chunk = get_number(o, "number");
	s->rotation.begin = (time_t)get_number(o, "begin");
	s->rotation.n_archived = (unsigned)get_number(o, "archived");
}

static const struct {
	const char *kind;
	void (*read)(struct session *s, struct json_object *v);
} kinds[] = {
	{"clock", read_clock},
	{"consumer", read_consumer},
	{"chunk", read_chunk},
	{"state", read_state},
	{"registry", read_registry},
	{"set", read_set},
	{"retired", read_retired},
	{"event", read_event},
	{"selected", read_selected},
};

static void read_line(struct daemon *d, const char *name, const char *text)
{
	struct json_object *line = json_tokener_parse(text), *v;
	struct session *s = session_find(d, name);
	struct ky_peer peer = {0};

	if (json_object_object_get_ex(line, "request", &v)) {
		peer.uid = (uid_t)get_number(line, "uid");
		peer.gid = (gid_t)get_number(line, "gid");
		request_replay(d, &peer, json_object_get(v), s);
	}
	for (size_t i = 0; s && i < KY_ARRAY_SIZE(kinds); i++)
		if (json_object_object_get_ex(line, kinds[i].kind, &v))
			kinds[i].read(s, v);
	json_object_put(line);
}

/*
 * A file that ends within a line was being written when the daemon died: that line told of nothing yet. Returns where the
 * last whole one ends.
 */
static off_t read_file(struct daemon *d, const char *name, const char *path)
{
	_cleanup_fclose_ FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;
	off_t end = 0;
	ssize_t n;

	while (f && (n = getline(&line, &size, f)) > 0 && line[n - 1] == '\n') {
		read_line(d, name, line);
		end += n;
	}
	free(line);
	return end;
}

static bool is_alive(pid_t pid)
{
	return pid > 0 && (!kill(pid, 0) || errno == EPERM);
}

/* Whether it may come back. */
static bool replay(struct daemon *d, const char *name)
{
	const char *path = path_of(d, name);
	off_t end = read_file(d, name, path);
	struct session *s = session_find(d, name);

	if (s && is_alive(s->consumer.awaited)) {
		s->journal_fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
		return s->journal_fd < 0 || !ftruncate(s->journal_fd, end);
	}
	if (s)
		session_lose(s);
	else
		ky_error(
			"session '%s' is lost: it cannot be made again from its journal, or its --shm-path directory is gone; its trace ends here",
			name);
	unlink(path);
	return false;
}

unsigned journal_replay(struct daemon *d)
{
	DIR *dir = opendir(path_of(d, ""));
	struct dirent *e;
	unsigned n = 0;

	if (!dir)
		return 0;
	d->replaying = true;
	while ((e = readdir(dir))) {
		if (name_valid(e->d_name))
			n += replay(d, e->d_name);
	}
	d->replaying = false;
	closedir(dir);
	return n;
}
