/* SPDX-License-Identifier: MIT */
#include "sessiond/kernel/kernel.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "abi/kernel.h"
#include "ctf/tsdl.h"
#include "kernel/format.h"
#include "kernel/program.h"

#include "sessiond/kernel/events.h"
#include "sessiond/kernel/probes.h"
#include "sessiond/kernel/removal.h"
#include "sessiond/kernel/samples.h"
#include "sessiond/kernel/statedump.h"
#include "sessiond/kernel/sweep.h"
#include "sessiond/model/context.h"
#include "sessiond/model/quota.h"
#include "svc/check.h"
#include "svc/log.h"

#define SUBBUF_MOST   (64u << 10) /* larger ones cost more than they save */
#define TASKS_BUFFER  (32u << 10)
#define NEWTASK	      "events/task/task_newtask/"
#define RENAME	      "events/task/task_rename/"
#define THREADS_TRIES 8u
#define REST_NS	      (100 * KY_NS_PER_MS)
#define REST_PIECE_NS (50 * KY_NS_PER_MS)
#define FIRST_SHORT   21u /* identifiers with short heads that no event always has */

static struct kernel *kernel; /* of this process */

/* --- sets --- */

static struct kernel_set *set_new(struct channel *c, uint32_t number)
{
	struct kernel_set *set = calloc(1, sizeof(*set));

	if (!set)
		return NULL;
	set->channel = c;
	set->number = number;
	set->tracefile_size = c->tracefile_size;
	set->tracefile_count = c->tracefile_count;
	set->memory_fd = -1;
	instance_init(&set->main);
	instance_init(&set->tasks);
	ky_list_init(&set->events);
	set->next_short = FIRST_SHORT;
	set->next_long = STATEDUMP_ID + STATEDUMP_EVENTS;
	set->task_fields = calloc(1, sizeof(*set->task_fields));
	if (!set->task_fields) {
		free(set);
		return NULL;
	}
	return set;
}

/* remove: the instances too; else others continue them. */
static void set_free(struct kernel_set *set, bool remove)
{
	struct kernel_event *e, *tmp;

	set->channel->kernel_bytes = 0;
	if (remove && *set->main.name && kernel->fs.root >= 0) {
		removal_add(kernel, &set->main, &set->tasks);
		removals_run(kernel);
	} else {
		instance_close(&set->main);
		instance_close(&set->tasks);
	}
	ky_list_foreach_safe (e, tmp, &set->events, node)
		kernel_event_free(e);
	ky_close(set->memory_fd);
	tracker_deinit(&set->tracked);
	free(set->task_fields);
	free(set->probes);
	probes_forget_files(&set->probe_files);
	free(set);
}

static void drop_set(struct channel *c, bool remove)
{
	if (c->kernel)
		set_free(c->kernel, remove);
	c->kernel = NULL;
}

void kernel_set_drop(struct channel *c)
{
	drop_set(c, true);
}

void kernel_end(struct session *s)
{
	struct channel *c;

	ky_list_foreach (c, &s->channels, node)
		drop_set(c, true);
	s->samples = samples_free(s->samples);
}

/* Forgets the sets of a session that a successor of the daemon continues, or that is lost. */
static void session_freed(struct session *s)
{
	struct channel *c;

	ky_list_foreach (c, &s->channels, node)
		drop_set(c, !s->env->handing_over);
	s->samples = samples_free(s->samples);
}

/* Finds out how the kernel describes new threads and names. They are recorded in their own instance
 * only. */
int kernel_set_follow(struct kernel_set *set)
{
	_cleanup_free_ char *newtask = tracefs_read(set->tasks.dir, NEWTASK "format");
	_cleanup_free_ char *rename = tracefs_read(set->tasks.dir, RENAME "format");
	int ret = newtask && rename ? ky_ktasks_make(set->task_fields, newtask, rename) : -ENOENT;

	if (!ret)
		ret = tracefs_write(set->tasks.dir, NEWTASK "enable", "1");
	return ret ? ret : tracefs_write(set->tasks.dir, RENAME "enable", "1");
}

