/* SPDX-License-Identifier: MIT */
/*
 * Stops one record before each of its instructions. There the program is killed, or a signal
 * handler records, or another process on the same CPU records, or the thread moves to another CPU,
 * or the session daemon claims the block that the record would enter. In each case, all records
 * that had returned are in the rings once, a snapshot counts them, and others can record into the
 * same rings. When a handler has recorded, a consumer takes what is published: no later record has
 * an earlier clock. A record that waits for room gets it just before the mishap.
 *
 * The program is a traced child. Single steps find its way through the record. Then, for each
 * mishap, a breakpoint stops a new child there. If the kernel finds that a stopped thread is in a
 * restartable sequence, it makes the thread leave it. So the test hides the sequence while it leads
 * the child to its place, and shows it again when the mishap comes.
 *
 * KYMO_TEST_ONE_OF=N tries one of N cases, by chance; `make check` does so with clang.
 */
#include <linux/rseq.h>
#include <sched.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "ring/asm-offsets.h"
#include "ring/slots.h"
#include "ring/snapshot.h"
#include "ring/test-fixture.h"

/* bytes of text in a record that name its writer; all of the text repeats them */
#define WORD	   8
#define MAX_WORDS  6
#define MAX_STEPS  4000
#define IN_HANDLER 3 /* records */
#define WAIT_STEPS 400

enum mishap { KILLED, SIGNALLED, PREEMPTED, MIGRATED, CLAIMED, N_MISHAPS };
enum writer { VICTIM, HANDLER, OTHER, N_WHO };

/*
 * State of the rings before the record: the place of the record decides what has to be done for it.
 */
static const struct situation {
	uint32_t n_blocks, n_full; /* blocks of the ring, and how many of them have no room */
	uint32_t n_home;	   /* of a spreading ring; else 0 */
	bool used, overwrite, waits;
} situations[] = {
	{.n_blocks = 4},
	{.n_blocks = 4, .used = true},
	{.n_blocks = 4, .n_full = 1},
	{.n_blocks = 4, .n_full = 2, .n_home = 2},
	{.n_blocks = 2, .n_full = 2, .overwrite = true},
	{.n_blocks = 2, .n_full = 2, .waits = true},
};

/* Ways to write a record of this many words. */
struct way {
	const char *name;
	uint32_t mode, clock, n_words;
	bool special, known;
	void (*record)(struct fixture *f, const char *text, size_t len);
};

static void by_flat(struct fixture *f, const char *text, size_t len)
{
	ky_rseq_flat(&f->event, text, &f->hook, len);
}

static void by_flat_known(struct fixture *f, const char *text, size_t len)
{
	ky_rseq_flat_known(&f->event, text, &f->hook, len);
}

static uint64_t first_word(const char *text)
{
	uint64_t word;

	memcpy(&word, text, sizeof(word));
	return word;
}

static void by_word(struct fixture *f, const char *text, size_t len)
{
	ky_rseq_word(&f->event, first_word(text), &f->hook, len);
}

static void by_word_known(struct fixture *f, const char *text, size_t len)
{
	ky_rseq_word_known(&f->event, first_word(text), &f->hook, len);
}

static void plainly(struct fixture *f, const char *text, size_t len)
{
	f->state.record(&f->event, text, len, NULL, 0);
}

static void in_pieces(struct fixture *f, const char *text, size_t len)
{
	const struct kymo_piece pieces[] = {
		{text, WORD, KYMO_PIECE_SCRATCH},
		{text, 3 * WORD, 0},
		{text, (uint32_t)len - 4 * WORD, KYMO_PIECE_TEXT},
	};

	f->state.record(&f->event, text, len, pieces, KY_ARRAY_SIZE(pieces));
}

/* Replaces the tracer's work for an event with contexts: the first words are the contexts. */
static void not_as_it_is(struct ky_hook *hook, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces)
{
	ky_record_hook(hook, payload, len, pieces, n_pieces);
}

