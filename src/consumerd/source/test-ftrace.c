/* SPDX-License-Identifier: MIT */
/*
 * The kernel's ring buffers as sources, with a tracefs instance of its own. Needs root and tracefs;
 * else it is skipped, and says why. The events are the numbered writes of a child: write(fd, p, i).
 */
#include "consumerd/source/ftrace.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <cmocka.h>

#include "abi/kernel.h"
#include "base/clock.h"
#include "kernel/page.h"
#include "kernel/program.h"

#define TRACEFS	 "/sys/kernel/tracing"
#define EVENT	 "events/raw_syscalls/sys_enter"
#define SKIPPED	 77
#define SLACK	 1024u /* bytes */
#define SUBBUF	 (page_is_small ? 4096u : 65536u)
#define RECORD	 60u /* bytes: compact head, number of the call, six arguments */
#define ARGUMENT 2u  /* the argument that has the number */

static char instance[PATH_MAX];
static bool page_is_small; /* before Linux 6.8 */

static int try_put(const char *file, const char *text)
{
	char path[2 * PATH_MAX];
	int fd, ret;

	snprintf(path, sizeof(path), "%s/%s", instance, file);
	fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	ret = fd < 0 || write(fd, text, strlen(text)) < 0 ? -errno : 0;
	ky_close(fd);
	return ret;
}

static void write_tracefs(const char *file, const char *text)
{
	int ret = try_put(file, text);

	if (ret < 0)
		fail_msg("%s <- %s: %s", file, text, strerror(-ret));
}