static int make_instances(struct kernel_set *set, char why[KERNEL_WHY_MAX])
{
	const struct channel *c = set->channel;
	char name[INSTANCE_MAX];
	struct instance_spec spec = {
		.name = name,
		.clock = c->session->clock.clock,
		.n_cpus = c->session->env->n_cpus,
		.subbuf_size = KY_MIN(c->subbuf_size, SUBBUF_MOST),
		.buffer_size = (uint64_t)c->subbuf_size * c->num_subbuf,
		.overwrite = c->overwrite,
	};
	int ret;

	snprintf(name, sizeof(name), "kymo-%08x-%u", kernel->daemon, set->number);
	ret = instance_make(&set->main, &kernel->fs, &spec, why);
	if (ret < 0)
		return ret;
	snprintf(name, sizeof(name), "kymo-%08x-%u" INSTANCE_TASKS, kernel->daemon, set->number);
	spec.subbuf_size = (uint32_t)getpagesize();
	spec.buffer_size = TASKS_BUFFER;
	spec.overwrite = false;
	spec.follows = true;
	ret = instance_make(&set->tasks, &kernel->fs, &spec, why);
	if (ret < 0)
		return ret;
	ret = kernel_set_follow(set);
	if (ret < 0)
		snprintf(why, KERNEL_WHY_MAX, "this kernel does not report new threads: %s",
			strerror(-ret));
	return ret;
}