static ky_vector front_of(const char *text)
{
	ky_vector v;

	memcpy(&v, text, sizeof(v));
	return v;
}

static void specially(struct fixture *f, ky_flat_special_fn write, const char *text, size_t len)
{
	ky_vector v = front_of(text);

	if (write(&f->hook, text, &f->hook, len, UINT64_MAX, 3 * WORD, v, v) != KY_WRITE_DONE)
		plainly(f, text, len);
}

static void by_flat_special(struct fixture *f, const char *text, size_t len)
{
	specially(f, ky_rseq_flat_special, text, len);
}

static void by_flat_special_known(struct fixture *f, const char *text, size_t len)
{
	specially(f, ky_rseq_flat_special_known, text, len);
}

static void word_specially(
	struct fixture *f, ky_word_special_fn write, const char *text, size_t len)
{
	ky_vector v = front_of(text);

	if (write(&f->hook, first_word(text), &f->hook, len, UINT64_MAX, 3 * WORD, v, v) !=
		KY_WRITE_DONE)
		plainly(f, text, len);
}

static void by_word_special(struct fixture *f, const char *text, size_t len)
{
	word_specially(f, ky_rseq_word_special, text, len);
}

static void by_word_special_known(struct fixture *f, const char *text, size_t len)
{
	word_specially(f, ky_rseq_word_special_known, text, len);
}

#define CPU    .mode = KY_SET_PER_CPU, .clock = KY_CLOCK_TSC
#define THREAD .mode = KY_SET_PER_THREAD, .clock = KY_CLOCK_TSC
static const struct way ways[] = {
	{"flat", CPU, .n_words = 4, .record = by_flat},
	{"word", CPU, .n_words = 1, .record = by_word},
	{"flat, known", CPU, .n_words = 4, .known = true, .record = by_flat_known},
	{"word, known", CPU, .n_words = 1, .known = true, .record = by_word_known},
	{"flat, special", CPU, .n_words = 6, .special = true, .record = by_flat_special},
	{"word, special", CPU, .n_words = 4, .special = true, .record = by_word_special},
	{"flat, special, known", CPU, .n_words = 6, .special = true, .known = true,
		.record = by_flat_special_known},
	{"word, special, known", CPU, .n_words = 4, .special = true, .known = true,
		.record = by_word_special_known},
	{"any", CPU, .n_words = 2, .record = plainly},
	{"any, pieces", CPU, .n_words = 6, .record = in_pieces},
	{"any, given clock", .mode = KY_SET_PER_CPU, .clock = KY_CLOCK_MONOTONIC, .n_words = 2,
		.record = plainly},
	{"thread", THREAD, .n_words = 2, .record = plainly},
	{"thread, pieces", THREAD, .n_words = 6, .record = in_pieces},
};

/* How often each of enum writer has returned from a record; all processes share it. */
static volatile uint64_t *returned;
static struct fixture *current;
static struct ky_drain *taken; /* all processes share it, too */
static const struct way *way;
static int home, elsewhere; /* CPUs */
static long one_of = 1;	    /* tries one of so many cases, by chance */

/*
 * The text of a writer's next record: words of hexadecimal digits. Each case fills rings with such
 * records and reads them, hundreds of them, so the C library's functions would take most of its
 * time.
 */
static void compose(char text[MAX_WORDS * WORD + KYMO_SCRATCH_SLACK], enum writer writer)
{
	uint64_t value = (uint64_t)writer << 28 | returned[writer];
	char word[WORD];

	for (int i = WORD; i--; value >>= 4)
		word[i] = "0123456789abcdef"[value & 15];
	for (int i = 0; i < MAX_WORDS; i++)
		memcpy(text + i * WORD, word, WORD);
}

/* Returns the number that a word spells. */
static uint64_t value_of(const uint8_t *word)
{
	uint64_t value = 0;

	for (int i = 0; i < WORD; i++)
		value = value << 4 |
			(uint64_t)(word[i] <= '9' ? word[i] - '0' : word[i] - 'a' + 10);
	return value;
}

