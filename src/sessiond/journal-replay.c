/* SPDX-License-Identifier: MIT */
/* Reading journals. They are our own files, but a line may be missing, or cut off. */
#include <dirent.h>
#include <fcntl.h>

#include <json-c/json.h>

#include "sessiond/control/selection.h"
#include "sessiond/journal.h"
#include "sessiond/kernel/events.h"
#include "sessiond/kernel/kernel.h"
#include "sessiond/model/context.h"
#include "sessiond/model/lost.h"
#include "sessiond/model/option.h"
#include "sessiond/model/quota.h"
#include "sessiond/model/seconds.h"
#include "sessiond/peers/recording.h"
#include "sessiond/peers/steps.h"
#include "sessiond/peers/trigger-actions.h"
#include "sessiond/peers/triggers.h"
#include "svc/log.h"

static uint64_t get_number(struct json_object *o, const char *name)
{
	struct json_object *v;

	return json_object_object_get_ex(o, name, &v) ? json_object_get_uint64(v) : 0;
}

/* A number that earlier versions did not write. */
static uint64_t get_or(struct json_object *o, const char *name, uint64_t otherwise)
{
	return json_object_object_get_ex(o, name, NULL) ? get_number(o, name) : otherwise;
}

static const char *get_string(struct json_object *o, const char *name)
{
	struct json_object *v;

	return json_object_object_get_ex(o, name, &v) ? json_object_get_string(v) : "";
}

/* The value of a hexadecimal digit as the journal writes it, or -1. */
static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* At most `size` bytes; how many they are. */
static size_t get_hex(struct json_object *o, const char *name, uint8_t *bytes, size_t size)
{
	const char *text = get_string(o, name);
	int high, low;
	size_t n;

	for (n = 0; n < size; n++) {
		high = digit_of(text[2 * n]);
		low = high < 0 ? -1 : digit_of(text[2 * n + 1]);
		if (low < 0)
			break;
		bytes[n] = (uint8_t)(high << 4 | low);
	}
	return n;
}

static struct registry *get_registry(struct session *s, struct json_object *o)
{
	return registry_find(s, (uid_t)get_number(o, "uid"), (uint32_t)get_number(o, "abi_bits"));
}

static void read_registry(struct session *s, struct json_object *o)
{
	struct registry *r = get_registry(s, o);

	/* A registry without ring sets ends with its daemon, and may have been made again since. */
	if (!r)
		r = registry_new(
			s, (uid_t)get_number(o, "uid"), (uint32_t)get_number(o, "abi_bits"));
	if (!r)
		return;
	registry_set_last(r, NULL, NULL);
	r->n_gaps = 0;
	get_hex(o, "uuid", r->uuid, sizeof(r->uuid));
	r->log_file = get_number(o, "log");
}

/* A text begins here. If the one before it does so, too, that could not be written. */
static void begin_text(struct registry *r, uint64_t at)
{
	if (r->last_set && !r->last_set->last_event && at == r->log_size)
		r->last_set->described = false;
	r->log_size = at;
}

static void read_gap(struct session *s, struct json_object *o)
{
	struct registry *r = get_registry(s, o);

	if (!r)
		return;
	begin_text(r, get_number(o, "at"));
	registry_set_last(r, NULL, get_string(o, "text"));
	r->n_gaps++;
}

/* The set that a line is about, which may have no memory yet. */
static struct ring_set *get_set(struct session *s, struct json_object *o)
{
	struct channel *c = channel_find(s, get_string(o, "channel"));
	uint32_t kind = (uint32_t)get_number(o, "kind");

	if (!c)
		return NULL;
	if (!kind)
		return ring_set_get(c, (uid_t)get_number(o, "uid"),
			(uint32_t)get_number(o, "abi_bits"), (uint32_t)get_number(o, "mode"),
			(enum ring_room)KY_MIN(get_number(o, "fixed"), ROOM_MUCH));
	return ring_set_find(s, kind)
		       ? ring_set_of_process(ring_set_find(s, kind), (pid_t)get_number(o, "pid"),
				 (uint32_t)get_number(o, "process"), get_number(o, "auxv"))
		       : NULL;
}

