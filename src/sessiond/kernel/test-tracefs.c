/* SPDX-License-Identifier: MIT */
/*
 * Instances, probes and the sweep, on a directory with tracefs's names. The kernel's part is played
 * by two functions: one fills in an instance's files, the other removes them.
 */
#include "sessiond/kernel/sweep.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "sessiond/kernel/instance.h"
#include "sessiond/kernel/probes.h"
#include "sessiond/kernel/removal.h"

#define DEAD  "kymo-0123abcd-1"
#define ALIVE "kymo-89ef4567-12"

static char top[] = "/tmp/kymo-test-tracefs-XXXXXX";
static struct tracefs fs;
static const char *missing; /* file that new instances lack */
static struct env env;
static struct kernel kernel;
static const char *busy; /* instance that cannot be removed */
static bool sweeping;

static const char *const files[] = {"tracing_on", "trace_clock", "buffer_subbuf_size_kb",
	"buffer_size_kb", "options/overwrite", "options/disable_on_free", "buffer_percent",
	"free_buffer", "events/enable", "trace_marker", "trace", "per_cpu/cpu0/trace_pipe_raw",
	"per_cpu/cpu0/stats"};
static const char *const folders[] = {"options", "events", "per_cpu", "per_cpu/cpu0"};

static void make_text_file(int dir, const char *path, const char *text)
{
	int fd = openat(dir, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void assert_text(int dir, const char *path, const char *wanted)
{
	char *text = tracefs_read(dir, path);

	assert_non_null(text);
	assert_string_equal(text, wanted);
	free(text);
}

static int make_dir(int dir, const char *path)
{
	int fd;

	if (mkdirat(dir, path, 0700) < 0)
		return -errno;
	fd = openat(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < KY_ARRAY_SIZE(folders); i++)
		assert_int_equal(mkdirat(fd, folders[i], 0700), 0);
	for (size_t i = 0; i < KY_ARRAY_SIZE(files); i++)
		if (!missing || strcmp(missing, files[i]) != 0)
			make_text_file(fd, files[i], "1");
	close(fd);
	return 0;
}

/*
 * An instance has to be silent first: events that stay enabled cost all programs time. One that is
 * swept has to be locked: a daemon may have made it, which has not locked it yet.
 */
static int remove_dir(int dir, const char *path)
{
	int fd = openat(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (busy && strstr(path, busy)) {
		close(fd);
		return -EBUSY;
	}
	if (sweeping && !strstr(path, INSTANCE_TASKS))
		assert_true(flock(fd, LOCK_EX | LOCK_NB) < 0);
	if (!missing) {
		assert_text(fd, "tracing_on", "0");
		assert_text(fd, "events/enable", "0");
	}
	for (size_t i = 0; i < KY_ARRAY_SIZE(files); i++)
		unlinkat(fd, files[i], 0);
	for (size_t i = KY_ARRAY_SIZE(folders); i-- > 0;)
		unlinkat(fd, folders[i], AT_REMOVEDIR);
	close(fd);
	return unlinkat(dir, path, AT_REMOVEDIR) < 0 ? -errno : 0;
}

static const struct tracefs_ops fake_ops = {.make_dir = make_dir, .remove_dir = remove_dir};

static void make_instance_dir(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), INSTANCES "%s", name);
	assert_int_equal(make_dir(fs.root, path), 0);
}

static bool is_there(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), INSTANCES "%s", name);
	return tracefs_has(fs.root, path);
}

/* Locks an instance as its daemon does. */
static int lock_instance(const char *name)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), INSTANCES "%s", name);
	fd = tracefs_open_dir(fs.root, path);
	assert_true(fd >= 0);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	return fd;
}

/* Removes what dead daemons have left. Returns the number of instances, or -errno. */
static int sweep_dead(void)
{
	int n;

	kernel.fs = fs;
	sweeping = true;
	n = tracefs_sweep(&kernel);
	removals_run(&kernel);
	sweeping = false;
	return n;
}

static int setup(void **state)
{
	env_init(&env);
	assert_int_equal(ky_loop_init(&env.loop), 0);
	kernel.env = &env;
	removals_init(&kernel);
	strcpy(top + strlen(top) - 6, "XXXXXX");
	assert_non_null(mkdtemp(top));
	fs = (struct tracefs){open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC), &fake_ops};
	assert_int_equal(mkdirat(fs.root, "instances", 0700), 0);
	missing = busy = NULL;
	return 0;
}

