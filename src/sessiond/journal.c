/* SPDX-License-Identifier: MIT */
#include "sessiond/journal.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "sessiond/control/json.h"
#include "sessiond/control/selection.h"
#include "sessiond/kernel/events.h"
#include "sessiond/model/option.h"
#include "sessiond/peers/peers.h"
#include "sessiond/peers/recording.h"
#include "sessiond/peers/rundir.h"
#include "svc/log.h"

#define NEXT	    ".next"    /* beside the directory of journals */
#define COMPACT_MIN (32 << 10) /* bytes: a shorter journal is not worth it */
#define JOURNAL_MAX                                                                                \
	(256 << 20) /* bytes of one journal: more than what descriptions of all users take */
#define REST_MAX (16u << 20) /* bytes that wait for room in one */
#define RETRY_NS (500 * KY_NS_PER_MS)

static struct env *env; /* the environment that the journal observes */
static struct ky_job compacting;
static struct ky_timer retry; /* while journals are suspended */
static int *compact_error;    /* while a journal is being compacted; else NULL */
static unsigned int left_out; /* values, when the line was begun (control/json.h) */

/*
 * Returns the path of a session's journal, or of the directory if the name is "", in one static
 * buffer.
 */
const char *journal_path(const struct env *e, const char *name)
{
	static char path[RUNDIR_MAX + sizeof(KY_RUN_SESSIONS) + NAME_MAX + 2];

	snprintf(path, sizeof(path), "%s/" KY_RUN_SESSIONS "%s%s", e->run->path, *name ? "/" : "",
		name);
	return path;
}

const char *journal_path_kept(const struct env *e, const char *name)
{
	char hidden[NAME_MAX + 1];

	snprintf(hidden, sizeof(hidden), ".%s", name);
	return journal_path(e, hidden);
}

static void journal_close(struct session *s)
{
	s->journal_fd = ky_close(s->journal_fd);
	s->journal_kept_fd = ky_close(s->journal_kept_fd);
	s->journal_bytes = s->journal_compact_bytes = 0;
	s->journal_suspended = false;
	ky_buf_deinit(&s->journal_rest);
	s->journal_rest = (struct ky_buf){0};
}

static void journal_end(struct session *s)
{
	const char *path = s->journal_suspended ? journal_path_kept(s->env, s->name)
						: journal_path(s->env, s->name);
	int fd = s->journal_suspended ? s->journal_kept_fd : s->journal_fd;

	if (fd >= 0 && rundir_leads_to(path, fd))
		unlink(path);
	journal_close(s);
}

/* A successor would not get all that it needs: it must not find the journal. */
static void give_up_journal(struct session *s, int error)
{
	journal_end(s);
	s->journal_error = error;
	ky_warning("session '%s': it would not survive the session daemon: its journal ends: %s",
		s->name, strerror(-error));
}

/* Keeps a line for later. */
static void keep_line(struct session *s, struct json_object *line)
{
	const char *text = json_object_to_json_string_ext(line, JSON_C_TO_STRING_PLAIN);

	s->journal_rest.max = REST_MAX;
	ky_buf_puts(&s->journal_rest, text ? text : "");
	ky_buf_puts(&s->journal_rest, "\n");
	if (json_is_incomplete(&left_out) || !text)
		give_up_journal(s, -ENOMEM);
	else if (s->journal_rest.error)
		give_up_journal(s, s->journal_rest.error == -ENOMEM ? -ENOMEM : -EFBIG);
}

/*
 * The file system has no room, or fails. Hides the journal from a successor, because it lacks lines
 * that take effect all the same, and keeps them until they can be written.
 */
static void suspend_journal(struct session *s, int error)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s", journal_path(s->env, s->name));
	if (s->journal_fd >= 0 && (!rundir_leads_to(path, s->journal_fd) ||
					  rename(path, journal_path_kept(s->env, s->name)) < 0)) {
		give_up_journal(s, error);
		return;
	}
	s->journal_kept_fd = s->journal_fd;
	s->journal_fd = -1;
	s->journal_suspended = true;
	s->journal_error = error;
	ky_timer_set(&s->env->loop, &retry, RETRY_NS);
	ky_warning("session '%s': it would not survive the session daemon: cannot write %s: %s",
		s->name, path, strerror(-error));
}

