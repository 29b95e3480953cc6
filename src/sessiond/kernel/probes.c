/* SPDX-License-Identifier: MIT */
#include "sessiond/kernel/probes.h"

#include <ctype.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/glob.h"

#define DEFINITIONS   "dynamic_events"
#define MESSAGE_MAX   192
#define FUNCTIONS     "available_filter_functions"
#define FUNCTIONS_MAX 1000
#define CACHED_TRIES  100
#define PIECE	      4 /* definitions that are removed without a look at the time */
#define RETURN_VALUE  " ret=$retval"
/*
 * So many threads can be in a function at once, and the kernel still sees the exit of each. Without
 * a number, it takes twice the number of CPUs, and misses the exits of the other threads.
 */
#define RETURNS_MAX "1024"
#define OURS	    "kymo_[0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f]_*"

const char *probes_group(const char *instance, char buf[PROBES_GROUP_MAX])
{
	snprintf(buf, PROBES_GROUP_MAX, "%s", instance);
	for (char *p = buf; *p; p++)
		if (*p == '-')
			*p = '_';
	return buf;
}

bool probes_is_of(const char *lines, const char *name)
{
	size_t n = strlen(name);
	const char *at;

	for (; *lines; lines += strspn(lines, "\n")) {
		at = lines + strcspn(lines, ":\n");
		if (*at == ':' && !strncmp(at + 1, name, n) && at[1 + n] == ' ')
			return true;
		lines += strcspn(lines, "\n");
	}
	return false;
}

/*
 * Calls each with "GROUP/NAME" for the definitions: lines as "p:kymo_1f2e3d4c_2/name PLACE ARGS",
 * where a number may follow the letter.
 */
static void each_definition(const struct tracefs *t,
	void (*each)(const struct tracefs *t, const char *name, void *arg), void *arg)
{
	char *text = tracefs_read(t->root, DEFINITIONS), *line, *rest = text, *name;

	while (rest && (line = strsep(&rest, "\n"))) {
		name = strchr(line, ':');
		if (!name)
			continue;
		name[strcspn(name, " ")] = '\0';
		each(t, name + 1, arg);
	}
	free(text);
}

/* Several definitions of a name follow each other. */
static void remove_later(struct probes_removal *r, const char *name)
{
	char line[2 * PROBES_GROUP_MAX + 8];
	size_t n = (size_t)snprintf(line, sizeof(line), "-:%s\n", name);

	if (n >= sizeof(line)) /* none of ours */
		return;
	if (r->lines.len < n ||
		memcmp((const char *)r->lines.data + r->lines.len - n, line, n) != 0)
		ky_buf_puts(&r->lines, line);
}

/*
 * Removes those of the first bytes by one write, because the kernel waits for all CPUs at each. A
 * line that it refuses ends the write: then each is written alone.
 */
static void remove_first(const struct tracefs *t, struct probes_removal *r, size_t n_bytes)
{
	char *copy = strndup(r->lines.data, n_bytes), *rest = copy, *line;
	char text[2 * PROBES_GROUP_MAX + 8];

	if (!copy || !tracefs_append(t->root, DEFINITIONS, copy))
		rest = NULL;
	while ((line = strsep(&rest, "\n")) && *line) {
		snprintf(text, sizeof(text), "%s\n", line);
		if (tracefs_append(t->root, DEFINITIONS, text) == -EBUSY)
			ky_buf_puts(&r->used, text);
	}
	free(copy);
	ky_buf_consume(&r->lines, n_bytes);
}

static void remove_now(const struct tracefs *t, struct probes_removal *r)
{
	if (r->lines.len)
		remove_first(t, r, r->lines.len);
	ky_buf_deinit(&r->lines);
	ky_buf_deinit(&r->used);
}

/* Disables the event of a line "-:GROUP/NAME". Returns the bytes of the line. */
static size_t disable_probe(int dir, const char *line)
{
	const size_t n = strcspn(line, "\n");
	char path[TRACEFS_PATH_MAX];

	snprintf(path, sizeof(path), "events/%.*s/enable", (int)n - 2, line + 2);
	tracefs_write(dir, path, "0");
	return n + 1;
}

bool probes_remove_some(
	const struct tracefs *t, int dir, struct probes_removal *r, uint64_t until_ns)
{
	size_t n;

	while (r->lines.len && ky_clock_ns(CLOCK_MONOTONIC) < until_ns) {
		n = 0;
		for (unsigned i = 0; i < PIECE && n < r->lines.len; i++)
			n += disable_probe(dir, r->lines.data + n);
		remove_first(t, r, n);
	}
	return !r->lines.len;
}