static void record_as(enum writer writer)
{
	char text[MAX_WORDS * WORD + KYMO_SCRATCH_SLACK];

	compose(text, writer);
	way->record(current, text, way->n_words * WORD);
	returned[writer]++;
}

/* Acts as a consumer that takes all that is published of a thread's ring. */
static void take_published(void)
{
	struct ky_drain_piece piece;

	ky_drain_init(taken, &current->set.geo, current->set.base, 0);
	assert_int_equal(ky_drain_look(taken, true), 0);
	while (ky_drain_next(taken, true, &piece))
		ky_drain_take(taken, &piece);
}

static void on_signal(int sig)
{
	(void)sig;
	for (int i = 0; i < IN_HANDLER; i++)
		record_as(HANDLER);
	if (way->mode == KY_SET_PER_THREAD && !current->set.geo.overwrite && !current->set.wait_ns)
		take_published();
}

static struct ky_ring_ctl *ring_of_victim(void)
{
	return ky_geometry_ctl(&current->set.geo, current->set.base,
		way->mode == KY_SET_PER_CPU ? (uint32_t)home : 0);
}

/* Returns true while a block that is meant to have no room still has some. */
static bool to_be_filled(const struct situation *s)
{
	const struct ky_geometry *g = &current->set.geo;
	uint32_t pos = (uint32_t)ring_of_victim()->head, used = pos & (g->block_size - 1);

	if (!s->n_full)
		return s->used && !pos;
	return pos / g->block_size < s->n_full - 1 ||
	       used + way->n_words * WORD <= ky_geometry_max_payload(g);
}

static __attribute__((noreturn)) void be_victim(const struct situation *s)
{
	char text[MAX_WORDS * WORD + KYMO_SCRATCH_SLACK];

	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
		_exit(1);
	ky_thread_set_process();
	while (to_be_filled(s))
		record_as(VICTIM);
	compose(text, VICTIM);
	__asm__ volatile("int3");
	way->record(current, text, way->n_words * WORD);
	returned[VICTIM]++;
	_exit(0);
}

/* Starts a child that stops where its last record begins. Returns -1 where that is forbidden. */
static pid_t begin_victim(const struct situation *s)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		be_victim(s);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (!WIFSTOPPED(status))
		return -1;
	ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_EXITKILL);
	return pid;
}

static void *instruction(pid_t pid)
{
	return (void *)ptrace(
		PTRACE_PEEKUSER, pid, (void *)offsetof(struct user_regs_struct, rip), NULL);
}

/* Returns the word in which a thread announces its sequence. */
static void *sequence(void)
{
	return (char *)__builtin_thread_pointer() + ky_rseq_offset + KY_RSEQ_CS;
}

/*
 * Returns whether the thread is in the C library's part of the kernel, which reads clocks. That
 * starts again whenever the kernel changes the clock's data, and never ends in single steps.
 */
static bool is_in_vdso(const void *at)
{
	uintptr_t begin = getauxval(AT_SYSINFO_EHDR);

	return begin && (uintptr_t)at - begin < 2 * (size_t)sysconf(_SC_PAGESIZE);
}

static void hide_sequence(pid_t pid, long *cs)
{
	long v = ky_writer_has_rseq() ? ptrace(PTRACE_PEEKDATA, pid, sequence(), NULL) : 0;

	if (!v)
		return;
	*cs = v;
	ptrace(PTRACE_POKEDATA, pid, sequence(), NULL);
}

/* Acts as if the first block had been read. */
static void make_room(void)
{
	const struct ky_geometry *g = &current->set.geo;
	uint32_t ring = way->mode == KY_SET_PER_CPU ? (uint32_t)home : 0;

	*ky_geometry_oldest(g, current->set.base, ring) = g->block_size;
	ring_of_victim()->oldest = g->block_size;
	current->consumed[ring] = g->block_size;
}