static int open_journal(const char *path)
{
	const int flags = O_WRONLY | O_APPEND | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW;
	int fd = open(path, flags, KY_RUN_PRIVATE);

	return fd < 0 ? -errno : fd;
}

/* Writes all or nothing behind the first `at` bytes. Returns 0 or -errno. */
static int append_all(int fd, uint64_t at, const char *text, size_t len)
{
	ssize_t n;
	int ret;

	if (ftruncate(fd, (off_t)at) < 0)
		return -errno;
	n = write(fd, text, len);
	if (n == (ssize_t)len)
		return 0;
	ret = n < 0 ? -errno : -ENOSPC;
	return ftruncate(fd, (off_t)at) < 0 ? -errno : ret;
}

/* Tries to write the lines that a suspended journal lacks. Returns 0 or -errno. */
static int resume_journal(struct session *s)
{
	char kept[PATH_MAX];
	int ret;

	snprintf(kept, sizeof(kept), "%s", journal_path_kept(s->env, s->name));
	mkdir(journal_path(s->env, ""), 0700);
	if (s->journal_kept_fd < 0) {
		s->journal_kept_fd = open_journal(kept);
		if (s->journal_kept_fd < 0) {
			ret = s->journal_kept_fd;
			s->journal_kept_fd = -1;
			return ret;
		}
	}
	ret = append_all(
		s->journal_kept_fd, s->journal_bytes, s->journal_rest.data, s->journal_rest.len);
	if (!ret && rename(kept, journal_path(s->env, s->name)) < 0)
		ret = -errno;
	if (ret < 0)
		return ret;
	s->journal_bytes += s->journal_rest.len;
	s->journal_fd = s->journal_kept_fd;
	s->journal_kept_fd = -1;
	s->journal_suspended = false;
	s->journal_error = 0;
	ky_buf_deinit(&s->journal_rest);
	s->journal_rest = (struct ky_buf){0};
	ky_info("session '%s': its journal is written again", s->name);
	return 0;
}

static void run_retry(struct ky_timer *t)
{
	bool again = false;
	struct session *s;

	ky_list_foreach (s, &env->sessions, node)
		again |= s->journal_suspended && resume_journal(s) < 0;
	if (again)
		ky_timer_set(&env->loop, t, RETRY_NS);
}

/* Writes the line as a whole. Returns 0, -EFBIG at JOURNAL_MAX, -ENOMEM, or another -errno. */
static int write_line(struct session *s, struct json_object *line)
{
	const char *text = json_object_to_json_string_ext(line, JSON_C_TO_STRING_PLAIN);
	struct iovec v[] = {{(void *)text, text ? strlen(text) : 0}, {(void *)"\n", 1}};
	ssize_t n;

	if (s->journal_bytes > JOURNAL_MAX)
		return -EFBIG;
	if (json_is_incomplete(&left_out) || !text)
		return -ENOMEM;
	n = writev(s->journal_fd, v, 2);
	if (n != (ssize_t)v[0].iov_len + 1)
		return n < 0 ? -errno : -ENOSPC;
	s->journal_bytes += v[0].iov_len + 1;
	return 0;
}

/* Appends the line and frees it; or keeps it for later, while it cannot be written as a whole. */
static void append_line(struct session *s, struct json_object *line)
{
	int ret = s->journal_fd < 0 ? 0 : write_line(s, line);

	if (s->journal_bytes > 2 * KY_MAX(s->journal_compact_bytes, (uint64_t)COMPACT_MIN))
		ky_job_add_next(&s->env->loop, &compacting);
	if (ret && compact_error) {
		journal_close(s);
		*compact_error = ret;
	} else if (ret == -EFBIG || ret == -ENOMEM) {
		give_up_journal(s, ret);
	} else if (ret) {
		suspend_journal(s, ret);
	}
	if (s->journal_suspended)
		keep_line(s, line);
	json_object_put(line);
}