bool probes_list_used(struct probes_removal *r)
{
	ky_buf_deinit(&r->lines);
	r->lines = r->used;
	r->used = (struct ky_buf){0};
	return r->lines.len > 0;
}

static void add_of_group(const struct tracefs *t, const char *name, void *removal)
{
	struct probes_removal *r = removal;
	const char *group = r->arg;
	size_t n = strlen(group);

	if (!strncmp(name, group, n) && name[n] == '/')
		remove_later(r, name);
}

void probes_list_group(const struct tracefs *t, const char *instance, struct probes_removal *r)
{
	char group[PROBES_GROUP_MAX];

	*r = (struct probes_removal){.arg = probes_group(instance, group)};
	each_definition(t, add_of_group, r);
	r->arg = NULL;
}

/* kymo_1f2e3d4c_2 belongs to kymo-1f2e3d4c-2. */
static void add_orphan(const struct tracefs *t, const char *name, void *removal)
{
	char instance[PROBES_GROUP_MAX];
	struct probes_removal *r = removal;

	snprintf(instance, sizeof(instance), "%.*s", (int)strcspn(name, "/"), name);
	if (fnmatch(OURS, instance, 0) != 0)
		return;
	for (char *p = instance; *p; p++)
		if (*p == '_')
			*p = '-';
	if (!tracefs_has(*(const int *)r->arg, instance))
		remove_later(r, name);
}

void probes_list_orphans(const struct tracefs *t, int instances, struct probes_removal *r)
{
	*r = (struct probes_removal){.arg = &instances};
	each_definition(t, add_orphan, r);
	r->arg = NULL;
}

/* The option that a kernel without such probes was built without. */
static const char *config_of(const char *line)
{
	return *line == 'p' && strchr(line, '/') ? "CONFIG_UPROBE_EVENTS"
	       : *line == 'f'			 ? "CONFIG_FPROBE_EVENTS"
						 : "CONFIG_KPROBE_EVENTS";
}

static bool file_has(const struct tracefs *t, const char *path, const char *text)
{
	char *all = tracefs_read(t->root, path);
	bool has = all && strstr(all, text);

	free(all);
	return has;
}

static bool has_fprobes(const struct tracefs *t)
{
	return file_has(t, "README", "f[:[<group>/]");
}

int probes_check(const struct tracefs *t, const char *line, char *why, size_t why_size)
{
	bool is_there = *line == 'f'	    ? has_fprobes(t)
			: strchr(line, '/') ? tracefs_has(t->root, "uprobe_events")
					    : tracefs_has(t->root, "kprobe_events");

	if (is_there && tracefs_has(t->root, DEFINITIONS))
		return 0;
	snprintf(why, why_size, "this kernel has no probes of %s (%s)",
		strchr(line, '/') ? "programs" : "itself", config_of(line));
	return -EOPNOTSUPP;
}

/* Events have names of letters, digits and '_': others become '_'. */
static void put_name(struct ky_buf *to, const char *function)
{
	for (; *function; function++)
		ky_buf_printf(to, "%c",
			isalnum((unsigned char)*function) ? (unsigned char)*function : '_');
}

static void put_function(struct ky_buf *to, const char *function, bool fprobes)
{
	ky_buf_printf(to, "%c:", fprobes ? 'f' : 'p');
	put_name(to, function);
	ky_buf_printf(to, "_entry %s\n%c" RETURNS_MAX ":", function, fprobes ? 'f' : 'r');
	put_name(to, function);
	ky_buf_printf(to, "_exit %s%s" RETURN_VALUE "\n", function, fprobes ? "%return" : "");
}

/* Stores the functions that match, or FUNCTIONS_MAX + 1 of them. Returns their number. */
static int find_functions(const char *pattern, char *text, const char *ret[FUNCTIONS_MAX + 1])
{
	char *function;
	int n = 0;

	/* lines as "name" or "name [module]" */
	while (n <= FUNCTIONS_MAX && (function = strsep(&text, "\n"))) {
		function[strcspn(function, " \t")] = '\0';
		if (*function && ky_glob_match(pattern, function))
			ret[n++] = function;
	}
	return n;
}

/* Returns the number of functions of this name. */
static int count_of_name(const char *const *functions, int n, const char *name)
{
	int n_same = 0;

	for (int i = 0; i < n; i++)
		n_same += !strcmp(functions[i], name);
	return n_same;
}