static int open_file(const char *file)
{
	char path[2 * PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", instance, file);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		fail_msg("%s: %s", path, strerror(errno));
	return fd;
}

static const char *clock_name(void)
{
	return ky_clock_of_machine() == KY_CLOCK_TSC ? "x86-tsc" : "mono";
}

static uint32_t clock_number(void)
{
	return ky_clock_of_machine() == KY_CLOCK_TSC ? KY_CLOCK_TSC : KY_CLOCK_MONOTONIC;
}

/* Each test has an instance of its own, which teardown removes. */
static int make_instance(void **state)
{
	snprintf(instance, sizeof(instance), TRACEFS "/instances/test-ftrace-%d", (int)getpid());
	if (mkdir(instance, 0700) < 0)
		return -1;
	write_tracefs("tracing_on", "0");
	page_is_small = try_put("buffer_subbuf_size_kb", "64") < 0;
	write_tracefs("trace_clock", clock_name());
	write_tracefs("buffer_size_kb", "8192");
	write_tracefs("options/overwrite", "0");
	write_tracefs("buffer_percent", "1");
	write_tracefs(EVENT "/filter", "id == 1");
	return 0;
}

static int remove_instance(void **state)
{
	const struct timespec pause = {0, 10000000};

	try_put("events/enable", "0");
	/* The kernel refuses while a process that was killed still has a file open. */
	for (int i = 0; rmdir(instance) < 0 && errno == EBUSY && i < 500; i++)
		nanosleep(&pause, NULL);
	return access(instance, F_OK) == 0 ? -1 : 0;
}

static void pin_to_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

#define N_ONCE 300000u
#define AHEAD  100000u /* events; the ring has room for more */

/* The state that a file would keep: two marks, one of which is valid. */
struct shared {
	struct source_mark marks[2];
	uint64_t which, n_wrong;
};

static uint64_t count_taken(const struct shared *sh)
{
	return sh->marks[__atomic_load_n(&sh->which, __ATOMIC_ACQUIRE) & 1].count;
}

/*
 * Makes a stopped child on CPU 0 that emits n events; the instance follows it alone. sh: it waits
 * for consumers that got no processor, so that the ring loses nothing; NULL: it never waits.
 */
static pid_t make_load(uint64_t n, const struct shared *sh)
{
	const uint64_t burst = 2000;
	const struct timespec pause = {0, 50000};
	char text[32];
	int status, null;
	pid_t pid = fork();

	if (!pid) {
		pin_to_cpu(0);
		null = open("/dev/null", O_WRONLY | O_CLOEXEC);
		raise(SIGSTOP);
		for (uint64_t i = 0; i < n; i++) {
			if (syscall(SYS_write, null, text, i) < 0)
				_exit(1);
			if (sh && i % burst == burst - 1)
				do
					nanosleep(&pause, NULL);
				while (i >= count_taken(sh) + AHEAD);
		}
		_exit(0);
	}
	waitpid(pid, &status, WUNTRACED);
	snprintf(text, sizeof(text), "%d", (int)pid);
	write_tracefs("set_event_pid", text);
	write_tracefs(EVENT "/enable", "1");
	write_tracefs("tracing_on", "1");
	kill(pid, SIGCONT);
	return pid;
}

static void end_load(pid_t pid)
{
	int status;

	waitpid(pid, &status, 0);
	assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
}

/* Describes the event to the source, as the session daemon does. */
static void describe_event(struct source_set *set)
{
	struct ky_kformat *f = malloc(sizeof(*f));
	struct ky_kprogram *p = malloc(sizeof(*p));
	struct ky_cons_kernel_event m = {.id = 0};
	int fd = open_file(EVENT "/format");
	char text[8192];
	ssize_t n = read(fd, text, sizeof(text) - 1);
	bool is_new;

	close(fd);
	assert_true(n > 0);
	text[n] = '\0';
	assert_int_equal(ky_kformat_parse(f, text), 0);
	assert_int_equal(ky_kprogram_make(p, "raw_syscalls", f, NULL, 0), 0);
	m.kernel_id = f->id;
	m.min = p->min;
	m.steps = (struct ky_bytes){p->steps, p->n_steps * (uint32_t)sizeof(p->steps[0])};
	m.format = text;
	assert_int_equal(ftrace_add_event(set, &m, &is_new), 0);
	assert_true(is_new);
	free(f);
	free(p);
}

struct files {
	int fds[3];
};

static struct files open_cpu(void)
{
	return (struct files){{open_file("per_cpu/cpu0/trace_pipe_raw"),
		open_file("per_cpu/cpu0/stats"), open_file("per_cpu/cpu0/trace_pipe_raw")}};
}

static void close_cpu(struct files *f)
{
	for (unsigned i = 0; i < 3; i++)
		f->fds[i] = ky_close(f->fds[i]);
}

static struct source_set *make_set(int memory, const struct files *files)
{
	struct ky_cons_kernel_set m = {.n_cpus = 1,
		.subbuf_size = SUBBUF,
		.clock = clock_number(),
		.dump_cpu = 1,
		.may_map = 1};
	struct source_set *set;

	assert_int_equal(ftrace_new(&m, memory, &set), 0);
	describe_event(set);
	assert_int_equal(ftrace_add_cpu(set, 0, files->fds), 0);
	return set;
}

static int make_memory(void)
{
	int fd = memfd_create("kernel", MFD_CLOEXEC);

	assert_int_equal(ftruncate(fd, (off_t)ky_kernel_memory_size(1, SUBBUF)), 0);
	return fd;
}

/* Counts the records of a piece whose number is not the next one. */
static uint64_t count_wrong(const struct ky_drain_piece *piece, uint64_t *next, bool holes)
{
	const uint8_t *p = piece->data, *end = p + piece->len;
	uint64_t wrong = 0, n = 0, v;

	for (; p < end; n++) {
		p += (*p & 31) == 31 ? 13 : 4;
		v = ky_load64(p + 8 + 8 * ARGUMENT);
		p += RECORD - 4;
		wrong += holes ? v < *next : v != *next;
		*next = v + 1;
	}
	return wrong + (p != end) + (n != piece->n_events);
}

/* --- exactly once --- */

static void store_mark(struct shared *sh, const struct source_mark *mark)
{
	sh->marks[!(sh->which & 1)] = *mark;
	__atomic_store_n(&sh->which, sh->which + 1, __ATOMIC_RELEASE);
}

/* A consumer: takes all events, in order, until it is killed. */
static void consume_events(struct shared *sh, int memory, const struct files *files)
{
	struct source_set *set = make_set(memory, files);
	struct source *s = set->ops->open(set, 0);
	struct pollfd p = {.fd = files->fds[0], .events = POLLIN};
	struct source_mark mark = sh->marks[sh->which & 1];
	struct ky_drain_piece piece;

	if (s->ops->resume(s, &mark) < 0)
		sh->n_wrong += 1000000;
	for (;;) {
		s->ops->look(s, false, false);
		mark = s->taken;
		while (s->ops->next(s, &mark, true, &piece)) {
			uint64_t next = s->taken.count;

			sh->n_wrong += count_wrong(&piece, &next, false);
			store_mark(sh, &mark);
			s->ops->take(s, &mark);
		}
		if (!s->more)
			poll(&p, 1, 1);
	}
}

/* The consumer is killed at any moment: each event is taken once. */
static void test_once(void **state)
{
	struct shared *sh = mmap(
		NULL, sizeof(*sh), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct files files = open_cpu();
	int memory = make_memory(), kills = 0, idle = 0;
	pid_t load = make_load(N_ONCE, sh);
	uint64_t seen = 0;

	srandom((unsigned)getpid());
	while (seen < N_ONCE && idle < 2000) {
		struct timespec t = {0, (random() % 3000 + 1) * 1000};
		pid_t pid = fork();
		uint64_t count;

		if (!pid) {
			consume_events(sh, memory, &files);
			_exit(0);
		}
		/* Each consumer lives longer than the last that got nothing done. */
		t.tv_nsec += KY_MIN(idle, 200) * 1000000;
		nanosleep(&t, NULL);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		kills++;
		count = count_taken(sh);
		idle = count == seen ? idle + 1 : 0;
		seen = count;
	}
	if (seen < N_ONCE)
		kill(load, SIGKILL); /* it would wait for them */
	end_load(load);
	print_message("%d consumers, %llu events\n", kills, (unsigned long long)seen);
	close_cpu(&files);
	close(memory);
	assert_int_equal(sh->n_wrong, 0);
	assert_int_equal(seen, N_ONCE);
	munmap(sh, sizeof(*sh));
}

/* Each consumer is killed when it has taken all of a full memory, and has more to read. */
static void test_full(void **state)
{
	const uint64_t n = 2 * KY_KERNEL_BLOCKS * KY_KERNEL_BLOCK / RECORD;
	struct files files = open_cpu();
	struct source_mark mark = {0};
	int memory = make_memory();

	(void)state;
	end_load(make_load(n, NULL));
	write_tracefs("tracing_on", "0");
	while (mark.count < n) {
		struct source_set *set = make_set(memory, &files);
		struct source *s = set->ops->open(set, 0);
		struct ky_drain_piece piece;

		assert_int_equal(s->ops->resume(s, NULL), 0);
		assert_int_equal(s->ops->resume(s, &mark), 0);
		s->ops->look(s, true, false);
		assert_int_equal(s->more, s->head_count < n);
		while (s->ops->next(s, &mark, true, &piece))
			s->ops->take(s, &mark);
		assert_int_equal(mark.count, s->head_count);
		set->ops->free(set);
	}
	close_cpu(&files);
	close(memory);
}

/* --- losses --- */

/* A ring that nobody reads for a while: recorded + discarded = emitted. */
static void test_losses(void **state)
{
	struct files files = open_cpu();
	int memory = make_memory();
	struct source_set *set = make_set(memory, &files);
	struct source *s = set->ops->open(set, 0);
	uint64_t n = 100000, next = 0, wrong = 0;
	struct ky_drain_piece piece;
	struct source_mark mark;

	if (*state)
		write_tracefs("options/overwrite", *state);
	write_tracefs("buffer_size_kb", "1024");
	end_load(make_load(n, NULL));
	write_tracefs("tracing_on", "0");
	do {
		assert_int_equal(s->ops->look(s, true, false), 0);
		mark = s->taken;
		while (s->ops->next(s, &mark, true, &piece)) {
			wrong += count_wrong(&piece, &next, *state);
			s->ops->take(s, &mark);
		}
	} while (s->more);
	print_message("%llu recorded, %llu discarded\n", (unsigned long long)s->taken.count,
		(unsigned long long)s->n_lost);
	assert_int_equal(wrong, 0);
	assert_true(s->n_lost > 0);
	assert_int_equal(s->taken.count + s->n_lost, n);
	if (*state)
		assert_int_equal(next, n); /* the last ones */
	else
		assert_int_equal(next, s->taken.count); /* the first ones */
	set->ops->free(set);
	close_cpu(&files);
	close(memory);
}

static int make_overwrite(void **state)
{
	*state = (void *)"1";
	return make_instance(state);
}

/* --- snapshots --- */

/* Leaves the older half of a copy out, as the consumer does. Returns the bytes that may be left. */
static uint64_t leave_half_out(struct source *s)
{
	uint64_t from = 0, to = UINT64_MAX, middle, half = s->ops->size_after(s, 0) / 2;

	while (from < to) {
		middle = from + (to - from) / 2;
		if (s->ops->size_after(s, middle) > half)
			from = middle + 1;
		else
			to = middle;
	}
	if (!half)
		return UINT64_MAX; /* the load has not run yet */
	assert_true(s->ops->leave_out(s, to) > 0);
	return half;
}

/* Copies of a ring that is written all the time have no holes, also if their begin is left out. */
static void test_snapshot(void **state)
{
	struct files files;
	pid_t load;
	uint64_t n = 0;

	write_tracefs("options/overwrite", "1");
	write_tracefs("buffer_size_kb", "1024");
	files = open_cpu();
	load = make_load(UINT64_MAX, NULL);
	for (int i = 0; i < 50 || !n; i++) { /* the load may get no CPU for a while */
		struct source_set *set = make_set(-1, &files);
		struct source *s = set->ops->open(set, 0);
		uint64_t next = UINT64_MAX, wrong = 0, size = 0, limit = UINT64_MAX;
		struct ky_drain_piece piece;
		struct source_mark mark;

		s->ops->look(s, true, false);
		assert_int_equal(s->head, 0); /* it is held */
		if (i % 2)
			limit = leave_half_out(s);
		set->held = false;
		do {
			s->ops->look(s, true, false);
			mark = s->taken;
			while (s->ops->next(s, &mark, true, &piece)) {
				size += piece.len;
				if (next == UINT64_MAX)
					next = ky_load64(piece.data + 8 + 8 * ARGUMENT +
							 ((*piece.data & 31) == 31 ? 13 : 4));
				wrong += count_wrong(&piece, &next, false);
				s->ops->take(s, &mark);
			}
		} while (s->more);
		n += s->taken.count;
		assert_int_equal(wrong, 0);
		assert_true(
			size <= limit || size - limit <= SLACK); /* longer heads, first in blocks */
		set->ops->free(set);
	}
	kill(load, SIGKILL);
	waitpid(load, NULL, 0);
	print_message("%llu events\n", (unsigned long long)n);
	assert_true(n > 0);
	close_cpu(&files);
}

/* Returns why the tests cannot run here; NULL if they can. */
static const char *why_not(void)
{
	static char text[128];
	void *state = NULL;

	if (geteuid())
		return "needs root";
	if (access(TRACEFS "/instances", F_OK) < 0)
		return "no tracefs at " TRACEFS;
	snprintf(instance, sizeof(instance), TRACEFS "/instances/test-ftrace-%d", (int)getpid());
	if (mkdir(instance, 0700) < 0) {
		snprintf(text, sizeof(text), "cannot make a tracefs instance: %s", strerror(errno));
		return text;
	}
	if (try_put(EVENT "/filter", "id == 1") < 0) {
		remove_instance(&state);
		return "this kernel has no raw_syscalls events";
	}
	return remove_instance(&state) < 0 ? "cannot remove a tracefs instance" : NULL;
}

static bool can_map(void)
{
	void *state = NULL, *p;
	int fd;

	if (make_instance(&state) < 0)
		return false;
	fd = open_file("per_cpu/cpu0/trace_pipe_raw");
	p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	if (p != MAP_FAILED)
		munmap(p, 4096);
	close(fd);
	remove_instance(&state);
	return p != MAP_FAILED;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_full, make_instance, remove_instance),
		cmocka_unit_test_setup_teardown(test_once, make_instance, remove_instance),
		cmocka_unit_test_setup_teardown(test_losses, make_instance, remove_instance),
		cmocka_unit_test_setup_teardown(test_losses, make_overwrite, remove_instance),
	};
	const struct CMUnitTest mapped[] = {
		cmocka_unit_test_setup_teardown(test_snapshot, make_instance, remove_instance),
	};
	const char *why = why_not();

	if (why) {
		printf("# SKIP: %s\n", why);
		return SKIPPED;
	}
	if (cmocka_run_group_tests(tests, NULL, NULL))
		return 1;
	if (can_map())
		return cmocka_run_group_tests(mapped, NULL, NULL);
	printf("snapshots are not tested: this kernel cannot map its ring buffers\n");
	return 0;
}
