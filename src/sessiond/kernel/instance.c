/* SPDX-License-Identifier: MIT */
#include "sessiond/kernel/instance.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "kernel/marker.h"
#include "kernel/page.h"

#define PATH_OF "per_cpu/cpu%u/%s"
/* A daemon that sweeps needs some milliseconds for an instance. */
#define MAKE_TRIES    100
#define MAKE_PAUSE_NS 5000000

void instance_init(struct instance *i)
{
	*i = (struct instance){.dir = -1, .free_buffer = -1};
}

static int write_number(int dir, const char *path, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	return tracefs_write(dir, path, text);
}

static uint64_t read_number(int dir, const char *path)
{
	char *text = tracefs_read(dir, path);
	uint64_t value = text ? strtoull(text, NULL, 10) : 0;

	free(text);
	return value;
}

int instance_record(const struct instance *i, bool on)
{
	return write_number(i->dir, "tracing_on", on);
}

bool instance_is_recording(const struct instance *i)
{
	return read_number(i->dir, "tracing_on");
}

/* Numbers of sub-buffers are those of the kernel: its page, or what it says. */
static void read_sizes(struct instance *i)
{
	uint64_t kib = read_number(i->dir, "buffer_subbuf_size_kb");

	i->subbuf_size = kib ? (uint32_t)kib << 10 : (uint32_t)getpagesize();
	i->buffer_size = read_number(i->dir, "buffer_size_kb") << 10;
}

static int make_cpus(struct instance *i, uint32_t n_cpus)
{
	i->cpus = calloc(n_cpus, sizeof(*i->cpus));
	if (!i->cpus)
		return -ENOMEM;
	for (; i->n_cpus < n_cpus; i->n_cpus++)
		i->cpus[i->n_cpus] = (struct instance_cpu){-1, -1};
	return 0;
}

int instances_reopen(
	struct instance *main, struct instance *tasks, const struct tracefs *t, uint32_t n_cpus)
{
	char path[INSTANCE_MAX + sizeof(INSTANCES)];
	int ret = make_cpus(main, n_cpus);

	snprintf(tasks->name, sizeof(tasks->name), "%.40s" INSTANCE_TASKS, main->name);
	snprintf(path, sizeof(path), INSTANCES "%s", tasks->name);
	tasks->dir = tracefs_open_dir(t->root, path);
	if (!ret)
		ret = tasks->dir < 0 ? tasks->dir : make_cpus(tasks, n_cpus);
	if (ret < 0)
		return ret;
	read_sizes(main);
	read_sizes(tasks);
	return 0;
}

/* Returns whether the path leads to the open directory. */
static bool is_at(int root, const char *path, int dir)
{
	struct stat there, open;

	return !fstatat(root, path, &there, 0) && !fstat(dir, &open) && there.st_ino == open.st_ino;
}

/* Makes the directory. -EAGAIN: another daemon takes it for that of a dead one. */
static int try_make(struct instance *i, const struct tracefs *t, const char *path, bool lock)
{
	int ret = t->ops->make_dir(t->root, path);

	if (ret < 0)
		return ret;
	i->dir = tracefs_open_dir(t->root, path);
	if (i->dir == -ENOENT)
		return -EAGAIN;
	if (i->dir < 0) {
		t->ops->remove_dir(t->root, path);
		return i->dir;
	}
	if (!lock || (!flock(i->dir, LOCK_EX | LOCK_NB) && is_at(t->root, path, i->dir)))
		return 0;
	i->dir = ky_close(i->dir);
	return -EAGAIN;
}

/*
 * Makes the directory and locks it. Between the two, a daemon that starts may sweep it: then it is
 * made again when that daemon has removed it.
 */
static int make_locked(
	struct instance *i, const struct tracefs *t, const struct instance_spec *spec)
{
	char path[INSTANCE_MAX + sizeof(INSTANCES)];
	int ret;

	snprintf(path, sizeof(path), INSTANCES "%s", spec->name);
	ret = try_make(i, t, path, !spec->follows);
	for (int tries = 0; tries < MAKE_TRIES && (ret == -EAGAIN || (tries && ret == -EEXIST));
		tries++) {
		nanosleep(&(struct timespec){.tv_nsec = MAKE_PAUSE_NS}, NULL);
		ret = try_make(i, t, path, !spec->follows);
	}
	if (!ret)
		snprintf(i->name, sizeof(i->name), "%s", spec->name);
	return ret;
}

