/* SPDX-License-Identifier: MIT */
/* merge: traces of several hosts become one directory, with clocks that agree. */
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "cli/cli.h"
#include "cli/trace.h"
#include "merge/clock.h"
#include "merge/flows.h"
#include "ship/files.h"

#define METADATA_MAX (256u << 20)
#define PIECE	     (1u << 30)
#define REMOVED	     "archives/.removed"

static const struct cli_option options[] = {
	{"output", 'o', "DIR", "the directory, new or empty"},
	{"flows", 0, "+FLOW",
		"use events whose order is known to reduce the error of the clocks; see above"},
	{0},
};

struct input {
	char path[PATH_MAX], name[NAME_MAX + 1];
	struct offset offset;
};

struct merge {
	struct cli *cli;
	struct input *inputs; /* owned */
	size_t n;
	struct kymo_reader *reader; /* owned: of all inputs */
	size_t *hosts;		    /* owned: the input of each trace that the reader found */
	struct clock_note note;
	bool is_measured; /* bounds of the clocks are known from when the traces were fetched */
	uint64_t n_pairs;
	size_t n_made;	    /* directories of traces in the output */
	const char *output; /* borrowed */
	/* while a trace is copied */
	const struct input *input;
	int from, to;
	char why[2 * PATH_MAX + 256];
};

/* --- names --- */

static bool is_taken(const struct merge *m, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(m->inputs[i].name, name))
			return true;
	return false;
}

/* Refuses an input that contains the input n, or is in it: its events would be there twice. */
static int check_overlap(const struct merge *m, size_t n)
{
	const char *path = m->inputs[n].path;

	for (size_t i = 0; i < n; i++)
		if (cli_is_below(path, m->inputs[i].path) || cli_is_below(m->inputs[i].path, path))
			return cli_usage(m->cli,
				"%s and %s have the same traces: name each trace once",
				cli_arg(m->cli, i), cli_arg(m->cli, n));
	return CLI_OK;
}

/* Each trace keeps the name of its directory; a further one of that name gets a number. */
static int take_inputs(struct merge *m)
{
	char copy[PATH_MAX];

	for (size_t i = 0; i < m->n; i++) {
		struct input *in = &m->inputs[i];
		int code;

		if (!realpath(cli_arg(m->cli, i), in->path))
			return cli_fail(m->cli, "not-found", "cannot read %s: %s",
				cli_arg(m->cli, i), strerror(errno));
		code = check_overlap(m, i);
		if (code)
			return code;
		snprintf(copy, sizeof(copy), "%s", in->path);
		snprintf(in->name, sizeof(in->name), "%.200s", basename(copy));
		for (unsigned k = 2; is_taken(m, i, in->name); k++)
			snprintf(in->name, sizeof(in->name), "%.200s-%u", basename(copy), k);
	}
	return CLI_OK;
}

/* --- offsets --- */

/* Stores the input of each trace that was opened. Returns 0 or -ENOMEM. */
static int find_hosts(struct merge *m)
{
	const struct kymo_reader *r = m->reader;
	size_t *hosts = calloc(kymo_reader_n_traces(r) + 1, sizeof(*hosts));

	for (size_t i = 0; hosts && i < kymo_reader_n_traces(r); i++)
		while (hosts[i] + 1 < m->n &&
			!cli_is_below(kymo_reader_trace(r, i)->path, m->inputs[hosts[i]].path))
			hosts[i]++;
	m->hosts = hosts;
	return hosts ? 0 : -ENOMEM;
}

static int add_flows(struct merge *m, struct offsets *o)
{
	struct flows f = {.reader = m->reader, .hosts = m->hosts, .offsets = o};
	int ret = 0;

	for (size_t i = 0; i < m->cli->args.n_given && !ret; i++)
		if (!strcmp(m->cli->args.given[i].opt->name, "flows"))
			ret = flows_add(&f, m->cli->args.given[i].value);
	m->n_pairs = f.n_pairs;
	if (ret == -EINVAL)
		return cli_usage(m->cli, "%s", f.why);
	return ret ? cli_fail(m->cli, "failed", "%s", *f.why ? f.why : strerror(-ret)) : CLI_OK;
}

/* Compares two texts; false if one is missing. */
static bool is_same(const char *a, const char *b)
{
	return a && b && !strcmp(a, b);
}

/*
 * Adds bounds from the metadata of fetched traces: each clock is off by at most its error, against
 * the clock that both traces name as their reference.
 */