/*
 * Finds or makes the set of the line, and its registry. If another set of its kind, or of its
 * process, has memory, a line about that set is missing: the journal of an earlier version was
 * compacted, or a daemon could not take it over. The later set is the one that programs use.
 */
static struct ring_set *read_identity(struct session *s, struct json_object *o)
{
	struct registry *r = get_registry(s, o);
	struct ring_set *set = r ? get_set(s, o) : NULL;
	uint32_t number = (uint32_t)get_number(o, "number");

	s->env->last_number = KY_MAX(s->env->last_number, number);
	if (set && ring_set_is_made(set) && set->number != number) {
		if (ring_set_is_own(set))
			ring_set_forget(set);
		else
			ring_set_set_apart(set);
		set = get_set(s, o);
	}
	if (!set)
		return NULL;
	set->number = number;
	set->stream_id = (uint32_t)get_number(o, "stream_id");
	set->registry = r;
	return set;
}

static void set_described(struct ring_set *kind, uint64_t at)
{
	struct registry *r = kind->registry;

	begin_text(r, at);
	kind->described = true;
	kind->described_at = at;
	registry_set_last(r, kind, NULL);
	r->n_streams = KY_MAX(r->n_streams, kind->stream_id + 1);
}

static void read_stream(struct session *s, struct json_object *o)
{
	struct ring_set *kind = read_identity(s, o);

	if (kind)
		set_described(kind, get_number(o, "at"));
}

static void read_set(struct session *s, struct json_object *o)
{
	struct ring_set *set = read_identity(s, o);

	if (!set)
		return;
	if (!ring_set_is_own(set) && !set->described) /* by a version without lines of streams */
		set_described(set, get_number(o, "at"));
	set->geometry = (struct ky_geometry){
		.mode = set->mode,
		.clock = (uint32_t)get_number(o, "clock"),
		.overwrite = (uint32_t)get_number(o, "overwrite"),
		.n_rings = (uint32_t)get_number(o, "n_rings"),
		.n_blocks = (uint32_t)get_number(o, "n_blocks"),
		.n_home = (uint32_t)get_number(o, "n_home"),
		.block_size = (uint32_t)get_number(o, "block_size"),
	};
	set->pool_size = (uint32_t)get_or(o, "pool_size", set->channel->pool_size);
	set->tracefile_size = get_or(o, "file_size", set->channel->tracefile_size);
	set->tracefile_count = (uint32_t)get_or(o, "files", set->channel->tracefile_count);
	set->rings_file = get_number(o, "rings");
	set->consumed_file = get_number(o, "consumed");
	if (ky_geometry_init(&set->geometry) || ring_set_is_made(set))
		return;
	ring_set_set_state(set, SET_MADE);
	seconds_watch(set);
	quota_watch(set);
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
		ring_set_forget(set);
}

static void read_replaced(struct session *s, struct json_object *o)
{
	struct ring_set *set = ring_set_find(s, (uint32_t)get_number(o, "set"));

	if (set)
		ring_set_set_apart(set);
}

static void read_withdrawn(struct session *s, struct json_object *o)
{
	struct ring_set *set = ring_set_find(s, (uint32_t)get_number(o, "set"));

	if (set)
		set->withdrawn = true;
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
			begin_text(set->registry, get_number(o, "at"));
			ring_set_restore(set, d, &by, (uint32_t)get_number(o, "id"),
				(uint32_t)get_number(o, "n_contexts"));
			event_desc_unref(d);
		}
	}
	user_unref(u);
	free(bytes);
}

/* A text of the kernel's metadata: the predecessor may not have written all of the last one. */
static void read_kernel_text(struct registry *r, struct json_object *o)
{
	begin_text(r, get_number(o, "at"));
	registry_set_last_text(r, get_string(o, "text"));
}

