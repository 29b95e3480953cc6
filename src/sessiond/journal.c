/* SPDX-License-Identifier: MIT */
#include "sessiond/journal.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "sessiond/control/selection.h"
#include "sessiond/model/context.h"
#include "sessiond/model/option.h"
#include "sessiond/peers/peers.h"
#include "sessiond/peers/rundir.h"
#include "sessiond/peers/recording.h"
#include "sessiond/peers/steps.h"
#include "sessiond/control/json.h"
#include "svc/log.h"

#define JOURNAL_MAX    (64 << 20) /* bytes of one journal */
#define JOURNAL_FORMAT 2u

/* Returns the path of a session's journal, or of the directory if the name is "", in one static buffer. */
static const char *path_of(const struct env *e, const char *name)
{
	static char path[RUNDIR_MAX + sizeof(KY_RUN_SESSIONS) + NAME_MAX + 2];

	snprintf(path, sizeof(path), "%s/" KY_RUN_SESSIONS "%s%s", e->run->path, *name ? "/" : "",
		name);
	return path;
}

/* --- writing --- */

static void journal_close(struct session *s)
{
	s->journal_fd = ky_close(s->journal_fd);
}

static void journal_end(struct session *s)
{
	if (s->journal_fd < 0)
		return;
	if (rundir_leads_to(path_of(s->env, s->name), s->journal_fd))
		unlink(path_of(s->env, s->name));
	journal_close(s);
}

/* Takes the line. What cannot be written down whole is not written down at all. */
static void append_line(struct session *s, struct json_object *line)
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
			s->name, s->env->run->path);
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

static void add_string(struct json_object *o, const char *name, const char *value)
{
	json_add(o, name, json_object_new_string(value));
}

static void write_session(struct session *s)
{
	struct json_object *o, *line = new_line("session", &o);

	add_number(o, "format", JOURNAL_FORMAT);
	add_string(o, "output", s->output);
	add_string(o, "shm_path", s->shm_path ? s->shm_path : "");
	add_number(o, "snapshot", s->snapshot);
	add_number(o, "absolute_clock", s->absolute_clock);
	add_number(o, "uid", s->uid);
	add_number(o, "gid", s->gid);
	add_number(o, "clock", s->clock.clock);
	append_line(s, line);
}

static void journal_consumer(struct session *s)
{
	const struct consumer *c = &recording_of(s)->consumer;
	struct json_object *o, *line = new_line("consumer", &o);

	add_number(o, "pid", (uint64_t)c->pid);
	add_file(o, "memory", c->memory_fd);
	append_line(s, line);
}