static void add_measured(struct merge *m, struct offsets *o)
{
	const struct kymo_reader *r = m->reader;
	const char *references[OFFSETS_MAX] = {0};
	int64_t errors[OFFSETS_MAX] = {0};
	bool seen[OFFSETS_MAX] = {0};

	for (size_t i = 0; i < kymo_reader_n_traces(r); i++) {
		const size_t host = m->hosts[i];
		const char *error = kymo_reader_env(r, i, "clock_error_ns");
		const char *reference = kymo_reader_env(r, i, "clock_reference");

		if (!error || (seen[host] && !is_same(references[host], reference)))
			reference = NULL;
		references[host] = reference;
		errors[host] = KY_MAX(errors[host], error ? strtoll(error, NULL, 10) : 0);
		seen[host] = true;
	}
	for (size_t a = 0; a < m->n; a++)
		for (size_t b = 0; b < m->n; b++) {
			int64_t most;

			if (a == b || !is_same(references[a], references[b]) ||
				__builtin_add_overflow(errors[a], errors[b], &most))
				continue;
			offsets_add(o, a, 0, b, most);
			m->is_measured = true;
		}
}

static int solve(struct merge *m, struct offsets *o)
{
	struct offset found[OFFSETS_MAX];
	int64_t ns = 0;

	if (offsets_solve(o, found, &ns) < 0)
		return cli_fail(m->cli, "failed",
			"the flows contradict each other%s by %" PRId64
			" ns: a clock drifts, or these are no flows; merge a shorter part, or without --flows",
			m->is_measured ? ", or the errors that were measured," : "", ns);
	for (size_t i = 0; i < m->n; i++)
		m->inputs[i].offset = found[i];
	if (m->is_measured && !cli_has(m->cli, "flows"))
		m->note.source = "round-trip";
	return CLI_OK;
}

static int measure_offsets(struct merge *m)
{
	_cleanup_free_ const char **paths = calloc(m->n, sizeof(*paths));
	struct kymo_reader_error error = {0};
	struct offsets o = {0};
	int code;

	for (size_t i = 0; paths && i < m->n; i++) {
		paths[i] = m->inputs[i].path;
		m->inputs[i].offset.error_ns = OFFSETS_UNKNOWN;
	}
	if (!paths || offsets_init(&o, m->n) < 0)
		return cli_fail(m->cli, "failed", "no memory");
	if (kymo_reader_open(&m->reader, paths, m->n, NULL, &error) < 0)
		code = cli_fail(m->cli, "failed", "%s", error.text);
	else if (find_hosts(m) < 0)
		code = cli_fail(m->cli, "failed", "no memory");
	else
		code = add_flows(m, &o);
	if (!code)
		add_measured(m, &o);
	if (!code)
		code = solve(m, &o);
	offsets_deinit(&o);
	return code;
}

/* --- copies --- */

/* Opens the directory of a file below another, which is made, with those above it. */
static int open_parent(int dir, const char *path)
{
	char name[PATH_MAX];
	int fd = fcntl(dir, F_DUPFD_CLOEXEC, 0), below;

	for (const char *slash; fd >= 0 && (slash = strchr(path, '/')); path = slash + 1) {
		snprintf(name, sizeof(name), "%.*s", (int)(slash - path), path);
		if (mkdirat(fd, name, 0750) < 0 && errno != EEXIST) {
			below = -errno;
		} else {
			below = openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
			below = below < 0 ? -errno : below;
		}
		close(fd);
		fd = below;
	}
	return fd;
}

static int write_bytes(int to, const char *p, size_t n)
{
	ssize_t done = 0;

	for (; n && done >= 0; p += done, n -= (size_t)done)
		done = write(to, p, n);
	return done < 0 ? -errno : 0;
}

/* Does copy_file_range() not work between these two files? Reading and writing may. */
static bool is_range_refused(int error)
{
	return error == EXDEV || error == EINVAL || error == EOPNOTSUPP || error == ENOSYS;
}

static int copy_bytes(int from, int to)
{
	char buf[1 << 16];
	ssize_t n;
	int r = 0;

	while ((n = copy_file_range(from, NULL, to, NULL, PIECE, 0)) > 0)
		;
	if (n < 0 && is_range_refused(errno))
		while (!r && (n = read(from, buf, sizeof(buf))) > 0)
			r = write_bytes(to, buf, (size_t)n);
	return n < 0 ? -errno : r;
}