static void add_number(struct json_object *o, const char *name, uint64_t value)
{
	json_add(o, name, json_object_new_uint64(value));
}

/* A line to fill in. write_line() examines what is left out from here on. */
static struct json_object *begin_line(void)
{
	json_is_incomplete(&left_out);
	return json_object_new_object();
}

/* A line { kind: { } }, and what is inside to fill in. */
static struct json_object *new_line(const char *kind, struct json_object **ret_inside)
{
	struct json_object *line = begin_line();

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

static void add_string(struct json_object *o, const char *name, const char *value)
{
	json_add(o, name, json_object_new_string(value));
}

static void write_session(struct session *s)
{
	struct json_object *o, *line = new_line("session", &o);
	char clock[SESSION_CLOCK_MAX];

	session_clock_put(&s->clock, clock);
	add_number(o, "format", JOURNAL_FORMAT);
	add_string(o, "output", s->output);
	add_string(o, "shm_path", s->shm_path ? s->shm_path : "");
	add_number(o, "snapshot", s->snapshot);
	add_number(o, "seconds", s->seconds);
	add_number(o, "switch_us", s->switch_us);
	add_number(o, "absolute_clock", s->absolute_clock);
	add_number(o, "uid", s->uid);
	add_number(o, "gid", s->gid);
	add_number(o, "clock", s->clock.clock);
	add_string(o, "clock_values", clock);
	add_number(o, "last_number", s->env->last_number);
	add_number(o, "bound", s->bound || s->abandoned);
	append_line(s, line);
}

static void journal_consumer(struct session *s)
{
	const struct consumer *c = &recording_of(s)->consumer;
	struct json_object *o, *line = new_line("consumer", &o);

	add_number(o, "pid", (uint64_t)c->process);
	add_file(o, "memory", c->memory_fd);
	append_line(s, line);
}

static void journal_begin(struct session *s)
{
	int fd;

	if (s->env->bound)
		return;
	mkdir(journal_path(s->env, ""), 0700);
	fd = open_journal(journal_path(s->env, s->name));
	s->journal_fd = KY_MAX(fd, -1);
	if (fd < 0)
		suspend_journal(s, fd);
	write_session(s);
	journal_consumer(s);
}

static void journal_selected(struct session *s, uid_t uid, uint64_t when)
{
	struct json_object *o, *line = new_line("selected", &o);

	add_number(o, "uid", uid);
	add_number(o, "when", when);
	append_line(s, line);
}

const char *const journal_states[] = {"stopped", "started", "paused", "ending"};

static void write_state_of(struct session *s, enum session_state state)
{
	struct json_object *line = begin_line();

	add_string(line, "state", journal_states[state]);
	append_line(s, line);
}

static void journal_state(struct session *s)
{
	write_state_of(s, s->state);
}

/* For each attribute that is narrowed down, its values. */
static void journal_trackers(struct session *s)
{
	struct json_object *o, *values, *line = new_line("trackers", &o);

	for (int i = 0; i < N_TRACKERS; i++) {
		const struct tracker *t = &s->trackers[i];

		if (!t->narrowed)
			continue;
		values = json_object_new_array();
		for (uint32_t k = 0; k < t->n; k++)
			json_append(values, json_object_new_uint64(t->values[k]));
		json_add(o, tracker_names[i], values);
	}
	append_line(s, line);
}

static void journal_schedule(struct session *s)
{
	struct json_object *o, *line = new_line("schedule", &o);

	const struct rotation_schedule *schedule = &recording_of(s)->rotation.schedule;

	add_number(o, "timer", schedule->timer_us);
	add_number(o, "size", schedule->size);
	add_number(o, "max_disk", schedule->max_disk);
	add_number(o, "keep_free", schedule->keep_free);
	add_number(o, "keep_chunks", schedule->keep_chunks);
	add_number(o, "keep_bytes", schedule->keep_bytes);
	add_number(o, "keep_s", schedule->keep_s);
	append_line(s, line);
}

static void journal_trigger(struct session *s, const struct trigger_spec *t, bool removed)
{
	struct json_object *o, *line = new_line("trigger", &o);

	add_string(o, "name", t->name);
	add_number(o, "removed", removed);
	add_string(o, "when", t->when);
	add_string(o, "do", t->action);
	add_string(o, "rate", t->rate);
	add_string(o, "keep", t->keep);
	if (condition_is_theirs(&t->condition))
		add_number(o, "number", t->number);
	append_line(s, line);
}

static void journal_snapshots(struct session *s)
{
	struct json_object *o, *line = new_line("snapshots", &o);

	add_number(o, "last", recording_of(s)->last_snapshot);
	append_line(s, line);
}

static void journal_kept(
	struct session *s, const char *trigger, const char *output, uint64_t n_removed)
{
	struct json_object *o, *line = new_line("kept", &o);