/*
 * The kernel finds places by names, so it refuses one that several functions have: among those that
 * match a pattern, these are left out.
 */
static int put_functions(struct ky_buf *lines, const char *const *functions, int n,
	const char *pattern, bool fprobes)
{
	int n_put = 0;

	for (int i = 0; i < n; i++) {
		bool is_one = !strcmp(functions[i], pattern);

		if (is_one ? n_put > 0 : count_of_name(functions, n, functions[i]) > 1)
			continue;
		put_function(lines, functions[i], fprobes);
		n_put++;
	}
	return n_put;
}

int probes_of_functions(const struct tracefs *t, const char *pattern, struct ky_buf *lines,
	char *why, size_t why_size)
{
	_cleanup_free_ char *text = tracefs_read(t->root, FUNCTIONS);
	const char *functions[FUNCTIONS_MAX + 1];
	int n;

	if (!text) {
		n = -errno;
		snprintf(why, why_size, "this kernel does not name its functions (%s)",
			"CONFIG_DYNAMIC_FTRACE");
		return n;
	}
	n = find_functions(pattern, text, functions);
	if (n > FUNCTIONS_MAX) {
		snprintf(why, why_size,
			"more than %d functions of the kernel match '%s': choose a narrower pattern",
			FUNCTIONS_MAX, pattern);
		return -E2BIG;
	}
	n = put_functions(lines, functions, n, pattern, has_fprobes(t));
	if (n)
		return n;
	snprintf(why, why_size,
		"this kernel has no function that matches '%s', or none that can be probed",
		pattern);
	return -ENOENT;
}

/* Explains a refused definition: the kernel's message, or the option that it was built without. */
static void explain_refusal(const struct tracefs *t, const char *line, int error,
	const char *earlier, char *why, size_t size)
{
	const char *name = line + strcspn(line, ":") + 1, *text;
	const int n = (int)strcspn(name, " ");
	char message[MESSAGE_MAX];

	if (probes_check(t, line, why, size) < 0)
		return;
	tracefs_last_error(t, message, sizeof(message));
	text = strstr(message, "error: ");
	if (text && strcmp(message, earlier) != 0)
		snprintf(why, size, "the kernel refuses the probe '%.*s': %s", n, name,
			text + strlen("error: "));
	else
		snprintf(why, size, "the kernel refuses the probe '%.*s': %s", n, name,
			strerror(-error));
}

void probes_identify(const struct statx *st, char buf[PROBES_FILE_MAX])
{
	snprintf(buf, PROBES_FILE_MAX, "<%x.%x:%llx:%llx.%x>", st->stx_dev_major, st->stx_dev_minor,
		(unsigned long long)st->stx_ino, (unsigned long long)st->stx_ctime.tv_sec,
		st->stx_ctime.tv_nsec);
}

bool probes_is_identity(const char *text)
{
	size_t n = *text == '<' ? strspn(text + 1, "0123456789abcdef:.") : 0;

	return n && !strcmp(text + 1 + n, ">");
}

/*
 * Opens a file that was read lately: waits for no file system, which could be one that a program
 * serves. The kernel also refuses while another process mounts something, which takes less than
 * these tries.
 */
static int open_cached(const char *path)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_MAGICLINKS | RESOLVE_CACHED};
	int fd, n = 0;

	do
		fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
	while (fd < 0 && errno == EAGAIN && ++n < CACHED_TRIES);
	return fd;
}

/*
 * Opens the file of a definition that says which one: "<...>/PATH:0x1234 ARGUMENTS". Sets *ret_rest
 * to what follows the path. Returns -ESTALE if the path leads to another file, or to one that was
 * not read lately.
 */
static int open_identified(const char *place, const char **ret_rest)
{
	const char *path = strchr(place, '>') + 1, *end = path + strcspn(path, " ");
	char copy[PATH_MAX], identity[PROBES_FILE_MAX];
	struct statx st;
	int fd;

	end = memrchr(path, ':', (size_t)(end - path));
	if (!end || snprintf(copy, sizeof(copy), "%.*s", (int)(end - path), path) >= PATH_MAX)
		return -EINVAL;
	fd = open_cached(copy);
	if (fd < 0)
		return errno == EAGAIN || errno == ENOENT ? -ESTALE : -errno;
	*ret_rest = end;
	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &st) < 0)
		st = (struct statx){0};
	probes_identify(&st, identity);
	if (!strncmp(place, identity, strlen(identity)))
		return fd;
	close(fd);
	return -ESTALE;
}