static int teardown(void **state)
{
	char command[64];

	removals_deinit(&kernel);
	ky_loop_deinit(&env.loop);
	tracefs_close(&fs);
	snprintf(command, sizeof(command), "rm -r %s", top);
	return system(command);
}

static const char *const foreign[] = {"other", "kymo-0123ABCD-1", "kymo-0123abcd", "kymo-0123abc-1",
	"kymo-record", "kymo_0123abcd_1", "Kymo-0123abcd-1", "x-kymo-0123abcd-1"};

/* Those of dead daemons are removed, those of living ones and of other programs are not. */
static void test_sweep(void **state)
{
	int locked;

	make_instance_dir(DEAD);
	make_instance_dir(DEAD INSTANCE_TASKS);
	make_instance_dir("kymo-0123abcd-7" INSTANCE_TASKS); /* its instance was removed */
	make_instance_dir(ALIVE);
	make_instance_dir(ALIVE INSTANCE_TASKS);
	for (size_t i = 0; i < KY_ARRAY_SIZE(foreign); i++)
		make_instance_dir(foreign[i]);
	locked = lock_instance(ALIVE);
	assert_int_equal(sweep_dead(), 3);
	assert_false(is_there(DEAD));
	assert_false(is_there(DEAD INSTANCE_TASKS));
	assert_false(is_there("kymo-0123abcd-7" INSTANCE_TASKS));
	assert_true(is_there(ALIVE));
	assert_true(is_there(ALIVE INSTANCE_TASKS));
	assert_text(locked, "tracing_on", "1");
	assert_text(locked, "events/enable", "1");
	for (size_t i = 0; i < KY_ARRAY_SIZE(foreign); i++)
		assert_true(is_there(foreign[i]));
	assert_int_equal(sweep_dead(), 0);
	close(locked);
	assert_int_equal(sweep_dead(), 2);
	assert_false(is_there(ALIVE));
}

/* A process has a file of it open: the others are removed all the same, and it later. */
static void test_sweep_busy(void **state)
{
	make_instance_dir(DEAD);
	make_instance_dir(DEAD INSTANCE_TASKS);
	busy = DEAD;
	make_instance_dir("kymo-0123abcd-2");
	assert_int_equal(sweep_dead(), 3);
	assert_true(is_there(DEAD));
	assert_false(is_there("kymo-0123abcd-2"));
	busy = NULL;
	removals_run(&kernel);
	assert_false(is_there(DEAD));
}

/* Returns how often a file that was written has been closed since. */
static unsigned count_writes(int watch)
{
	_Alignas(struct inotify_event) char buf[4096];
	ssize_t n = read(watch, buf, sizeof(buf));
	unsigned n_closed = 0;

	for (const char *p = buf; n > 0 && p < buf + n;) {
		const struct inotify_event *e = (const void *)p;

		n_closed += !!(e->mask & IN_CLOSE_WRITE);
		p += sizeof(*e) + e->len;
	}
	return n_closed;
}

/*
 * Probes of ours without an instance are removed, each by a line of its own, and all by one write;
 * no other is.
 */
static void test_sweep_probes(void **state)
{
	static const char before[] = "p:kymo_0123abcd_1/called /bin/true:0x10\n"
				     "p4:kymo_89ef4567_12/called /bin/true:0x10\n"
				     "r:kymo_00000000_3/old /bin/true:0x10\n"
				     "r:kymo_00000000_3/old /bin/true:0x20\n"
				     "r:kymo_00000000_3/other /bin/true:0x20\n"
				     "p:uprobes/kymo_00000000_3 /bin/true:0x10\n"
				     "p:kymo_0000000_3/short /bin/true:0x10\n";
	static const char *const kept[] = {
		"-:kymo_89ef4567_12/", "-:uprobes/", "-:kymo_0000000_3/"};
	int locked, watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	char *after, path[64];

	make_text_file(fs.root, "dynamic_events", before);
	snprintf(path, sizeof(path), "/proc/self/fd/%d/dynamic_events", fs.root);
	assert_true(inotify_add_watch(watch, path, IN_OPEN | IN_CLOSE_WRITE) >= 0);
	make_instance_dir(DEAD);
	make_instance_dir(ALIVE);
	locked = lock_instance(ALIVE);
	assert_int_equal(sweep_dead(), 1);
	assert_int_equal(count_writes(watch), 2); /* of the instance, and of the others */
	close(watch);
	after = tracefs_read(fs.root, "dynamic_events");
	assert_non_null(after);
	assert_memory_equal(after, before, strlen(before));
	assert_non_null(strstr(after, "\n-:kymo_0123abcd_1/called\n"));
	assert_non_null(strstr(after, "\n-:kymo_00000000_3/old\n"));
	for (size_t i = 0; i < KY_ARRAY_SIZE(kept); i++)
		assert_null(strstr(after, kept[i]));
	free(after);
	close(locked);
}