/* Returns what the kernel calls the clock, or NULL. */
static const char *clock_name(enum ky_clock clock)
{
	return clock == KY_CLOCK_TSC ? "x86-tsc" : clock == KY_CLOCK_MONOTONIC ? "mono" : NULL;
}

/* The kernel's own CLOCK_MONOTONIC is that of the initial time namespace. */
static const char *clock_advice(enum ky_clock clock)
{
	return clock == KY_CLOCK_MONOTONIC
		       ? "run the daemon in the initial time namespace"
		       : "start the daemon with KYMO_CLOCK=monotonic, and create the session again";
}

static int set_clock(const struct instance *i, enum ky_clock clock, char why[TRACEFS_WHY_MAX])
{
	const char *name = clock_name(clock);
	int ret = name ? tracefs_write(i->dir, "trace_clock", name) : -EOPNOTSUPP;

	if (ret < 0)
		snprintf(why, TRACEFS_WHY_MAX,
			"the kernel cannot stamp events with the session's clock: %s",
			clock_advice(clock));
	return ret;
}

/* The order matters: another clock, or another size of sub-buffers, clears the buffers. */
static int set_sizes(
	struct instance *i, const struct instance_spec *spec, char why[TRACEFS_WHY_MAX])
{
	uint32_t page = (uint32_t)getpagesize();
	int ret;

	i->subbuf_size = page;
	/* Linux 6.8; before, a sub-buffer is a page. */
	if (spec->subbuf_size > page &&
		!write_number(i->dir, "buffer_subbuf_size_kb", spec->subbuf_size >> 10))
		i->subbuf_size = (uint32_t)read_number(i->dir, "buffer_subbuf_size_kb") << 10;
	i->buffer_size = KY_MAX(spec->buffer_size, 2 * (uint64_t)i->subbuf_size);
	ret = write_number(i->dir, "buffer_size_kb", i->buffer_size >> 10);
	if (ret < 0)
		snprintf(why, TRACEFS_WHY_MAX,
			"the kernel cannot make buffers of %llu KiB for each CPU: %s: choose a smaller --subbuf-size or --num-subbuf",
			(unsigned long long)i->buffer_size >> 10, strerror(-ret));
	return ret;
}

static int set_options(struct instance *i, const struct instance_spec *spec)
{
	int ret = write_number(i->dir, "options/overwrite", spec->overwrite);

	tracefs_write(i->dir, "buffer_percent", "25"); /* Linux 5.0 */
	if (ret < 0 || spec->follows)
		return ret;
	ret = tracefs_write(i->dir, "options/disable_on_free", "1");
	i->free_buffer = openat(i->dir, "free_buffer", O_WRONLY | O_CLOEXEC);
	return i->free_buffer < 0 ? -errno : ret;
}