static void read_kernel_set(struct session *s, struct json_object *o)
{
	struct channel *c = channel_find(s, get_string(o, "channel"));
	struct registry *r = registry_find(s, 0, KERNEL_ABI);
	uint32_t number = (uint32_t)get_number(o, "number");
	struct kernel_set *set = c && r ? kernel_set_restore(c, number, get_string(o, "instance"))
					: NULL;

	if (!set)
		return;
	s->env->last_number = KY_MAX(s->env->last_number, number);
	set->registry = r;
	set->stream_id = (uint32_t)get_number(o, "stream_id");
	set->tracefile_size = get_or(o, "file_size", c->tracefile_size);
	set->tracefile_count = (uint32_t)get_or(o, "files", c->tracefile_count);
	set->memory_file = get_number(o, "memory");
	r->n_streams = KY_MAX(r->n_streams, set->stream_id + 1);
	read_kernel_text(r, o);
}

static void read_kernel_event(struct session *s, struct json_object *o)
{
	struct kernel_set *set = kernel_set_find(s, (uint32_t)get_number(o, "set"));

	if (!set)
		return;
	kernel_event_restore(set, get_string(o, "system"), get_string(o, "name"),
		(uint32_t)get_number(o, "id"), (uint32_t)get_number(o, "n_contexts"));
	read_kernel_text(set->registry, o);
}

static void read_selected(struct session *s, struct json_object *o)
{
	selection_set(s->env->control, (uid_t)get_number(o, "uid"), s, get_number(o, "when"));
}

static void read_state(struct session *s, struct json_object *v)
{
	for (int i = 0; i < (int)JOURNAL_STATES; i++)
		if (!strcmp(json_object_get_string(v), journal_states[i]))
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

static void read_trigger(struct session *s, struct json_object *o)
{
	struct trigger *t = recording_find_trigger(s, get_string(o, "name"));
	char why[TRIGGER_ERROR_MAX];
	struct trigger_spec spec;
	int ret;

	if (t)
		trigger_remove(t);
	if (get_number(o, "removed"))
		return;
	ret = trigger_spec_init(&spec, get_string(o, "name"), get_string(o, "when"),
		get_string(o, "do"), get_string(o, "rate"), get_string(o, "keep"), why);
	spec.number = (uint32_t)get_number(o, "number");
	if (ret < 0 || trigger_add(s, &spec) < 0)
		session_notice(s, "trigger '%s' is lost", get_string(o, "name"));
	trigger_spec_deinit(&spec);
}

static void read_snapshots(struct session *s, struct json_object *o)
{
	recording_of(s)->last_snapshot = (unsigned)get_number(o, "last");
}

static void read_kept(struct session *s, struct json_object *o)
{
	struct trigger *t = recording_find_trigger(s, get_string(o, "trigger"));
	uint64_t n_removed;

	if (t && *get_string(o, "output")) {
		trigger_keep(t, get_string(o, "output"));
	} else if (t) {
		n_removed = t->kept.n_removed + get_number(o, "removed");
		trigger_forget_kept(t, t->kept.n_removed, get_number(o, "removed"));
		t->kept.n_removed = n_removed; /* the list lacks those before the compaction */
	}
}

static void read_schedule(struct session *s, struct json_object *o)
{
	const struct rotation_schedule schedule = {.timer_us = get_number(o, "timer"),
		.size = get_number(o, "size"),
		.max_disk = get_number(o, "max_disk"),
		.keep_free = get_number(o, "keep_free"),
		.keep_chunks = get_number(o, "keep_chunks"),
		.keep_bytes = get_number(o, "keep_bytes"),
		.keep_s = get_number(o, "keep_s")};

	rotation_set_schedule(&recording_of(s)->rotation, &schedule);
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
	c->domain = (enum domain)get_number(o, "domain");
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

		if (!(c->domain == DOMAIN_KERNEL ? kernel_context_parse : context_parse)(
			    &context, spec, why, sizeof(why)))
			channel_add_contexts(c, &context, 1);
	}
}