static int copy_metadata(const struct merge *m, int from, int to)
{
	struct ky_buf text = {0};
	struct stat st;
	char *old = NULL;
	int r = fstat(from, &st) < 0 ? -errno : st.st_size > (off_t)METADATA_MAX ? -EFBIG : 0;

	if (!r) {
		old = malloc((size_t)st.st_size + 1);
		r = !old ? -ENOMEM : read(from, old, (size_t)st.st_size) != st.st_size ? -EIO : 0;
	}
	if (!r)
		r = clock_rewrite(&text, old, (size_t)st.st_size, &m->input->offset, &m->note);
	if (!r)
		r = write_bytes(to, text.data, text.len);
	ky_buf_deinit(&text);
	free(old);
	return r;
}

static int copy_file(void *context, const char *path)
{
	struct merge *m = context;
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	const bool is_metadata = !strcmp(name, "metadata");
	_cleanup_close_ int from = openat(m->from, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	_cleanup_close_ int parent = open_parent(m->to, path);
	_cleanup_close_ int to = parent < 0
					 ? -1
					 : openat(parent, name,
						   O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
	int r;

	if (from < 0 || to < 0)
		r = -errno;
	else
		r = is_metadata ? copy_metadata(m, from, to) : copy_bytes(from, to);
	if (r < 0)
		snprintf(m->why, sizeof(m->why), "cannot copy %s/%s to %s: %s", m->input->path,
			path, m->output,
			is_metadata && r == -EINVAL
				? "this metadata was not written by Kymo; if the clocks agree, all other commands read several traces as one"
			: r == -ERANGE ? "its clock would be before 1970"
				       : strerror(-r));
	return r;
}

/* Copies a trace of the input that is not there yet. path: of its directory, below the input. */
static int copy_chunk(struct merge *m, const char *path)
{
	char file[PATH_MAX];
	const int from = m->from, to = m->to;
	int r = 0;

	snprintf(file, sizeof(file), "%s/metadata", path);
	if (!faccessat(to, file, F_OK, 0))
		return 0;
	m->from = openat(from, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	m->to = m->from < 0 ? -1 : open_parent(to, file);
	if (m->from < 0 || m->to < 0)
		r = -errno;
	else
		r = files_walk(m->from, copy_file, NULL, m);
	ky_close(m->from);
	ky_close(m->to);
	m->from = from;
	m->to = to;
	return r;
}

/*
 * Copies what else the reader has found: the archives of a session, a chunk on its way there, and
 * directories behind links; and the counts of archives that were removed.
 */
static int copy_chunks(struct merge *m)
{
	const size_t len = strlen(m->input->path);
	int r = faccessat(m->from, REMOVED, F_OK, AT_SYMLINK_NOFOLLOW) ? 0 : copy_file(m, REMOVED);

	for (size_t i = 0; !r && i < kymo_reader_n_traces(m->reader); i++) {
		const char *path = kymo_reader_trace(m->reader, i)->path;

		if (&m->inputs[m->hosts[i]] == m->input && path[len] == '/')
			r = copy_chunk(m, path + len + 1);
	}
	return r;
}

static int copy_trace(struct merge *m, int dir, const struct input *in)
{
	_cleanup_close_ int from = open(in->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), to = -1;
	int r;

	if (from < 0)
		return cli_fail(m->cli, "failed", "cannot read %s: %s", in->path, strerror(errno));
	if (mkdirat(dir, in->name, 0750) < 0)
		return cli_fail(m->cli, "failed", "cannot make %s/%s: %s", m->output, in->name,
			strerror(errno));
	m->n_made++;
	to = openat(dir, in->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (to < 0)
		return cli_fail(m->cli, "failed", "cannot make %s/%s: %s", m->output, in->name,
			strerror(errno));
	m->input = in;
	m->from = from;
	m->to = to;
	r = files_walk(from, copy_file, NULL, m);
	if (!r)
		r = copy_chunks(m);
	if (!r)
		return CLI_OK;
	return cli_fail(m->cli, "failed", "%s", *m->why ? m->why : strerror(-r));
}

static bool is_empty(int dir)
{
	int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), n = 0;
	DIR *d = copy < 0 ? NULL : fdopendir(copy);

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n <= 2; /* "." and ".." */
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

/* After a failure, so that the same command can be repeated. */
static void remove_copies(const struct merge *m, const char *output)
{
	char path[PATH_MAX];

	for (size_t i = 0; i < m->n_made; i++) {
		snprintf(path, sizeof(path), "%s/%s", output, m->inputs[i].name);
		nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	}
}

static int copy_all(struct merge *m)
{
	const char *output = m->output;
	const bool is_new = !mkdir(output, 0750);
	_cleanup_close_ int dir = -1;
	int code = CLI_OK;

	if (!is_new && errno != EEXIST)
		return cli_fail(m->cli, "failed", "cannot make %s: %s", output, strerror(errno));
	dir = open(output, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return cli_fail(m->cli, "failed", "cannot open %s: %s", output, strerror(errno));
	if (!is_empty(dir))
		return cli_fail(m->cli, "exists", "%s is not empty: name a new directory", output);
	for (size_t i = 0; i < m->n && !code; i++)
		code = copy_trace(m, dir, &m->inputs[i]);
	if (code)
		remove_copies(m, output);
	if (code && is_new)
		rmdir(output);
	return code;
}

/* --- the result --- */

static void print_one(const struct merge *m, const struct input *in, bool is_first)
{
	printf("%s: ", cli_safe(m->cli, in->name));
	if (is_first)
		puts("the others are measured against this clock");
	else if (in->offset.error_ns == OFFSETS_UNKNOWN)
		printf("shifted by %+" PRId64 " ns; its error is not known\n", in->offset.shift_ns);
	else
		printf("shifted by %+" PRId64 " ns; its error is at most %" PRId64 " ns\n",
			in->offset.shift_ns, in->offset.error_ns);
}

static int report_offsets(const struct merge *m)
{
	struct ky_buf o = {0};

	if (!m->cli->json) {
		for (size_t i = 0; i < m->n; i++)
			print_one(m, &m->inputs[i], !i);
		if (cli_has(m->cli, "flows"))
			printf("%" PRIu64 " flows between hosts\n", m->n_pairs);
		return CLI_OK;
	}
	ky_buf_puts(&o, "{\"traces\": [");
	for (size_t i = 0; i < m->n; i++) {
		const struct input *in = &m->inputs[i];

		ky_buf_puts(&o, i ? ", {" : "{");
		cli_put_member(&o, "name", in->name);
		ky_buf_printf(&o, "\"shift_ns\": %" PRId64, in->offset.shift_ns);
		if (in->offset.error_ns != OFFSETS_UNKNOWN)
			ky_buf_printf(&o, ", \"error_ns\": %" PRId64, in->offset.error_ns);
		ky_buf_puts(&o, "}");
	}
	ky_buf_printf(&o, "], \"flows\": %" PRIu64 ", \"ok\": true}", m->n_pairs);
	return cli_print_json_buf(m->cli, &o);
}

static int run_merge(struct cli *cli)
{
	struct merge m = {.cli = cli,
		.n = cli->args.n_pos,
		.note = {.source = "recorded"},
		.output = cli_get(cli, "output")};
	int code;

	if (!m.output)
		return cli_usage(cli, "the output is missing: -o DIR");
	if (cli_trace_has(cli, m.output))
		return cli_usage(cli, "%s is in one of the traces: give -o another name", m.output);
	if (m.n > OFFSETS_MAX)
		return cli_usage(cli, "at most %u traces can be merged", OFFSETS_MAX);
	m.inputs = calloc(m.n, sizeof(*m.inputs));
	if (!m.inputs)
		return cli_fail(cli, "failed", "no memory");
	if (cli_has(cli, "flows"))
		m.note.source = "flows";
	code = take_inputs(&m);
	if (!code)
		code = measure_offsets(&m);
	if (!code)
		code = copy_all(&m);
	if (!code)
		code = report_offsets(&m);
	kymo_reader_close(m.reader);
	free(m.hosts);
	free(m.inputs);
	return code;
}

const struct cli_command cmd_merge = {
	.name = "merge",
	.synopsis = "TRACE TRACE... -o DIR [--flows=FLOW]...",
	.help = "combine traces of several hosts in one directory, with clocks that agree",
	.details =
		"The traces of several hosts have different clocks. The copies in DIR can be read together, also by\n"
		"babeltrace2. FLOW names events whose order is known, to reduce the error of the clocks:\n"
		"  w3c     a span begins after its parent span (W3C identifiers) on another host\n"
		"  calls   it also ends before its parent ends: the caller waits for the answer\n"
		"  DEPARTURE,ARRIVAL,FIELD\n"
		"          events of these names that have the same number in a field\n",
	.options = options,
	.min_args = 2,
	.max_args = CLI_ANY_ARGS,
	.run = run_merge,
};