static int open_cpu_file(const struct instance *i, uint32_t cpu, const char *name)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), PATH_OF, cpu, name);
	fd = openat(i->dir, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Numbers of CPUs may have gaps. */
static int open_cpus(struct instance *i, uint32_t n_cpus)
{
	int ret = make_cpus(i, n_cpus);
	uint32_t n_open = 0;

	for (uint32_t k = 0; !ret && k < n_cpus; k++) {
		struct instance_cpu *c = &i->cpus[k];

		c->raw = open_cpu_file(i, k, "trace_pipe_raw");
		c->stats = open_cpu_file(i, k, "stats");
		if ((c->raw < 0 && c->raw != -ENOENT) || (c->stats < 0 && c->stats != -ENOENT))
			return KY_MIN(c->raw, c->stats);
		n_open += c->raw >= 0;
	}
	return ret || n_open ? ret : -ENODEV;
}

/* Returns whether the sub-buffer has the marker. */
static bool find_marker(const uint8_t *page, uint32_t size, struct ky_kmarker *m)
{
	struct ky_kwalk walk;
	const uint8_t *data;
	uint32_t len;

	if (!ky_kwalk_open(&walk, page, size))
		return false;
	while (ky_kwalk_next(&walk, &data, &len))
		if (ky_kmarker_read(m, data, len)) {
			m->at = walk.ts;
			return true;
		}
	return false;
}

static bool read_marker(const struct instance *i, struct ky_kmarker *m)
{
	uint8_t *page = malloc(i->subbuf_size);
	bool found = false;
	ssize_t n;

	for (uint32_t k = 0; page && k < i->n_cpus && !found; k++)
		while (!found && i->cpus[k].raw >= 0 &&
			(n = read(i->cpus[k].raw, page, i->subbuf_size)) > KY_KPAGE_HEADER)
			found = find_marker(page, (uint32_t)n, m);
	free(page);
	return found;
}

int instance_mark(const struct instance *i, enum ky_clock clock)
{
	char text[KY_KMARKER_SIZE];

	ky_kmarker_write(text, ky_clock_read(clock));
	return tracefs_append(i->dir, "trace_marker", text);
}

/*
 * Checks that the kernel's clock is the session's: a record of ours lies between two readings of
 * ours. No event is enabled yet, so nothing else is in the buffers, which are cleared then.
 */
static int check_clock(const struct instance *i, enum ky_clock clock, char why[TRACEFS_WHY_MAX])
{
	struct ky_kmarker m = {0};
	bool found;
	int ret = instance_record(i, true);

	if (!ret)
		ret = instance_mark(i, clock);
	m.after = ky_clock_read(clock);
	if (!ret)
		ret = instance_record(i, false);
	if (ret < 0)
		return ret;
	found = read_marker(i, &m);
	if (found && ky_kmarker_agrees(&m, 0))
		return tracefs_write(i->dir, "trace", "");
	snprintf(why, TRACEFS_WHY_MAX,
		"the kernel's clock is not the session's (%llu is not between %llu and %llu): %s",
		(unsigned long long)m.at, (unsigned long long)m.before, (unsigned long long)m.after,
		clock_advice(clock));
	return -EOPNOTSUPP;
}

/* The file has all names, the chosen one in brackets. */
bool instance_keep_clock(const struct instance *i, enum ky_clock clock, char *other, size_t size)
{
	const char *name = clock_name(clock);
	char *text = tracefs_read(i->dir, "trace_clock"), *chosen = text ? strchr(text, '[') : NULL;
	bool kept = true;

	if (chosen) {
		chosen[1 + strcspn(chosen + 1, "]")] = '\0';
		kept = !name || !strcmp(chosen + 1, name);
	}
	if (!kept) {
		snprintf(other, size, "%s", chosen + 1);
		tracefs_write(i->dir, "trace_clock", name);
	}
	free(text);
	return kept;
}

int instance_make(struct instance *i, const struct tracefs *t, const struct instance_spec *spec,
	char why[TRACEFS_WHY_MAX])
{
	int ret;

	instance_init(i);
	*why = '\0';
	ret = make_locked(i, t, spec);
	/* An instance is born recording. */
	if (!ret)
		ret = instance_record(i, false);
	if (!ret)
		ret = set_clock(i, spec->clock, why);
	if (!ret)
		ret = set_sizes(i, spec, why);
	if (!ret)
		ret = set_options(i, spec);
	if (!ret)
		ret = open_cpus(i, spec->n_cpus);
	if (!ret)
		ret = check_clock(i, spec->clock, why);
	if (!ret)
		return 0;
	if (!*why)
		snprintf(
			why, TRACEFS_WHY_MAX, "cannot make a tracefs instance: %s", strerror(-ret));
	if (*i->name)
		instance_remove(i, t);
	instance_close(i);
	return ret;
}

bool instance_can_map(const struct instance *i)
{
	size_t size = (size_t)getpagesize();
	void *p = MAP_FAILED;

	for (uint32_t k = 0; k < i->n_cpus && p == MAP_FAILED; k++)
		if (i->cpus[k].raw >= 0)
			p = mmap(NULL, size, PROT_READ, MAP_SHARED, i->cpus[k].raw, 0);
	if (p == MAP_FAILED)
		return false;
	munmap(p, size);
	return true;
}

void instance_close(struct instance *i)
{
	for (uint32_t k = 0; k < i->n_cpus; k++) {
		ky_close(i->cpus[k].raw);
		ky_close(i->cpus[k].stats);
	}
	free(i->cpus);
	i->cpus = NULL;
	i->n_cpus = 0;
	i->free_buffer = ky_close(i->free_buffer);
	i->dir = ky_close(i->dir);
}

void instance_silence(const struct instance *i)
{
	if (i->dir < 0)
		return;
	instance_record(i, false);
	tracefs_write(i->dir, "events/enable", "0");
}

int instance_remove(struct instance *i, const struct tracefs *t)
{
	char path[INSTANCE_MAX + sizeof(INSTANCES)];
	int dir = i->dir, ret;

	instance_silence(i);
	i->dir = -1;
	instance_close(i);
	snprintf(path, sizeof(path), INSTANCES "%s", i->name);
	ret = t->ops->remove_dir(t->root, path);
	/* Locked until it is removed: a daemon that has just made it would use it. */
	if (ret == -EBUSY)
		i->dir = dir;
	else
		ky_close(dir);
	return ret;
}
