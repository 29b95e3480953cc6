/* SPDX-License-Identifier: MIT */
/*
 * Mounts of the collector's mount namespace: kymo_mount:mount and, last, :mounts, in a state dump;
 * :added and :removed when the mounts change.
 *
 * The kernel reports only that the table has changed (poll of /proc/self/mountinfo). So the
 * collector keeps the table, sorted, and compares. It keeps the table only while a session records
 * the changes; otherwise it drops a table that is out of date. A session that begins to record gets
 * a state dump, which also reads the table. `lock` protects it: the main thread compares, libkymo's
 * thread runs state dumps.
 */
#include <fcntl.h>
#include <kymo/tracepoint.h>
#include <pthread.h>

#include "collectd/provider.h"
#include "collectd/text.h"
#include "svc/log.h"

#define PATH "/proc/self/mountinfo"

struct table {
	char *text;   /* NULL: not known. Lines end with NUL. */
	char **lines; /* sorted; n of them */
	size_t n;
};

/* The parts of a line. */
struct mount {
	char *id, *parent, *dev, *root, *point, *options, *type, *source, *super_options;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct table known;
static struct ky_watch watch;
static int fd = -1;

static void table_free(struct table *t)
{
	free(t->text);
	free(t->lines);
	*t = (struct table){0};
}

static int compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Reads the table. Returns false if that is not possible now. */
static bool table_read(struct table *t)
{
	char *line, *rest;
	size_t n = 0;

	*t = (struct table){.text = text_read_all(PATH)};
	for (const char *p = t->text; p && (p = strchr(p, '\n')); p++)
		n++;
	t->lines = t->text ? calloc(n + 1, sizeof(*t->lines)) : NULL;
	if (!t->lines) {
		table_free(t);
		return false;
	}
	for (line = strtok_r(t->text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		t->lines[t->n++] = line;
	qsort(t->lines, t->n, sizeof(*t->lines), compare_lines);
	return true;
}

/* Decodes blanks and similar characters, which are written as "\040". */
static void unescape(char *text)
{
	char *to = text;

	for (; *text; text++, to++) {
		*to = *text;
		if (*text != '\\' || strspn(text + 1, "01234567") < 3)
			continue;
		*to = (char)((text[1] - '0') << 6 | (text[2] - '0') << 3 | (text[3] - '0'));
		text += 3;
	}
	*to = '\0';
}

/*
 * Splits the line: "36 35 98:0 /root /point rw,noatime master:1 - ext3 /dev/sda1 rw". Missing parts
 * are empty.
 */
static void split_line(struct mount *m, char *line)
{
	char **const first[] = {&m->id, &m->parent, &m->dev, &m->root, &m->point, &m->options};
	char **const last[] = {&m->type, &m->source, &m->super_options};
	char *end = line + strlen(line), *part;

	for (size_t i = 0; i < KY_ARRAY_SIZE(first); i++)
		*first[i] = (part = strsep(&line, " ")) ? part : end;
	do
		part = strsep(&line, " "); /* how it is shared with other namespaces */
	while (part && strcmp(part, "-") != 0);
	for (size_t i = 0; i < KY_ARRAY_SIZE(last); i++)
		*last[i] = (part = strsep(&line, " ")) ? part : end;
	unescape(m->root);
	unescape(m->point);
	unescape(m->source);
}

static uint32_t number_of(const char *dev)
{
	unsigned major = 0, minor = 0;

	sscanf(dev, "%u:%u", &major, &minor);
	return kernel_dev(major, minor);
}

/* clang-format off */
KYMO_EVENT_CLASS(kymo_mount, of_mount, KYMO_ARGS(const struct mount *m),
	kymo_i32(mount_id, atoi(m->id)), kymo_i32(parent_id, atoi(m->parent)), kymo_u32(dev, number_of(m->dev)),
	kymo_string(root, m->root), kymo_string(mount_point, m->point), kymo_string(fs_type, m->type),
	kymo_string(source, m->source), kymo_string(options, m->options), kymo_string(super_options, m->super_options))
KYMO_EVENT_INSTANCE(kymo_mount, of_mount, mount, KYMO_DEBUG_LINE)
KYMO_EVENT_INSTANCE(kymo_mount, of_mount, added, KYMO_DEBUG_LINE)
KYMO_EVENT_INSTANCE(kymo_mount, of_mount, removed, KYMO_DEBUG_LINE)
/* clang-format on */

enum about { THERE, ADDED, REMOVED };

static void record_mount(enum about about, const char *line)
{
	_cleanup_free_ char *copy = strdup(line);
	struct mount m;

	if (!copy)
		return;
	split_line(&m, copy);
	if (about == THERE)
		kymo_trace(kymo_mount, mount, &m);
	else if (about == ADDED)
		kymo_trace(kymo_mount, added, &m);
	else
		kymo_trace(kymo_mount, removed, &m);
}

static bool changes_wanted(void)
{
	return kymo_trace_enabled(kymo_mount, added) || kymo_trace_enabled(kymo_mount, removed);
}

static void record_all(const struct table *t)
{
	for (size_t i = 0; i < t->n; i++)
		record_mount(THERE, t->lines[i]);
	kymo_event(kymo_mount, mounts, kymo_u32(n, (uint32_t)t->n));
}

/* Records the lines that are in only one of two sorted tables. */
static void record_difference(const struct table *old, const struct table *new)
{
	size_t i = 0, k = 0;

	while (i < old->n || k < new->n) {
		int order = i == old->n	  ? 1
			    : k == new->n ? -1
					  : strcmp(old->lines[i], new->lines[k]);

		if (order < 0)
			record_mount(REMOVED, old->lines[i]);
		else if (order > 0)
			record_mount(ADDED, new->lines[k]);
		i += order <= 0;
		k += order >= 0;
	}
}

/*
 * Records the current mounts. Does not change the known table, or the main thread would not see the
 * difference.
 */
static void record_state(void)
{
	struct table now;

	if (!changes_wanted() && !kymo_trace_enabled(kymo_mount, mount) &&
		!kymo_event_enabled(kymo_mount, mounts))
		return;
	pthread_mutex_lock(&lock);
	if (table_read(&now)) {
		record_all(&now);
		if (known.text)
			table_free(&now);
		else
			known = now;
	}
	pthread_mutex_unlock(&lock);
}

/*
 * Compares. If there is no table to compare with (a session got the rule later), records all
 * mounts.
 */
static void read_mounts(void)
{
	struct table now;

	if (!table_read(&now))
		return;
	if (known.text)
		record_difference(&known, &now);
	else
		record_all(&now);
	table_free(&known);
	known = now;
}

static void changed(struct ky_watch *w, uint32_t events)
{
	pthread_mutex_lock(&lock);
	if (changes_wanted())
		read_mounts();
	else
		table_free(&known);
	pthread_mutex_unlock(&lock);
}

static void mount_start(struct ky_loop *loop)
{
	int ret;

	fd = open(PATH, O_RDONLY | O_CLOEXEC);
	ret = fd < 0 ? -errno : ky_watch_add(loop, &watch, fd, EPOLLPRI, changed);
	if (ret < 0)
		ky_warning("cannot watch for changes of mounts (" PATH
			   ": %s): only those that exist when a session starts are recorded",
			strerror(-ret));
}

static void mount_stop(void)
{
	ky_watch_remove(&watch);
	fd = ky_close(fd);
	table_free(&known);
}

const struct provider mount_provider = {
	.name = "mount", .start = mount_start, .stop = mount_stop, .record_state = record_state};