static void test_sweep_nothing(void **state)
{
	assert_int_equal(sweep_dead(), 0);
	assert_int_equal(unlinkat(fs.root, "instances", AT_REMOVEDIR), 0);
	assert_int_equal(sweep_dead(), -ENOENT);
	assert_int_equal(mkdirat(fs.root, "instances", 0700), 0);
}

/* One line says what an instance lacks, and nothing of it is left. */
static void test_make_fails(void **state)
{
	static const char *const needed[] = {"tracing_on", "trace_clock", "buffer_size_kb",
		"options/overwrite", "options/disable_on_free", "free_buffer",
		"per_cpu/cpu0/trace_pipe_raw", "trace_marker"};
	struct instance_spec spec = {.name = DEAD,
		.clock = KY_CLOCK_MONOTONIC,
		.n_cpus = 3,
		.subbuf_size = 4096,
		.buffer_size = 65536};
	char why[TRACEFS_WHY_MAX];
	struct instance i;

	for (size_t k = 0; k < KY_ARRAY_SIZE(needed); k++) {
		missing = needed[k];
		assert_true(instance_make(&i, &fs, &spec, why) < 0);
		assert_true(*why && !strchr(why, '\n'));
		assert_false(is_there(DEAD));
		assert_int_equal(i.dir, -1);
		assert_int_equal(i.free_buffer, -1);
	}
	/* All is there, but the kernel's record of the marker is not. */
	missing = NULL;
	assert_int_equal(instance_make(&i, &fs, &spec, why), -EOPNOTSUPP);
	assert_non_null(strstr(why, "the kernel's clock is not the session's"));
	assert_non_null(strstr(why, ": run the daemon in the initial time namespace"));
	assert_false(is_there(DEAD));
	spec.clock = KY_CLOCK_TSC;
	assert_int_equal(instance_make(&i, &fs, &spec, why), -EOPNOTSUPP);
	assert_non_null(strstr(why, ": start the daemon with KYMO_CLOCK=monotonic"));
}

/* An instance of another daemon that has the name is left alone. */
static void test_make_exists(void **state)
{
	const struct instance_spec spec = {
		.name = DEAD, .clock = KY_CLOCK_MONOTONIC, .n_cpus = 1, .subbuf_size = 4096};
	char why[TRACEFS_WHY_MAX];
	struct instance i;

	make_instance_dir(DEAD);
	assert_int_equal(instance_make(&i, &fs, &spec, why), -EEXIST);
	assert_true(is_there(DEAD));
	assert_string_equal(i.name, "");
}

static void test_write(void **state)
{
	char text[64];

	make_text_file(fs.root, "dynamic_events", "first\n");
	assert_int_equal(tracefs_append(fs.root, "dynamic_events", "second\n"), 0);
	assert_text(fs.root, "dynamic_events", "first\nsecond\n");
	assert_int_equal(tracefs_write(fs.root, "dynamic_events", ""), 0);
	assert_text(fs.root, "dynamic_events", "");
	assert_int_equal(tracefs_write(fs.root, "absent", "1"), -ENOENT);
	assert_null(tracefs_read(fs.root, "absent"));
	assert_int_equal(errno, ENOENT);
	/* Nothing leads out of the file system. */
	assert_int_equal(symlinkat("/etc/passwd", fs.root, "link"), 0);
	assert_int_equal(tracefs_write(fs.root, "link", "1"), -ELOOP);
	assert_null(tracefs_read(fs.root, "link"));
	tracefs_last_error(&fs, text, sizeof(text));
	assert_string_equal(text, "");
	make_text_file(fs.root, "error_log",
		"[  1.5] a: error: one\n  Command: x\n[  2.5] b: error: two\n  Command: y\n    ^\n");
	tracefs_last_error(&fs, text, sizeof(text));
	assert_string_equal(text, "[  2.5] b: error: two");
	make_text_file(fs.root, "error_log", "[  3.5] c: error: three");
	tracefs_last_error(&fs, text, 12);
	assert_string_equal(text, "[  3.5] c: ");
}

static void test_long_text(void **state)
{
	char *text = malloc(100001), *read;

	memset(text, 'x', 100000);
	text[100000] = '\0';
	make_text_file(fs.root, "available_events", text);
	read = tracefs_read(fs.root, "available_events");
	assert_non_null(read);
	assert_int_equal(strlen(read), 100000);
	free(read);
	free(text);
}