/*
 * waitpid() for a child that stops or ends soon. If it does neither, it waits for room, and has
 * taken another way than the one to the place where it was to stop.
 */
static int await_child(pid_t pid)
{
	const struct timespec patience = {2, 0};
	int status;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	while (waitpid(pid, &status, WNOHANG) == 0)
		if (sigtimedwait(&set, NULL, &patience) < 0 && current->set.wait_ns)
			make_room();
	return status;
}

/*
 * Lets the child continue, and waits. Returns false if it has ended, as it should, and has not
 * stopped.
 */
static bool go_on(pid_t pid, enum __ptrace_request how, long *cs)
{
	int status;

	assert_int_equal(ptrace(how, pid, NULL, NULL), 0);
	status = await_child(pid);
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return false;
	assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
	hide_sequence(pid, cs);
	return true;
}

/* Leads the child to its visit-th stop at an address, counted from 0. */
static bool go_to(pid_t pid, void *at, unsigned int visit, long *cs)
{
	long text = ptrace(PTRACE_PEEKTEXT, pid, at, NULL);

	for (;;) {
		ptrace(PTRACE_POKETEXT, pid, at, (text & ~0xffL) | 0xcc);
		if (!go_on(pid, PTRACE_CONT, cs))
			return false;
		ptrace(PTRACE_POKETEXT, pid, at, text);
		ptrace(PTRACE_POKEUSER, pid, (void *)offsetof(struct user_regs_struct, rip), at);
		if (!visit--)
			return true;
		if (!go_on(pid, PTRACE_SINGLESTEP, cs))
			return false;
	}
}

static void pin_process(pid_t pid, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	assert_int_equal(sched_setaffinity(pid, sizeof(set), &set), 0);
}

/*
 * Acts as the daemon that takes the memory of the first block beyond the home blocks. Returns its
 * number; 0 if a writer has entered it.
 */
static uint32_t claim_block(const struct situation *s)
{
	const struct ky_geometry *g = &current->set.geo;
	uint32_t block = s->n_full;

	if ((uint32_t)ring_of_victim()->head / g->block_size == block)
		return 0;
	ky_geometry_entry(g, current->set.base, (uint32_t)home, block * g->block_size)->claimed = 1;
	return block;
}

/*
 * Lets the mishap happen. The child is at its place, or it has ended: its way differs when the
 * clock's window closes meanwhile.
 */