/* Makes the rule of the line. Returns NULL if allocation fails. */
static struct rule *make_rule(const struct channel *c, struct json_object *o)
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
	if (r && *get_string(o, "probe"))
		r->probe = strdup(get_string(o, "probe"));
	if (r && *get_string(o, "place"))
		r->place = strdup(get_string(o, "place"));
	if (r)
		r->kind = (enum rule_kind)get_number(o, "kind");
	if (!r || !*filter)
		return r;
	r->filter = c->domain == DOMAIN_KERNEL ? kernel_filter_new(filter, &error)
					       : filter_new(filter, &error);
	return r->filter ? r : rule_free(r);
}

static void read_rule(struct session *s, struct json_object *o)
{
	struct channel *c = channel_find(s, get_string(o, "channel"));
	struct rule *rules[] = {c ? make_rule(c, o) : NULL, NULL}, *same;
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

static void read_order(struct session *s, struct json_object *o)
{
	struct rotation *r = &recording_of(s)->rotation;

	r->clears = get_number(o, "clears");
	free(r->archive);
	r->archive = strdup(get_string(o, "archive"));
}

static void read_chunk(struct session *s, struct json_object *o)
{
	consumer_chunk_ended(&recording_of(s)->consumer, recording_of(s)->rotation.chunk,
		get_number(o, "cleared"));
	recording_of(s)->rotation.chunk = get_number(o, "number");
	recording_of(s)->rotation.begin = (time_t)get_number(o, "begin");
	recording_of(s)->rotation.bytes = get_number(o, "bytes");
	recording_of(s)->rotation.n_archived = (unsigned)get_number(o, "archived");
}

static const struct {
	const char *kind;
	void (*read)(struct session *s, struct json_object *v);
} kinds[] = {
	{"consumer", read_consumer},
	{"order", read_order},
	{"chunk", read_chunk},
	{"schedule", read_schedule},
	{"trigger", read_trigger},
	{"kept", read_kept},
	{"snapshots", read_snapshots},
	{"trackers", read_trackers},
	{"channel", read_channel},
	{"contexts", read_contexts},
	{"rule", read_rule},
	{"state", read_state},
	{"registry", read_registry},
	{"gap", read_gap},
	{"stream", read_stream},
	{"set", read_set},
	{"retired", read_retired},
	{"replaced", read_replaced},
	{"withdrawn", read_withdrawn},
	{"event", read_event},
	{"kernel_set", read_kernel_set},
	{"kernel_event", read_kernel_event},
	{"selected", read_selected},
};

/* The first line. A session of another format is not made. Returns 0 or -errno. */
static int read_session(struct env *e, const char *name, struct json_object *o)
{
	const struct session_spec spec = {
		.name = name,
		.output = get_string(o, "output"),
		.shm_path = get_string(o, "shm_path"),
		.snapshot = get_number(o, "snapshot"),
		.seconds = get_number(o, "seconds"),
		.switch_us = get_number(o, "switch_us"),
		.absolute_clock = get_number(o, "absolute_clock"),
		.uid = (uid_t)get_number(o, "uid"),
		.gid = (gid_t)get_number(o, "gid"),
	};
	struct session *s;
	int ret = get_number(o, "format") == JOURNAL_FORMAT ? session_restore(e, &spec, &s)
							    : -EPROTONOSUPPORT;

	if (ret < 0)
		return ret;
	s->abandoned = get_number(o, "bound");
	ky_clock_measure((enum ky_clock)get_number(o, "clock"), &s->clock);
	if (session_clock_take(&s->clock, get_string(o, "clock_values")) < 0)
		ky_warning(
			"session '%s': its journal lacks the values of its clock: they are measured again",
			name);
	e->last_number = KY_MAX(e->last_number, (uint32_t)get_number(o, "last_number"));
	return 0;
}

/* Returns 0, or -errno if the line's session cannot be made. */
static int read_line(struct env *e, const char *name, const char *text)
{
	struct json_object *line = json_tokener_parse(text), *v;
	struct session *s = session_find(e, name);
	int ret = 0;

	if (!s && json_object_object_get_ex(line, "session", &v))
		ret = read_session(e, name, v);
	for (size_t i = 0; s && i < KY_ARRAY_SIZE(kinds); i++)
		if (json_object_object_get_ex(line, kinds[i].kind, &v))
			kinds[i].read(s, v);
	json_object_put(line);
	return ret;
}

/*
 * Reads a journal. If the file ends within a line, the daemon died while it wrote that line, and
 * nothing has relied on the line yet. Sets *ret_end to the offset where the last whole line ends.
 * Returns 0 or -errno.
 */
static int read_file(struct env *e, const char *name, const char *path, off_t *ret_end)
{
	_cleanup_fclose_ FILE *f = fopen(path, "re");
	int ret = f ? 0 : -errno;
	char *line = NULL;
	size_t size = 0;
	off_t end = 0;
	ssize_t n;

	while (!ret && (n = getline(&line, &size, f)) > 0 && line[n - 1] == '\n') {
		ret = read_line(e, name, line);
		end += n;
	}
	if (!ret && !feof(f))
		ret = -errno;
	free(line);
	*ret_end = end;
	return ret;
}

/* Returns whether a later try may succeed: the system, or this process, has too little now. */
static bool is_temporary(int error)
{
	return error == -ENOMEM || error == -EMFILE || error == -ENFILE;
}

static bool is_alive(pid_t pid)
{
	return pid > 0 && (!kill(pid, 0) || errno == EPERM);
}

/* Continues the journal behind its last whole line. */
static void continue_journal(struct session *s, const char *path, off_t end)
{
	s->journal_fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
	s->journal_bytes = (uint64_t)end;
	if (s->journal_fd >= 0 && !ftruncate(s->journal_fd, end))
		return;
	s->journal_error = -errno;
	ky_warning("session '%s': it would not survive the session daemon again: %s: %s", s->name,
		path, strerror(errno));
	s->journal_fd = ky_close(s->journal_fd);
}

/*
 * Replays one session's journal. Returns whether its consumer may call, or -errno if the journal
 * cannot be read now.
 */
static int replay_session(struct env *e, const char *name)
{
	const char *path = journal_path(e, name);
	struct session *s;
	off_t end;
	int ret = read_file(e, name, path, &end);

	if (is_temporary(ret)) {
		ky_error(
			"cannot read %s: %s: the daemon ends, and leaves the sessions to the next one",
			path, strerror(-ret));
		return ret;
	}
	s = session_find(e, name);
	if (s && is_alive(recording_of(s)->consumer.awaited)) {
		continue_journal(s, path, end);
		return true;
	}
	if (s)
		session_lose(s);
	else
		lost_add(e, e->uid, name,
			"session '%s' is lost: its journal is of another version or damaged, or its --shm-path directory was removed; its trace ends here",
			name);
	unlink(path);
	return false;
}

/* A journal that was suspended when the predecessor ended; `entry`: its file. */
static void lose_suspended(struct env *e, const char *entry)
{
	const char *name = entry + 1;

	if (*entry != '.' || !ky_name_valid(name))
		return;
	unlink(journal_path_kept(e, name));
	lost_add(e, e->uid, name,
		"session '%s' is lost: its journal could not be written when the session daemon was killed; its consumer writes what the buffers hold, and ends",
		name);
}

int journal_replay(struct env *e)
{
	DIR *dir = opendir(journal_path(e, ""));
	const struct dirent *entry;
	int n = 0, ret = 0;

	if (!dir)
		return is_temporary(-errno) ? -errno : 0;
	e->users.unlimited = true;
	while (ret >= 0 && (entry = readdir(dir)))
		if (ky_name_valid(entry->d_name)) {
			ret = replay_session(e, entry->d_name);
			n += ret > 0;
		} else {
			lose_suspended(e, entry->d_name);
		}
	e->users.unlimited = false;
	closedir(dir);
	return ret < 0 ? ret : n;
}