/* Writes the definition, in which an open file takes the place of its path. */
static int write_definition(const struct tracefs *t, const char *group, const char *line)
{
	const char *name = line + strcspn(line, ":") + 1, *place = name + strcspn(name, " ") + 1;
	const char *rest = place;
	int ret, fd = *place == '<' ? open_identified(place, &rest) : -1;
	char file[32] = "", *text;

	if (*place == '<' && fd < 0)
		return fd;
	if (fd >= 0)
		snprintf(file, sizeof(file), "/proc/self/fd/%d", fd);
	ret = asprintf(&text, "%.*s%s/%.*s%s%s\n", (int)(name - line), line, group,
		(int)(place - name), name, file, rest);
	if (ret >= 0) {
		ret = tracefs_append(t->root, DEFINITIONS, text);
		free(text);
	} else {
		ret = -ENOMEM;
	}
	ky_close(fd);
	return ret;
}

/*
 * Writes the definition of a function's exit with less, until the kernel accepts it: newer kernels
 * know that a function has no value, and may not take the number.
 */
static int write_less(const struct tracefs *t, const char *group, const char *line, int ret)
{
	const char *rest = line + strcspn(line, ":"), *value = strstr(rest, RETURN_VALUE);
	char *text;

	for (unsigned less = 1; value && ret < 0 && less < 4; less++) {
		if (asprintf(&text, "%c%s%.*s%s", *line, less & 2 ? "" : RETURNS_MAX,
			    (int)(value - rest), rest, less & 1 ? "" : value) < 0)
			return -ENOMEM;
		ret = write_definition(t, group, text);
		free(text);
	}
	return ret;
}

/* Defines one probe. Returns 0, or -errno with one line in why. */
static int define(
	const struct tracefs *t, const char *instance, const char *line, char *why, size_t why_size)
{
	char group[PROBES_GROUP_MAX], earlier[MESSAGE_MAX];
	int ret;

	tracefs_last_error(t, earlier, sizeof(earlier));
	ret = write_definition(t, probes_group(instance, group), line);
	ret = write_less(t, group, line, ret);
	if (ret == -ESTALE)
		snprintf(why, why_size,
			"the probe's file was changed meanwhile: remove the rule ('kymo disable-event -k --remove'), and enable it again");
	else if (ret < 0)
		explain_refusal(t, line, ret, earlier, why, why_size);
	return ret;
}

/* Returns whether the first line of a text is one of the lines. */
static bool has_line(const char *lines, const char *line)
{
	size_t n = strcspn(line, "\n");

	for (; lines && *lines; lines += strcspn(lines, "\n"), lines += *lines == '\n')
		if (strcspn(lines, "\n") == n && !strncmp(lines, line, n))
			return true;
	return false;
}

bool probes_are_known(const char *known, const char *lines)
{
	for (; *lines; lines += strcspn(lines, "\n"), lines += *lines == '\n')
		if (!has_line(known, lines))
			return false;
	return true;
}

/* Writes the name of the event that the line defines. */
static void name_of(const char *line, char name[PROBES_GROUP_MAX])
{
	const char *at = line + strcspn(line, ":");

	at += *at == ':';
	snprintf(name, PROBES_GROUP_MAX, "%.*s", (int)strcspn(at, " "), at);
}

static void remove_lines(const struct tracefs *t, const char *instance, char *lines)
{
	char group[PROBES_GROUP_MAX], name[PROBES_GROUP_MAX], full[2 * PROBES_GROUP_MAX + 1];
	struct probes_removal r = {0};
	char *line;

	while ((line = strsep(&lines, "\n"))) {
		if (!*line)
			continue;
		name_of(line, name);
		snprintf(full, sizeof(full), "%s/%s", probes_group(instance, group), name);
		remove_later(&r, full);
	}
	remove_now(t, &r);
}

/* Defines the lines that are not known. Appends them to `added`. */
static int define_new(const struct tracefs *t, const char *instance, char *lines, const char *known,
	struct ky_buf *added, char *why, size_t why_size)
{
	char name[PROBES_GROUP_MAX], *line;
	int ret = 0;

	while (!ret && (line = strsep(&lines, "\n"))) {
		if (!*line || has_line(known, line))
			continue;
		name_of(line, name);
		if (known && probes_is_of(known, name)) {
			snprintf(why, why_size,
				"the session has had an event '%s' at another place: give this one another name",
				name);
			return -EEXIST;
		}
		ret = define(t, instance, line, why, why_size);
		if (!ret)
			ky_buf_printf(added, "%s\n", line);
	}
	return ret ? ret : added->error;
}