static void journal_begin(struct session *s)
{
	const int flags = O_WRONLY | O_APPEND | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW;

	if (s->env->bound)
		return;
	mkdir(path_of(s->env, ""), 0700);
	s->journal_fd = open(path_of(s->env, s->name), flags, 0600);
	if (s->journal_fd < 0) {
		session_notice(s, "session '%s' would not survive the session daemon: %s: %s",
			s->name, path_of(s->env, s->name), strerror(errno));
		return;
	}
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

static const char *const states[] = {"stopped", "started", "paused", "ending"};

static void journal_state(struct session *s)
{
	struct json_object *line = json_object_new_object();

	add_string(line, "state", states[s->state]);
	append_line(s, line);
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

	add_number(o, "timer", recording_of(s)->rotation.timer_us);
	add_number(o, "size", recording_of(s)->rotation.size);
	append_line(s, line);
}

static void journal_channel(struct channel *c)
{
	struct json_object *o, *line = new_line("channel", &o);

	add_string(o, "name", c->name);
	add_number(o, "enabled", c->enabled);
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

static void journal_chunk(struct session *s, bool cleared)
{
	struct json_object *o, *line = new_line("chunk", &o);

	add_number(o, "number", recording_of(s)->rotation.chunk);
	add_number(o, "begin", (uint64_t)recording_of(s)->rotation.begin);
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

static void journal_set(const struct ring_set *set)
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
	append_line(set->channel->session, line);
}

static void journal_retired(const struct ring_set *set, const struct event_counts *counts,
	uint64_t chunk, uint64_t kept)
{
	struct json_object *o, *line = new_line("retired", &o);

	add_number(o, "set", set->number);
	add_number(o, "chunk", chunk);
	add_number(o, "kept", kept);
#define COUNT(name) add_number(o, #name, counts->name);
	EVENT_COUNTS(COUNT)
#undef COUNT
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
	s->env->last_number = KY_MAX(s->env->last_number, set->number);
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
	if (!ky_geometry_init(&set->geometry))
		ring_set_set_state(set, SET_MADE);
}

static void read_retired(struct session *s, struct json_object *o)
{
	struct ring_set *set = ring_set_find(s, (uint32_t)get_number(o, "set"));
	struct event_counts counts = {0};

#define COUNT(name) counts.name = get_number(o, #name);
	EVENT_COUNTS(COUNT)
#undef COUNT
	consumer_add_retired(
		&recording_of(s)->consumer, &counts, get_number(o, "chunk"), get_number(o, "kept"));
	if (set)
		ring_set_free(set);
}

static void read_event(struct session *s, struct json_object *o)
{
	struct ring_set *set = ring_set_find(s, (uint32_t)get_number(o, "set"));
	struct user *u = set ? user_get(&s->env->users, set->uid) : NULL;
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
	selection_set(s->env->control, (uid_t)get_number(o, "uid"), s, get_number(o, "when"));
}

static void read_state(struct session *s, struct json_object *v)
{
	for (int i = 0; i < (int)KY_ARRAY_SIZE(states); i++)
		if (!strcmp(json_object_get_string(v), states[i]))
			s->state = (enum session_state)i;
	s->was_started |= s->state == SESSION_STARTED;
}

static void read_trackers(struct session *s, struct json_object *o)
{
	struct tracker trackers[N_TRACKERS] = {0};
	struct json_object *list;

	for (int i = 0; i < N_TRACKERS; i++) {
		if (!json_object_object_get_ex(o, tracker_names[i], &list))
			continue;
		tracker_reset(&trackers[i], false);
		for (size_t k = 0; k < json_object_array_length(list); k++)
			tracker_add(&trackers[i], (uint32_t)json_object_get_uint64(
							  json_object_array_get_idx(list, k)));
	}
	session_track(s, trackers);
	for (int i = 0; i < N_TRACKERS; i++)
		tracker_deinit(&trackers[i]);
}

static void read_schedule(struct session *s, struct json_object *o)
{
	rotation_schedule(
		&recording_of(s)->rotation, get_number(o, "timer"), get_number(o, "size"));
}

static void read_channel(struct session *s, struct json_object *o)
{
	struct channel *c = channel_find(s, get_string(o, "name"));
	struct option_values values = {0};
	bool is_new = !c;

	if (is_new)
		c = channel_new(s, get_string(o, "name"));
	if (!c)
		return;
	for (size_t i = 0; channel_options[i].key; i++) {
		values.given |= UINT64_C(1) << i;
		values.value[i] = get_number(o, channel_options[i].key);
	}
	c->enabled = get_number(o, "enabled");
	options_apply(c, &values);
	if (is_new)
		channel_add(c);
}

static void read_contexts(struct session *s, struct json_object *o)
{
	struct channel *c = channel_find(s, get_string(o, "channel"));
	struct json_object *list = NULL;
	struct ky_context context;
	char why[256];

	json_object_object_get_ex(o, "list", &list);
	for (size_t i = 0; c && list && i < json_object_array_length(list); i++) {
		const char *spec = json_object_get_string(json_object_array_get_idx(list, i));

		if (!context_parse(&context, spec, why, sizeof(why)))
			channel_add_contexts(c, &context, 1);
	}
}

/* As the line has it. NULL without memory. */
static struct rule *make_rule(struct json_object *o)
{
	const char *exclusions[RULE_EXCLUSIONS_MAX], *filter = get_string(o, "filter");
	struct ky_filter_error error;
	struct json_object *list = NULL;
	struct rule *r;
	uint32_t n;

	json_object_object_get_ex(o, "exclude", &list);
	for (n = 0; list && n < RULE_EXCLUSIONS_MAX && n < json_object_array_length(list); n++)
		exclusions[n] = json_object_get_string(json_object_array_get_idx(list, n));
	r = rule_new(get_string(o, "pattern"), exclusions, n, (uint32_t)get_number(o, "level_type"),
		(int32_t)get_number(o, "level"));
	if (!r || !*filter)
		return r;
	r->filter = filter_new(filter, &error);
	return r->filter ? r : rule_free(r);
}

static void read_rule(struct session *s, struct json_object *o)
{
	struct channel *c = channel_find(s, get_string(o, "channel"));
	struct rule *rules[] = {c ? make_rule(o) : NULL, NULL}, *same;
	const char *state = get_string(o, "state");

	if (!rules[0])
		return;
	if (strcmp(state, "enabled") != 0) {
		same = channel_find_rule(c, rules[0]);
		if (same)
			channel_disable_rule(c, same, !strcmp(state, "removed"));
	} else if (!channel_enable_rules(c, rules)) {
		return;
	}
	rule_free(rules[0]);
}

static void read_consumer(struct session *s, struct json_object *o)
{
	recording_of(s)->consumer.awaited = (pid_t)get_number(o, "pid");
	recording_of(s)->consumer.memory_file = get_number(o, "memory");
}

static void read_chunk(struct session *s, struct json_object *o)
{
	consumer_chunk_ended(&recording_of(s)->consumer, recording_of(s)->rotation.chunk,
		get_number(o, "cleared"));
	recording_of(s)->rotation.chunk = get_number(o, "number");
	recording_of(s)->rotation.begin = (time_t)get_number(o, "begin");
	recording_of(s)->rotation.n_archived = (unsigned)get_number(o, "archived");
}

static const struct {
	const char *kind;
	void (*read)(struct session *s, struct json_object *v);
} kinds[] = {
	{"consumer", read_consumer},
	{"chunk", read_chunk},
	{"schedule", read_schedule},
	{"trackers", read_trackers},
	{"channel", read_channel},
	{"contexts", read_contexts},
	{"rule", read_rule},
	{"state", read_state},
	{"registry", read_registry},
	{"set", read_set},
	{"retired", read_retired},
	{"event", read_event},
	{"selected", read_selected},
};

/* The first line. A session of another format is not made. */
static void read_session(struct env *e, const char *name, struct json_object *o)
{
	const struct session_spec spec = {
		.name = name,
		.output = get_string(o, "output"),
		.shm_path = get_string(o, "shm_path"),
		.snapshot = get_number(o, "snapshot"),
		.absolute_clock = get_number(o, "absolute_clock"),
		.uid = (uid_t)get_number(o, "uid"),
		.gid = (gid_t)get_number(o, "gid"),
	};
	struct session *s;

	if (get_number(o, "format") == JOURNAL_FORMAT && !session_restore(e, &spec, &s))
		ky_clock_measure((enum ky_clock)get_number(o, "clock"), &s->clock);
}

static void read_line(struct env *e, const char *name, const char *text)
{
	struct json_object *line = json_tokener_parse(text), *v;
	struct session *s = session_find(e, name);

	if (!s && json_object_object_get_ex(line, "session", &v))
		read_session(e, name, v);
	for (size_t i = 0; s && i < KY_ARRAY_SIZE(kinds); i++)
		if (json_object_object_get_ex(line, kinds[i].kind, &v))
			kinds[i].read(s, v);
	json_object_put(line);
}

/*
 * A file that ends within a line was being written when the daemon died: nothing has relied on that line yet. Returns where the
 * last whole one ends.
 */
static off_t read_file(struct env *e, const char *name, const char *path)
{
	_cleanup_fclose_ FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;
	off_t end = 0;
	ssize_t n;

	while (f && (n = getline(&line, &size, f)) > 0 && line[n - 1] == '\n') {
		read_line(e, name, line);
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
static bool replay_session(struct env *e, const char *name)
{
	const char *path = path_of(e, name);
	off_t end = read_file(e, name, path);
	struct session *s = session_find(e, name);

	if (s && is_alive(recording_of(s)->consumer.awaited)) {
		s->journal_fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
		return s->journal_fd < 0 || !ftruncate(s->journal_fd, end);
	}
	if (s)
		session_lose(s);
	else
		ky_error(
			"session '%s' is lost: its journal is of another version or damaged, or its --shm-path directory was removed; its trace ends here",
			name);
	unlink(path);
	return false;
}

unsigned journal_replay(struct env *e)
{
	DIR *dir = opendir(path_of(e, ""));
	const struct dirent *entry;
	unsigned n = 0;

	if (!dir)
		return 0;
	while ((entry = readdir(dir)))
		if (ky_name_valid(entry->d_name))
			n += replay_session(e, entry->d_name);
	closedir(dir);
	return n;
}

static struct observer journal = {
	.session_made = journal_begin,
	.session_ended = journal_end,
	.session_freed = journal_close,
	.session_selected = journal_selected,
	.session_tracks = journal_trackers,
	.session_state = journal_state,
	.schedule_changed = journal_schedule,
	.consumer_started = journal_consumer,
	.chunk_begun = journal_chunk,
	.channel_changed = journal_channel,
	.contexts_added = journal_contexts,
	.rule_changed = journal_rule,
	.rule_removed = journal_rule_removed,
	.registry_added = journal_registry,
	.set_numbered = journal_set,
	.event_numbered = journal_event,
	.set_written = journal_retired,
};

void journal_init(struct env *e)
{
	ky_list_append(&e->observers, &journal.node);
}