static int make_memory(struct kernel_set *set)
{
	uint64_t size = ky_kernel_memory_size(set->main.n_cpus, set->main.subbuf_size);
	int fd = memfd_create("kymo-kernel", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -errno;
	set->memory_fd = fd;
	if (ftruncate(fd, (off_t)size) < 0 ||
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return -errno;
	return 0;
}

/* Describes the stream, and the events of state dumps. */
static int describe_set(struct kernel_set *set)
{
	struct ky_buf text = {0};
	int ret;

	set->stream_id = set->registry->n_streams++;
	ky_tsdl_stream(&text, set->stream_id, KY_SET_PER_CPU, false);
	statedump_describe(&text, set->stream_id);
	if (!text.error)
		OBSERVE(kernel->env, kernel_set_numbered, set, text.data);
	ret = registry_append(set->registry, &text);
	ky_buf_deinit(&text);
	return ret;
}

/* Numbers of CPUs have gaps, and a CPU may be offline: "0-3,6". */
static uint32_t first_online(void)
{
	FILE *f = fopen("/sys/devices/system/cpu/online", "re");
	unsigned first = 0;

	if (f && fscanf(f, "%u", &first) != 1)
		first = 0;
	if (f)
		fclose(f);
	return first;
}

/* Returns the bytes of the channel's buffers in the kernel, and of the consumer's copy. */
static uint64_t need_of(const struct channel *c)
{
	uint32_t subbuf_size = KY_MIN(c->subbuf_size, SUBBUF_MOST);
	uint64_t each = (uint64_t)c->subbuf_size * c->num_subbuf + TASKS_BUFFER;

	return c->session->env->n_cpus * (each + ky_kernel_cpu_size(subbuf_size));
}

/* Charges the buffers to the session's user. */
static int charge_buffers(struct channel *c, char why[KERNEL_WHY_MAX])
{
	uint64_t need = need_of(c);

	if (!quota_allows(kernel->env, c->session->uid, need)) {
		snprintf(why, KERNEL_WHY_MAX,
			"the buffers of channel '%s' need %llu MiB, and user %u would have more than one may: choose a smaller --subbuf-size or --num-subbuf ('kymo-sessiond --max-memory-per-user')",
			c->name, (unsigned long long)need >> 20, (unsigned)c->session->uid);
		return -EDQUOT;
	}
	c->kernel_bytes = need;
	return 0;
}

static int set_fill(struct kernel_set *set, char why[KERNEL_WHY_MAX])
{
	struct session *s = set->channel->session;
	int ret = charge_buffers(set->channel, why);

	if (!ret)
		ret = make_instances(set, why);
	set->dump_cpu = first_online();
	set->may_map = !ret && instance_can_map(&set->main);
	if (!ret && set->channel->overwrite && !set->may_map) {
		snprintf(why, KERNEL_WHY_MAX,
			"this kernel does not let its buffers be copied while it records (Linux 6.10 does): use --discard");
		ret = -EOPNOTSUPP;
	}
	if (!ret)
		ret = make_memory(set);
	if (!ret)
		ret = registry_get(s, 0, KERNEL_ABI, &set->registry);
	if (!ret)
		ret = describe_set(set);
	if (ret < 0 && !*why)
		snprintf(why, KERNEL_WHY_MAX, "cannot make a kernel channel: %s", strerror(-ret));
	return ret;
}

int kernel_set_make(struct channel *c, char why[KERNEL_WHY_MAX])
{
	struct kernel_set *set;
	int ret;

	*why = '\0';
	if (c->kernel)
		return 0;
	ret = tracefs_open(&kernel->fs, why);
	if (ret < 0)
		return ret;
	set = set_new(c, env_next_number(kernel->env));
	if (!set) {
		snprintf(why, KERNEL_WHY_MAX, "the session daemon has no memory left");
		return -ENOMEM;
	}
	ret = set_fill(set, why);
	if (ret < 0) {
		set_free(set, true);
		return ret;
	}
	c->kernel = set;
	OBSERVE(kernel->env, kernel_set_made, set);
	return 0;
}

struct kernel_set *kernel_set_find(const struct session *s, uint32_t number)
{
	const struct channel *c;

	ky_list_foreach (c, &s->channels, node)
		if (c->kernel && c->kernel->number == number)
			return c->kernel;
	return NULL;
}

struct kernel_set *kernel_set_restore(struct channel *c, uint32_t number, const char *instance)
{
	struct kernel_set *set = c->kernel ? NULL : set_new(c, number);

	if (!set)
		return NULL;
	snprintf(set->main.name, sizeof(set->main.name), "%s", instance);
	set->dump_cpu = first_online();
	c->kernel_bytes = need_of(c);
	c->kernel = set;
	return set;
}

int kernel_channel_init(struct channel *c)
{
	struct ky_context tid = {.type = ky_kcontext_find("tid"), .spec = "tid", .name = "tid"};

	channel_set_kernel(c);
	return channel_add_contexts(c, &tid, 1);
}

bool session_has_kernel(const struct session *s)
{
	const struct channel *c;

	ky_list_foreach (c, &s->channels, node)
		if (c->kernel)
			return true;
	return false;
}

/* --- recording --- */

static void report_threads(void *arg, const struct kernel_set *set, const struct ky_bytes *threads)
{
	OBSERVE(kernel->env, kernel_threads_found, set, threads);
}

static bool has_all(const struct tracker *t, const struct tracker *of)
{
	for (uint32_t i = 0; i < of->n; i++)
		if (!tracker_has(t, of->values[i]))
			return false;
	return true;
}

static void put_threads(struct ky_buf *b, uint32_t pid)
{
	const struct dirent *entry;
	char path[32];
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	d = opendir(path);
	while (d && (entry = readdir(d)))
		if (isdigit((unsigned char)*entry->d_name))
			ky_buf_printf(b, "%s ", entry->d_name);
	if (d)
		closedir(d);
}

/*
 * Adds the threads of the processes, because the kernel's list is one of threads. It adds what they
 * create from then on itself; a thread that was not in the list yet may have created others
 * meanwhile, so the threads are looked up until they are the same.
 */
static int write_threads(const struct kernel_set *set, const struct tracker *t)
{
	struct ky_buf before = {0}, now = {0};
	int ret = 0;

	for (unsigned i = 0; i < THREADS_TRIES && !ret; i++) {
		for (uint32_t k = 0; k < t->n; k++)
			put_threads(&now, t->values[k]);
		ret = now.error;
		if (now.len == before.len && (!now.len || !memcmp(now.data, before.data, now.len)))
			break;
		if (!ret && now.len)
			ret = tracefs_append(set->main.dir, "set_event_pid", now.data);
		ky_buf_deinit(&before);
		before = now;
		now = (struct ky_buf){0};
	}
	ky_buf_deinit(&before);
	ky_buf_deinit(&now);
	return ret;
}

static int write_pids(const struct kernel_set *set, const struct tracker *t, bool add)
{
	struct ky_buf pids = {0};
	int ret;

	for (uint32_t i = 0; t->narrowed && i < t->n; i++)
		ky_buf_printf(&pids, "%u ", t->values[i]);
	ret = pids.error;
	if (!ret && (pids.len || !add))
		ret = (add ? tracefs_append : tracefs_write)(
			set->main.dir, "set_event_pid", pids.len ? pids.data : "");
	if (!ret)
		ret = tracefs_write(set->main.dir, "options/event-fork", pids.len ? "1" : "0");
	if (!ret && pids.len)
		ret = write_threads(set, t);
	ky_buf_deinit(&pids);
	return ret;
}

/* Lets the kernel record, or not. Returns 0, or -errno, after it has reported the error. */
static int switch_instance(const struct kernel_set *set, const struct instance *i, bool on)
{
	const struct channel *c = set->channel;
	int ret = instance_record(i, on);

	if (ret < 0)
		session_notice(c->session, "channel '%s': the kernel does not %s recording: %s",
			c->name, on ? "start" : "stop", strerror(-ret));
	return ret;
}

/*
 * Narrows the instance down to processes and the children that they will have. The kernel's list
 * can grow. Anything else empties it first, and an empty list means all processes, so nothing is
 * recorded meanwhile.
 */
static void set_narrow(struct kernel_set *set, const struct tracker *to)
{
	bool grows = set->tracked.narrowed && to->narrowed && has_all(to, &set->tracked);
	bool pauses = set->recording && !grows;
	int ret = 0;

	if (set->tracked.narrowed == to->narrowed && has_all(to, &set->tracked) &&
		has_all(&set->tracked, to))
		return;
	if (pauses)
		ret = switch_instance(set, &set->main, false);
	if (!ret)
		ret = write_pids(set, to, grows);
	if (pauses)
		set->recording = !switch_instance(set, &set->main, true);
	tracker_deinit(&set->tracked);
	if (!ret)
		ret = tracker_copy(&set->tracked, to);
	if (ret < 0)
		session_notice(set->channel->session,
			"channel '%s': the kernel refuses the list of processes that are tracked: %s",
			set->channel->name, strerror(-ret));
}

/* Makes the kernel record the stacks that the channel's contexts want. */
static void set_stacks(const struct kernel_set *set)
{
	const struct channel *c = set->channel;

	for (uint32_t i = 0; i < c->n_contexts; i++) {
		uint32_t kind = c->contexts[i].type->kind;
		const char *option = kind == KY_KCTX_CALLSTACK_KERNEL ? "options/stacktrace"
				     : kind == KY_KCTX_CALLSTACK_USER ? "options/userstacktrace"
								      : NULL;

		if (option && tracefs_write(set->main.dir, option, "1") < 0)
			session_notice(c->session, "this kernel does not record '%s'",
				c->contexts[i].spec);
		else if (kind == KY_KCTX_CALLSTACK_KERNEL)
			OBSERVE(kernel->env, kernel_stacks_wanted, set);
	}
}

static void set_record(struct kernel_set *set)
{
	uint64_t begin;

	set_stacks(set);
	kernel_events_check_files(set);
	kernel_events_apply(set);
	set_narrow(set, &set->channel->session->trackers[TRACK_PID]);
	switch_instance(set, &set->tasks, true);
	statedump_threads(set, report_threads, NULL);
	begin = ky_clock_read(set->channel->session->clock.clock);
	statedump_begin(set, begin);
	set->recording = !switch_instance(set, &set->main, true);
	statedump_send(set);
}

/* Switches the instance on again if another program has switched it off. */
static void check_recording(const struct kernel_set *set, const struct instance *i)
{
	if (instance_is_recording(i))
		return;
	session_notice(set->channel->session,
		"channel '%s': another program has switched off the tracefs instance %s: events since then are missing",
		set->channel->name, i->name);
	switch_instance(set, i, true);
}

/* A program that may write tracefs may change any instance. */
static void check_instances(struct kernel_set *set)
{
	const struct session *s = set->channel->session;
	unsigned n_disabled;
	bool kept;
	char other[32];

	if (!set->recording)
		return;
	kept = instance_keep_clock(&set->tasks, s->clock.clock, other, sizeof(other));
	kept = instance_keep_clock(&set->main, s->clock.clock, other, sizeof(other)) && kept;
	if (!kept)
		session_notice(set->channel->session,
			"channel '%s': another program has set the clock of the tracefs instance %s to '%s': events since then are missing or have wrong times",
			set->channel->name, set->main.name, other);
	check_recording(set, &set->main);
	check_recording(set, &set->tasks);
	kernel_events_check_files(set);
	n_disabled = kernel_events_check(set);
	if (n_disabled)
		session_notice(set->channel->session,
			"channel '%s': another program has disabled %u event%s of the tracefs instance %s: those since then are missing",
			set->channel->name, n_disabled, n_disabled == 1 ? "" : "s", set->main.name);
	/* It cannot falsify the count of lost events there. The consumer reports it. */
	instance_mark(&set->tasks, s->clock.clock);
}

/* Between two readings of one clock there may be a step of the kernel's adjustment. */
#define SLACK_OF_S 10000

void kernel_marker_found(struct session *s, uint32_t number, const struct ky_kmarker *m)
{
	const struct kernel_set *set = kernel_set_find(s, number);

	if (set && !ky_kmarker_agrees(m, s->clock.freq / SLACK_OF_S))
		session_notice(s,
			"channel '%s': the kernel's clock is no longer the session's (%llu is not between %llu and %llu): the order of kernel events and others is wrong",
			set->channel->name, (unsigned long long)m->at,
			(unsigned long long)m->before, (unsigned long long)m->after);
}

void kernel_check_instances(struct session *s)
{
	struct channel *c;

	ky_list_foreach (c, &s->channels, node)
		if (c->kernel)
			check_instances(c->kernel);
}

static void set_stop(struct kernel_set *set)
{
	static const struct tracker all;

	check_instances(set);
	switch_instance(set, &set->main, false);
	switch_instance(set, &set->tasks, false);
	set->recording = false;
	/* Numbers of processes are used again. */
	set_narrow(set, &all);
}

static bool is_wanted(const struct channel *c)
{
	const struct tracker *t = &c->session->trackers[TRACK_PID];

	return c->session->state == SESSION_STARTED && channel_is_active(c) &&
	       (!t->narrowed || t->n);
}

void kernel_channel_apply(struct channel *c)
{
	struct kernel_set *set = c->kernel;

	if (!set)
		return;
	if (!is_wanted(c)) {
		if (set->recording)
			set_stop(set);
		kernel_events_disable(set);
		return;
	}
	if (!set->recording) {
		set_record(set);
		return;
	}
	set_stacks(set);
	kernel_events_apply(set);
	set_narrow(set, &c->session->trackers[TRACK_PID]);
}

void kernel_prepare(struct session *s)
{
	char why[KERNEL_WHY_MAX];
	struct channel *c;

	ky_list_foreach (c, &s->channels, node)
		if (c->kernel && kernel_events_prepare(c, why) < 0)
			session_notice(s, "channel '%s': %s", c->name, why);
}

void kernel_apply(struct session *s)
{
	struct channel *c;

	ky_list_foreach (c, &s->channels, node)
		kernel_channel_apply(c);
}

void kernel_dump_state(struct session *s)
{
	struct channel *c;

	ky_list_foreach (c, &s->channels, node)
		if (c->kernel && c->kernel->recording) {
			statedump_begin(c->kernel, 0);
			statedump_send(c->kernel);
		}
}

static bool session_rests(struct session *s, uint64_t until_ns)
{
	struct channel *c;

	ky_list_foreach (c, &s->channels, node)
		if (c->kernel && !c->kernel->recording && !kernel_events_rest(c->kernel, until_ns))
			return false;
	return true;
}

/* The kernel takes long to disable a probe, so others are served in between. */
static void run_rest(struct ky_timer *t)
{
	const uint64_t until_ns = ky_clock_ns(CLOCK_MONOTONIC) + REST_PIECE_NS;
	struct kernel *k = ky_container_of(t, struct kernel, rest);
	struct session *s;

	ky_list_foreach (s, &k->env->sessions, node)
		if (s->state == SESSION_STOPPED && !session_rests(s, until_ns)) {
			ky_timer_set(&k->env->loop, t, REST_NS);
			return;
		}
}

void kernel_stop(struct session *s)
{
	struct channel *c;

	ky_list_foreach (c, &s->channels, node)
		if (c->kernel)
			set_stop(c->kernel);
	if (s->samples)
		samples_stop(s->samples);
	if (session_has_kernel(s))
		ky_timer_set(&kernel->env->loop, &kernel->rest, REST_NS);
}

/* --- the daemon's --- */

static void kernel_sweep(struct kernel *k)
{
	char why[KERNEL_WHY_MAX];
	int n;

	if (k->env->uid || tracefs_open(&k->fs, why) < 0)
		return;
	n = tracefs_sweep(k);
	if (n > 0)
		ky_info("removing %d tracefs instance%s of session daemons that died", n,
			n == 1 ? "" : "s");
	removals_run(k);
}

void kernel_init(struct kernel *k, struct env *e)
{
	kernel = k;
	*k = (struct kernel){.env = e, .fs = {.root = -1}};
	if (getrandom(&k->daemon, sizeof(k->daemon), 0) != sizeof(k->daemon))
		k->daemon = (uint32_t)getpid();
	removals_init(k);
	ky_timer_init(&k->rest, run_rest);
	k->observer = (struct observer){.session_freed = session_freed};
	ky_list_append(&e->observers, &k->observer.node);
	e->kernel = k;
}

void kernel_begin(struct kernel *k)
{
	kernel_sweep(k);
}

void kernel_deinit(struct kernel *k)
{
	ky_timer_cancel(&k->rest);
	removals_deinit(k);
	tracefs_close(&k->fs);
}