/* Appends texts to *known. Returns 0 or -ENOMEM. */
static int extend_text(char **known, const char *by)
{
	char *all;

	if (asprintf(&all, "%s%s", *known ? *known : "", by) < 0)
		return -ENOMEM;
	free(*known);
	*known = all;
	return 0;
}

int probes_find(const struct tracefs *t, const char *instance, const char *lines, char **known)
{
	char group[PROBES_GROUP_MAX], name[PROBES_GROUP_MAX], path[3 * PROBES_GROUP_MAX];
	struct ky_buf found = {0};
	int ret;

	for (size_t n; *lines; lines += n + (lines[n] == '\n')) {
		n = strcspn(lines, "\n");
		name_of(lines, name);
		snprintf(path, sizeof(path), "events/%s/%s", probes_group(instance, group), name);
		if (n && tracefs_has(t->root, path))
			ky_buf_printf(&found, "%.*s\n", (int)n, lines);
	}
	ret = found.error;
	if (!ret && found.len)
		ret = extend_text(known, found.data);
	ky_buf_deinit(&found);
	return ret;
}

int probes_define(const struct tracefs *t, const char *instance, const char *lines, char **known,
	char *why, size_t why_size)
{
	char *copy = strdup(lines);
	struct ky_buf added = {0};
	int ret = copy ? define_new(t, instance, copy, *known, &added, why, why_size) : -ENOMEM;

	if (!ret && added.len)
		ret = extend_text(known, added.data);
	if (ret < 0 && added.data)
		remove_lines(t, instance, added.data);
	ky_buf_deinit(&added);
	free(copy);
	return ret;
}

/* --- files --- */

/* Writes the path of the program that the line names. Returns false if it names none. */
static bool path_of(const char *line, char path[PATH_MAX])
{
	const char *end = line + strcspn(line, "\n"), *at = memchr(line, ' ', (size_t)(end - line));
	const char *word_end, *colon;

	if (!at)
		return false;
	at += 1 + (at[1] == '<' ? strcspn(at + 1, ">\n") + 1 : 0);
	word_end = at + strcspn(at, " \n");
	colon = *at == '/' ? memrchr(at, ':', (size_t)(word_end - at)) : NULL;
	return colon && snprintf(path, PATH_MAX, "%.*s", (int)(colon - at), at) < PATH_MAX;
}

/* Finds out which file it is. Returns false if the path leads to none that was read lately. */
static bool identify_file(struct probes_file *f)
{
	int fd = open_cached(f->path);
	struct statx st;
	bool ok = fd >= 0 &&
		  !statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &st);

	ky_close(fd);
	if (!ok)
		return false;
	f->major = st.stx_dev_major;
	f->minor = st.stx_dev_minor;
	f->inode = st.stx_ino;
	return true;
}

static struct probes_file *find_file(const struct probes_files *files, const char *name)
{
	for (size_t i = 0; i < files->n; i++)
		if (!strcmp(files->v[i].name, name))
			return &files->v[i];
	return NULL;
}

static int note_file(struct probes_files *files, const char *name, const char *path)
{
	struct probes_file f = {.path = strdup(path)}, *grown;

	grown = f.path ? realloc(files->v, (files->n + 1) * sizeof(*grown)) : NULL;
	if (grown)
		files->v = grown;
	if (!grown || !identify_file(&f)) {
		free(f.path);
		return grown ? 0 : -ENOMEM;
	}
	snprintf(f.name, sizeof(f.name), "%s", name);
	files->v[files->n++] = f;
	return 0;
}

int probes_note_files(struct probes_files *files, const char *lines)
{
	char name[PROBES_GROUP_MAX], path[PATH_MAX];
	int ret = 0;

	for (; *lines && !ret; lines += strcspn(lines, "\n"), lines += *lines == '\n') {
		name_of(lines, name);
		if (path_of(lines, path) && !find_file(files, name))
			ret = note_file(files, name, path);
	}
	return ret;
}

const char *probes_replaced(struct probes_files *files, const char *name)
{
	struct probes_file *f = find_file(files, name), before;

	if (!f)
		return NULL;
	before = *f;
	return identify_file(f) && (f->inode != before.inode || f->major != before.major ||
					   f->minor != before.minor)
		       ? f->path
		       : NULL;
}

void probes_forget_files(struct probes_files *files)
{
	while (files->n)
		free(files->v[--files->n].path);
	free(files->v);
	files->v = NULL;
}