static void happen(const struct situation *s, pid_t pid, enum mishap mishap, bool stopped, long cs)
{
	uint32_t claimed = mishap == CLAIMED ? claim_block(s) : 0;
	int status;

	if (current->set.wait_ns)
		make_room();
	if (stopped && cs)
		ptrace(PTRACE_POKEDATA, pid, sequence(), cs);
	if (mishap == PREEMPTED)
		record_as(OTHER);
	if (!stopped)
		return;
	if (mishap == MIGRATED)
		pin_process(pid, elsewhere);
	if (mishap == KILLED)
		kill(pid, SIGKILL);
	else
		ptrace(PTRACE_CONT, pid, NULL, mishap == SIGNALLED ? SIGUSR1 : 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(mishap == KILLED ? WIFSIGNALED(status) : WIFEXITED(status));
	if (claimed)
		assert_int_not_equal(
			(uint32_t)ring_of_victim()->head / current->set.geo.block_size, claimed);
}

static void survive(void)
{
	/* Another thread continues in the ring of a killed one. */
	if (way->mode == KY_SET_PER_THREAD)
		ky_slot_release(&current->set.geo, current->set.base, 0);
	record_as(OTHER);
	record_as(OTHER);
}

struct seen {
	uint64_t n[N_WHO];
	uint64_t next[N_WHO]; /* in the ring that is examined */
};

static void see(void *arg, uint32_t id, const uint8_t *payload)
{
	struct seen *s = arg;
	uint64_t writer, seq;

	assert_int_equal(id, EVENT);
	for (uint32_t i = 1; i < way->n_words; i++)
		assert_memory_equal(payload, payload + i * WORD, WORD);
	seq = value_of(payload);
	writer = seq >> 28;
	seq &= (1u << 28) - 1;
	assert_true(writer < N_WHO);
	assert_true(s->next[writer] ? seq == s->next[writer] : seq <= returned[writer]);
	s->next[writer] = seq + 1;
	s->n[writer]++;
}

/*
 * Checks that each record is there once, or was overwritten. The record that a killed program was
 * writing may be there or not.
 */
static void check_rings(bool killed)
{
	uint64_t n_gone = 0, n = 0, expected = 0;
	struct seen s = {0};

	for (uint32_t i = 0; i < current->set.geo.n_rings; i++) {
		memset(s.next, 0, sizeof(s.next));
		n_gone += gone(current, i);
		n += walk(current, i, way->n_words * WORD, see, &s);
	}
	assert_int_equal(lost(current), 0);
	if (killed && n_gone + n == returned[VICTIM] + returned[HANDLER] + returned[OTHER] + 1)
		returned[VICTIM]++;
	for (int w = 0; w < N_WHO; w++) {
		expected += returned[w];
		if (!n_gone)
			assert_int_equal(s.n[w], returned[w]);
	}
	assert_int_equal(n_gone + n, expected);
}

/*
 * Checks that a snapshot of each ring counts all of its records: those in it, and those that were
 * overwritten.
 */
static void check_snapshots(void)
{
	struct ky_geometry *g = &current->set.geo;
	struct ky_drain_piece piece;
	void *copy = map(g->total_size);
	struct ky_drain d;

	for (uint32_t i = 0; i < g->n_rings; i++) {
		assert_int_equal(ky_snapshot_ring(&d, g, current->set.base, copy, i, -1), 0);
		assert_int_equal(ky_drain_look(&d, true), 0);
		while (ky_drain_next(&d, true, &piece))
			ky_drain_take(&d, &piece);
		assert_int_equal(d.count, ky_geometry_ctl(g, current->set.base, i)->head >> 32);
	}
	unmap(copy, g->total_size);
}

static void begin_situation(struct fixture *f, const struct situation *s)
{
	for (int w = 0; w < N_WHO; w++)
		returned[w] = 0;
	current = f;
	setup(f, way->mode, way->clock,
		way->mode == KY_SET_PER_CPU ? (uint32_t)sysconf(_SC_NPROCESSORS_CONF) : 4,
		s->n_blocks, 4096);
	f->set.geo.overwrite = s->overwrite;
	if (s->n_home && way->mode == KY_SET_PER_CPU)
		f->set.geo.n_home = s->n_home;
	f->set.wait_ns = s->waits ? UINT64_MAX : 0;
	f->hook.special = way->special ? not_as_it_is : NULL;
	start(f, EVENT);
}

/*
 * Checks the instruction after a thread has announced its sequence: it must belong to the sequence.
 * If the thread is interrupted between the two, the kernel clears the word, and would not restart
 * what follows.
 */
static void check_protected(pid_t pid, long cs)
{
	const struct rseq_cs *sequence = (const struct rseq_cs *)cs;

	assert_true(
		(uintptr_t)instruction(pid) - sequence->start_ip < sequence->post_commit_offset);
}

/* Lets the child, which has just called a function, return from it. */
static void leave_function(pid_t pid)
{
	long sp = ptrace(
		PTRACE_PEEKUSER, pid, (void *)offsetof(struct user_regs_struct, rsp), NULL);
	long cs = 0;

	assert_true(go_to(pid, (void *)ptrace(PTRACE_PEEKDATA, pid, (void *)sp, NULL), 0, &cs));
}

/* Finds the instructions of the record, or the first ones if it waits. Returns how many. */
static unsigned int find_way(const struct situation *s, void **steps)
{
	uint64_t n_before;
	struct fixture f;
	unsigned int n = 0;
	long cs = 0;
	pid_t pid;

	begin_situation(&f, s);
	pid = begin_victim(s);
	n_before = returned[VICTIM];
	while (pid > 0 && returned[VICTIM] == n_before) {
		assert_true(n < MAX_STEPS);
		steps[n++] = instruction(pid);
		if (s->waits && n == WAIT_STEPS)
			make_room();
		cs = 0;
		assert_true(go_on(pid, PTRACE_SINGLESTEP, &cs));
		if (cs)
			check_protected(pid, cs);
		if (is_in_vdso(instruction(pid)))
			leave_function(pid);
	}
	if (pid > 0)
		go_on(pid, PTRACE_CONT, &cs);
	teardown(&f);
	return s->waits ? KY_MIN(n, WAIT_STEPS) : n;
}

static void try_mishap(
	const struct situation *s, enum mishap mishap, void *const *steps, unsigned int n)
{
	unsigned int visit = 0;
	bool stopped = true;
	struct fixture f;
	long cs = 0;
	pid_t pid;

	for (unsigned int i = 0; i < n; i++)
		visit += steps[i] == steps[n];
	begin_situation(&f, s);
	taken->ctl = NULL;
	pid = begin_victim(s);
	assert_true(pid > 0);
	if (n)
		stopped = go_to(pid, steps[n], visit, &cs);
	happen(s, pid, mishap, stopped, cs);
	check_snapshots();
	f.taken = mishap == SIGNALLED && taken->ctl ? taken : NULL;
	survive();
	check_rings(mishap == KILLED && stopped);
	check_snapshots();
	teardown(&f);
}

static void try_all(const struct situation *s)
{
	static void *steps[MAX_STEPS];
	unsigned int n = find_way(s, steps);

	if (!n) {
		print_message("SKIP: ptrace is forbidden here\n");
		skip();
	}
	for (int m = 0; m < N_MISHAPS; m++)
		for (unsigned int i = 0; i < n; i++)
			if ((m != CLAIMED || (s->n_home && way->mode == KY_SET_PER_CPU)) &&
				random() % one_of == 0)
				try_mishap(s, (enum mishap)m, steps, i);
}

/* Returns true if another way and situation have the same instructions where they are unusual. */
static bool is_repeated(const struct situation *s)
{
	if (s->used)
		return false;
	if (s->waits)
		return way->record != plainly;
	return way->special || way->known || way->record == by_word ||
	       (way->clock == KY_CLOCK_MONOTONIC && s->n_full > 1);
}

static void test_steps(void **state)
{
	const struct sigaction action = {.sa_handler = on_signal};
	cpu_set_t all;

	sched_getaffinity(0, sizeof(all), &all);
	home = elsewhere = sched_getcpu();
	for (int i = 0; i < CPU_SETSIZE && elsewhere == home; i++)
		elsewhere = CPU_ISSET(i, &all) ? i : home;
	pin_process(0, home);
	sigaction(SIGUSR1, &action, NULL);
	if (getenv("KYMO_TEST_ONE_OF")) {
		one_of = KY_MAX(1, atol(getenv("KYMO_TEST_ONE_OF")));
		print_message("one of %ld cases, seed %d\n", one_of, getpid());
		srandom((unsigned int)getpid());
	}
	memory_is_kept = true;
	returned = map(N_WHO * sizeof(*returned));
	taken = map(sizeof(*taken));
	for (size_t w = 0; w < KY_ARRAY_SIZE(ways); w++) {
		way = &ways[w];
		if ((way->mode == KY_SET_PER_CPU && !ky_writer_has_rseq()) ||
			(way->known && ky_rseq_offset != KY_RSEQ_KNOWN))
			continue;
		for (size_t i = 0; i < KY_ARRAY_SIZE(situations); i++)
			if (!is_repeated(&situations[i]))
				try_all(&situations[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steps),
	};

	ky_writer_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