static void test_functions(void **state)
{
	char why[TRACEFS_WHY_MAX];
	struct ky_buf lines = {0};
	FILE *f;

	assert_int_equal(probes_of_functions(&fs, "vfs_*", &lines, why, sizeof(why)), -ENOENT);
	assert_non_null(strstr(why, "CONFIG_DYNAMIC_FTRACE"));
	make_text_file(fs.root, "available_filter_functions",
		"vfs_read\nvfs_write [ext]\nvfs_wait\ndo.part.0\nvfs_wait\n");
	assert_int_equal(probes_of_functions(&fs, "vfs_w*", &lines, why, sizeof(why)), 1);
	assert_string_equal(lines.data,
		"p:vfs_write_entry vfs_write\nr1024:vfs_write_exit vfs_write ret=$retval\n");
	ky_buf_deinit(&lines);
	lines = (struct ky_buf){0};
	/* Two functions have this name: the kernel says so if it is given alone. */
	assert_int_equal(probes_of_functions(&fs, "vfs_wait", &lines, why, sizeof(why)), 1);
	assert_int_equal(probes_of_functions(&fs, "vfs_wa*", &lines, why, sizeof(why)), -ENOENT);
	ky_buf_deinit(&lines);
	lines = (struct ky_buf){0};
	make_text_file(fs.root, "README", "\t f[:[<group>/][<event>]] <func-name>[%return]\n");
	assert_int_equal(probes_of_functions(&fs, "do*", &lines, why, sizeof(why)), 1);
	assert_string_equal(lines.data, "f:do_part_0_entry do.part.0\n"
					"f1024:do_part_0_exit do.part.0%return ret=$retval\n");
	assert_int_equal(probes_of_functions(&fs, "none", &lines, why, sizeof(why)), -ENOENT);
	ky_buf_deinit(&lines);
	lines = (struct ky_buf){0};
	f = fdopen(openat(fs.root, "available_filter_functions", O_WRONLY | O_CLOEXEC), "w");
	for (int i = 0; i < 1001; i++)
		fprintf(f, "f%d\n", i);
	fclose(f);
	assert_int_equal(probes_of_functions(&fs, "*", &lines, why, sizeof(why)), -E2BIG);
	ky_buf_deinit(&lines);
}

/* A rule's lines are defined once; a name means one place; what was defined of a rule is undone. */
static void test_define(void **state)
{
	char *known = NULL, why[TRACEFS_WHY_MAX];

	make_text_file(fs.root, "dynamic_events", "");
	make_text_file(fs.root, "uprobe_events", "");
	assert_int_equal(probes_define(&fs, DEAD, "p:a /bin/x:0x1\n", &known, why, sizeof(why)), 0);
	assert_int_equal(probes_define(&fs, DEAD, "p:a /bin/x:0x1\n", &known, why, sizeof(why)), 0);
	assert_text(fs.root, "dynamic_events", "p:kymo_0123abcd_1/a /bin/x:0x1\n");
	assert_string_equal(known, "p:a /bin/x:0x1\n");
	assert_int_equal(probes_define(&fs, DEAD, "p:b /bin/x:0x2\np:a /bin/x:0x3\n", &known, why,
				 sizeof(why)),
		-EEXIST);
	assert_non_null(strstr(why, "'a' at another place"));
	assert_string_equal(known, "p:a /bin/x:0x1\n");
	assert_text(fs.root, "dynamic_events",
		"p:kymo_0123abcd_1/a /bin/x:0x1\n"
		"p:kymo_0123abcd_1/b /bin/x:0x2\n-:kymo_0123abcd_1/b\n");
	assert_int_equal(unlinkat(fs.root, "dynamic_events", 0), 0);
	assert_int_equal(
		probes_define(&fs, DEAD, "p:c /bin/x:0x4\n", &known, why, sizeof(why)), -ENOENT);
	assert_non_null(strstr(why, "CONFIG_UPROBE_EVENTS"));
	free(known);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_sweep, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sweep_busy, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sweep_probes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sweep_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_make_fails, setup, teardown),
		cmocka_unit_test_setup_teardown(test_make_exists, setup, teardown),
		cmocka_unit_test_setup_teardown(test_write, setup, teardown),
		cmocka_unit_test_setup_teardown(test_long_text, setup, teardown),
		cmocka_unit_test_setup_teardown(test_functions, setup, teardown),
		cmocka_unit_test_setup_teardown(test_define, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