	add_string(o, "trigger", trigger);
	add_string(o, "output", output);
	add_number(o, "removed", n_removed);
	append_line(s, line);
}

static void journal_channel(struct channel *c)
{
	struct json_object *o, *line = new_line("channel", &o);

	add_string(o, "name", c->name);
	add_number(o, "enabled", c->enabled);
	add_number(o, "domain", c->domain);
	for (const struct option *option = channel_options; option->key; option++)
		add_number(o, option->key, option_get(c, option));
	append_line(c->session, line);
}

static void journal_contexts(struct channel *c)
{
	struct json_object *o, *line = new_line("contexts", &o), *list = json_object_new_array();

	for (uint32_t i = 0; i < c->n_contexts; i++)
		json_append(list, json_object_new_string(c->contexts[i].spec));
	add_string(o, "channel", c->name);
	json_add(o, "list", list);
	append_line(c->session, line);
}

static void write_rule(struct channel *c, const struct rule *r, const char *state)
{
	struct json_object *o, *line = new_line("rule", &o), *list = json_object_new_array();

	for (uint32_t i = 0; i < r->n_exclusions; i++)
		json_append(list, json_object_new_string(r->exclusions[i]));
	add_string(o, "channel", c->name);
	add_string(o, "state", state);
	add_string(o, "pattern", r->pattern);
	json_add(o, "exclude", list);
	add_number(o, "level_type", r->level_type);
	add_number(o, "level", (uint64_t)(uint32_t)r->level);
	add_string(o, "filter", r->filter ? r->filter->text : "");
	add_number(o, "kind", r->kind);
	add_string(o, "probe", r->probe ? r->probe : "");
	add_string(o, "place", r->place ? r->place : "");
	append_line(c->session, line);
}

static void journal_rule(struct channel *c, const struct rule *r)
{
	write_rule(c, r, r->enabled ? "enabled" : "disabled");
}

static void journal_rule_removed(struct channel *c, const struct rule *r)
{
	write_rule(c, r, "removed");
}

static void journal_order(struct session *s)
{
	const struct rotation *r = &recording_of(s)->rotation;
	struct json_object *o, *line = new_line("order", &o);

	add_number(o, "clears", r->clears);
	add_string(o, "archive", r->archive ? r->archive : "");
	append_line(s, line);
}

static void journal_chunk(struct session *s, bool cleared)
{
	struct json_object *o, *line = new_line("chunk", &o);

	add_number(o, "number", recording_of(s)->rotation.chunk);
	add_number(o, "begin", (uint64_t)recording_of(s)->rotation.begin);
	add_number(o, "bytes", recording_of(s)->rotation.bytes);
	add_number(o, "archived", recording_of(s)->rotation.n_archived);
	add_number(o, "cleared", cleared);
	append_line(s, line);
}

static void journal_registry(struct registry *r)
{
	struct json_object *o, *line = new_line("registry", &o);

	add_number(o, "uid", r->uid);
	add_number(o, "abi_bits", r->abi_bits);
	add_hex(o, "uuid", r->uuid, sizeof(r->uuid));
	add_file(o, "log", r->log_fd);
	append_line(r->session, line);
}

static void journal_gap(const struct registry *r, const char *text)
{
	struct json_object *o, *line = new_line("gap", &o);

	add_number(o, "uid", r->uid);
	add_number(o, "abi_bits", r->abi_bits);
	add_number(o, "at", r->log_size);
	add_string(o, "text", text);
	append_line(r->session, line);
}

/* Adds what a set is, and where in the metadata the last text ends. */
static void add_set(struct json_object *o, const struct ring_set *set)
{
	json_add(o, "channel", json_object_new_string(set->channel->name));
	add_number(o, "number", set->number);
	add_number(o, "uid", set->uid);
	add_number(o, "abi_bits", set->abi_bits);
	if (ring_set_is_own(set)) {
		add_number(o, "kind", set->kind->number);
		add_number(o, "pid", (uint64_t)set->pid);
		add_number(o, "process", set->process);
		add_number(o, "auxv", set->image);
	}
	add_number(o, "stream_id", set->stream_id);
	add_number(o, "mode", set->mode);
	add_number(o, "fixed", set->room);
	add_number(o, "at", set->registry->log_size);
}

static void journal_stream(const struct ring_set *kind)
{
	struct json_object *o, *line = new_line("stream", &o);

	add_set(o, kind);
	append_line(kind->channel->session, line);
}

static void journal_set(const struct ring_set *set)
{
	const struct ky_geometry *g = &set->geometry;
	struct json_object *o, *line = new_line("set", &o);

	add_set(o, set);
	add_number(o, "clock", g->clock);
	add_number(o, "overwrite", g->overwrite);
	add_number(o, "n_rings", g->n_rings);
	add_number(o, "n_blocks", g->n_blocks);
	add_number(o, "n_home", g->n_home);
	add_number(o, "block_size", g->block_size);
	add_number(o, "pool_size", set->pool_size);
	add_number(o, "file_size", set->tracefile_size);
	add_number(o, "files", set->tracefile_count);
	add_file(o, "rings", set->memory.rings_fd);
	add_file(o, "consumed", set->memory.consumed_fd);
	append_line(set->channel->session, line);
}

static void write_retired(struct session *s, uint32_t number, const struct event_counts *counts,
	uint64_t chunk, uint64_t kept)
{
	struct json_object *o, *line = new_line("retired", &o);

	add_number(o, "set", number);
	add_number(o, "chunk", chunk);
	add_number(o, "kept", kept);
#define COUNT(name) add_number(o, #name, counts->name);
	EVENT_COUNTS(COUNT)
#undef COUNT
	append_line(s, line);
}

static void journal_retired(const struct ring_set *set, const struct event_counts *counts,
	uint64_t chunk, uint64_t kept)
{
	write_retired(set->channel->session, set->number, counts, chunk, kept);
}

static void journal_replaced(const struct ring_set *set)
{
	struct json_object *o, *line = new_line("replaced", &o);

	add_number(o, "set", set->number);
	append_line(set->channel->session, line);
}

static void journal_withdrawn(struct ring_set *set)
{
	struct json_object *o, *line = new_line("withdrawn", &o);

	add_number(o, "set", set->number);
	append_line(set->channel->session, line);
}

static void journal_event(const struct ring_set *set, const struct set_event *e)
{
	struct json_object *o, *line = new_line("event", &o);

	add_number(o, "set", set->number);
	add_number(o, "id", e->id);
	add_number(o, "n_contexts", e->n_contexts);
	add_number(o, "at", set->registry->log_size);
	add_number(o, "pid", (uint64_t)e->by.pid);
	json_add(o, "program", json_object_new_string(e->by.name));
	add_hex(o, "desc", e->desc->bytes, e->desc->len);
	append_line(set->channel->session, line);
}

static void journal_kernel_set(const struct kernel_set *set, const char *text)
{
	struct json_object *o, *line = new_line("kernel_set", &o);

	add_string(o, "channel", set->channel->name);
	add_number(o, "number", set->number);
	add_string(o, "instance", set->main.name);
	add_number(o, "stream_id", set->stream_id);
	add_number(o, "file_size", set->tracefile_size);
	add_number(o, "files", set->tracefile_count);
	add_file(o, "memory", set->memory_fd);
	add_number(o, "at", set->registry->log_size);
	add_string(o, "text", text);
	append_line(set->channel->session, line);
}

static void journal_kernel_event(
	const struct kernel_set *set, const struct kernel_event *e, const char *text)
{
	struct json_object *o, *line = new_line("kernel_event", &o);

	add_number(o, "set", set->number);
	add_string(o, "system", e->system);
	add_string(o, "name", e->name);
	add_number(o, "id", e->id);
	add_number(o, "n_contexts", e->n_contexts);
	add_number(o, "at", set->registry->log_size);
	add_string(o, "text", text);
	append_line(set->channel->session, line);
}

/* Writes the present state of all that later lines replace. */
static void write_state(struct session *s)
{
	struct trigger *t;
	struct channel *c;
	struct rule *r;

	write_session(s);
	journal_consumer(s);
	journal_chunk(s, false);
	journal_order(s);
	journal_schedule(s);
	journal_trackers(s);
	journal_snapshots(s);
	ky_list_foreach (t, &recording_of(s)->triggers.list, node) {
		journal_trigger(s, &t->spec, false);
		journal_kept(s, t->spec.name, "", t->kept.n_removed);
		for (unsigned i = 0; i < t->kept.n; i++)
			journal_kept(s, t->spec.name, t->kept.list[i], 0);
	}
	ky_list_foreach (c, &s->channels, node) {
		journal_channel(c);
		journal_contexts(c);
		ky_list_foreach (r, &c->rules, node) {
			write_rule(c, r, "enabled");
			if (!r->enabled)
				write_rule(c, r, "disabled");
		}
	}
	if (s->was_started)
		write_state_of(s, SESSION_STARTED);
	journal_state(s);
	selections_report(s->env->control, s);
}

/* Writes the counts of all sets that were retired, as those of two: one for each chunk. */
static void write_all_retired(struct session *s)
{
	const struct consumer *c = &recording_of(s)->consumer;
	const struct event_counts none = {0};
	uint64_t chunk = recording_of(s)->rotation.chunk;

	write_retired(s, 0, &c->retired, chunk, c->retired_kept[chunk & 1]);
	write_retired(s, 0, &none, chunk + 1, c->retired_kept[(chunk + 1) & 1]);
}

static bool is_kind(const char *line, const char *kind)
{
	size_t n = strlen(kind);

	return !strncmp(line + 2, kind, n) && line[2 + n] == '"';
}

/* Returns whether the number after `key`, which has its quotes and colon, is of such a set. */
static bool has_memory(const struct session *s, const char *line, const char *key)
{
	const char *number = strstr(line + 2, key);
	const struct ring_set *set =
		number ? ring_set_find(s, (uint32_t)strtoul(number + strlen(key), NULL, 10)) : NULL;

	return set && !set->written;
}

/*
 * Returns whether a line stays as it is: those of metadata do, in their order, and of the memory of
 * ring sets that exist. write_state() and write_all_retired() replace all others.
 */
static bool stays(const struct session *s, const char *line)
{
	static const char *const kinds[] = {
		"registry", "gap", "stream", "replaced", "event", "kernel_set", "kernel_event"};

	for (size_t i = 0; i < KY_ARRAY_SIZE(kinds); i++)
		if (is_kind(line, kinds[i]))
			return true;
	return (is_kind(line, "set") && has_memory(s, line, "\"number\":")) ||
	       (is_kind(line, "withdrawn") && has_memory(s, line, "\"set\":"));
}

/*
 * Copies the lines that stay from the journal at `path` to `to`. Returns 0, or -EIO if any may be
 * missing: getline() ends without memory, too.
 */
static int copy_lines(const struct session *s, const char *path, FILE *to)
{
	_cleanup_fclose_ FILE *from = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;
	ssize_t n;

	while (from && (n = getline(&line, &size, from)) > 0)
		if (n > 2 && line[n - 1] == '\n' && stays(s, line))
			fwrite(line, 1, (size_t)n, to);
	free(line);
	return !from || !feof(from) || fflush(to) || ferror(to) ? -EIO : 0;
}

/* Fills s->journal_fd, a new file. Returns 0 or -errno. */
static int write_compact(struct session *s, const char *old_path)
{
	int fd = fcntl(s->journal_fd, F_DUPFD_CLOEXEC, 0), ret = 0;
	_cleanup_fclose_ FILE *f = fd < 0 ? NULL : fdopen(fd, "a");

	compact_error = &ret;
	write_state(s);
	if (!ret)
		ret = f ? copy_lines(s, old_path, f) : -ENOMEM;
	if (!f)
		ky_close(fd);
	if (!ret)
		write_all_retired(s);
	compact_error = NULL;
	return ret;
}

/*
 * Writes the journal anew without what has no effect any more: sets that were retired, and earlier
 * states. A journal is as long as the session's contents then, not as its history. After an error
 * the old one stays.
 */
static void compact_journal(struct session *s)
{
	uint64_t old_bytes = s->journal_bytes;
	int old_fd = s->journal_fd, ret;
	char path[PATH_MAX], next[PATH_MAX];
	struct stat st = {0};

	snprintf(path, sizeof(path), "%s", journal_path(s->env, s->name));
	snprintf(next, sizeof(next), "%s" NEXT, journal_path(s->env, ""));
	s->journal_fd = open_journal(next);
	s->journal_bytes = 0;
	ret = s->journal_fd < 0 ? s->journal_fd : write_compact(s, path);
	if (!ret && (fstat(s->journal_fd, &st) < 0 || !rundir_leads_to(path, old_fd) ||
			    rename(next, path) < 0))
		ret = -EIO;
	ky_close(ret < 0 ? s->journal_fd : old_fd);
	if (ret < 0) {
		ky_warning("session '%s': its journal cannot be compacted: %s", s->name,
			strerror(-ret));
		unlink(next);
		s->journal_fd = old_fd;
	}
	s->journal_bytes = ret < 0 ? old_bytes : (uint64_t)st.st_size;
	s->journal_compact_bytes = s->journal_bytes;
}

/*
 * Runs when no change is in progress: some lines are written before what they say takes effect. A
 * predecessor's session is not known completely before it has settled.
 */
static void run_compacting(struct ky_job *j)
{
	struct session *s;

	ky_list_foreach (s, &env->sessions, node)
		if (s->journal_fd >= 0 && !recording_of(s)->consumer.awaited &&
			s->journal_bytes >
				2 * KY_MAX(s->journal_compact_bytes, (uint64_t)COMPACT_MIN))
			compact_journal(s);
}

static struct observer journal = {
	.session_made = journal_begin,
	.session_ended = journal_end,
	.session_freed = journal_close,
	.session_selected = journal_selected,
	.session_tracks = journal_trackers,
	.session_state = journal_state,
	.trigger_changed = journal_trigger,
	.snapshot_begun = journal_snapshots,
	.snapshot_kept = journal_kept,
	.schedule_changed = journal_schedule,
	.consumer_started = journal_consumer,
	.rotation_ordered = journal_order,
	.chunk_begun = journal_chunk,
	.channel_changed = journal_channel,
	.contexts_added = journal_contexts,
	.rule_changed = journal_rule,
	.rule_removed = journal_rule_removed,
	.registry_added = journal_registry,
	.gap_added = journal_gap,
	.stream_numbered = journal_stream,
	.set_numbered = journal_set,
	.set_replaced = journal_replaced,
	.set_withdrawn = journal_withdrawn,
	.event_numbered = journal_event,
	.set_written = journal_retired,
	.kernel_set_numbered = journal_kernel_set,
	.kernel_event_numbered = journal_kernel_event,
};

void journal_init(struct env *e)
{
	env = e;
	ky_job_init(&compacting, run_compacting);
	ky_timer_init(&retry, run_retry);
	ky_list_append(&e->observers, &journal.node);
}
