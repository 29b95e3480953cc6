/* SPDX-License-Identifier: MIT */
/*
 * Tests lists of contexts, as the daemon sends them: the steps to which they are compiled, and the
 * output of these.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "tracer/context.c" /* to see the steps */

struct tracer tracer;

void tracer_lock(sigset_t *ret_old)
{
	(void)ret_old;
}

void tracer_unlock(const sigset_t *old)
{
	(void)old;
}

/* Returns the list of these kinds; a kind that has an argument takes it from `argument`. */
static const struct tracer_contexts *list_of(
	const uint32_t *kinds, uint32_t n, const char *argument)
{
	static uint8_t buf[8192];
	struct ky_writer w = {.buf = buf, .cap = sizeof(buf)};

	for (uint32_t i = 0; i < n; i++) {
		bool family = kinds[i] == KY_CTX_PERF || kinds[i] == KY_CTX_APP ||
			      kinds[i] == KY_CTX_CALLSTACK;

		ky_write_u32(&w, kinds[i]);
		ky_write_str(&w, family ? argument : "");
	}
	return tracer_contexts_intern((struct ky_bytes){buf, (uint32_t)w.len}, n);
}

#define LIST(argument, ...)                                                                        \
	list_of((const uint32_t[]){__VA_ARGS__},                                                   \
		sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), argument)

static uint32_t put_all(const struct tracer_contexts *l, uint8_t *to)
{
	return (uint32_t)(tracer_contexts_put(l, to, ky_clock_counter(), ky_clock_of_machine()) -
			  to);
}

static void test_neighbours_are_one_step(void **unused)
{
	const struct tracer_contexts *l = LIST("", KY_CTX_VPID, KY_CTX_VTID, KY_CTX_PROCNAME);

	(void)unused;
	assert_non_null(l);
	assert_int_equal(l->n_steps, 1);
	assert_int_equal(l->steps[0].op, OP_COPY);
	assert_int_equal(l->steps[0].n, 4 + 4 + 16);
	assert_int_equal(l->size, 24);
	assert_true(l->kept_only);
	assert_int_equal(l->kinds, BIT(KY_CTX_VPID) | BIT(KY_CTX_VTID) | BIT(KY_CTX_PROCNAME));
}

static void test_others_are_not(void **unused)
{
	(void)unused;
	assert_int_equal(LIST("", KY_CTX_VTID, KY_CTX_VPID)->n_steps, 2);
	assert_int_equal(LIST("", KY_CTX_VPID, KY_CTX_PROCNAME)->n_steps, 2);
	/* In the kept values, the last user is before the first group. */
	assert_int_equal(
		LIST("", KY_CTX_VUID, KY_CTX_VEUID, KY_CTX_VSUID, KY_CTX_VGID)->n_steps, 1);
	assert_int_equal(LIST("", KY_CTX_VUID, KY_CTX_VSUID)->n_steps, 2);
	/* Not across one that is read each time. */
	assert_int_equal(LIST("", KY_CTX_VPID, KY_CTX_CPU_ID, KY_CTX_VTID)->n_steps, 3);
}

static void test_kept_only(void **unused)
{
	uint8_t room[512 + KYMO_SCRATCH_SLACK];
	const struct tracer_contexts *kept_list = LIST("", KY_CTX_VPID, KY_CTX_VUID);
	const struct tracer_contexts *other = LIST("", KY_CTX_VPID, KY_CTX_CPU_ID);

	(void)unused;
	assert_true(kept_list->kept_only);
	assert_false(other->kept_only);
	assert_int_equal(put_all(kept_list, room), 8);
	assert_ptr_equal(tracer_kept.of, kept_list);
	assert_int_equal(tracer_kept.turn, tracer_contexts_turn);
	assert_int_equal(tracer_kept.size, 8);
	assert_memory_equal(tracer_kept.bytes, room, 8);
	put_all(other, room);
	assert_ptr_not_equal(tracer_kept.of, other);
	kymo_contexts_invalidate();
	assert_int_not_equal(tracer_kept.turn, tracer_contexts_turn);
}

static void test_sizes(void **unused)
{
	uint8_t room[4096 + KYMO_SCRATCH_SLACK];
	const struct tracer_contexts *stack = LIST("8", KY_CTX_CALLSTACK);
	const struct tracer_contexts *mixed = LIST(
		"1:2", KY_CTX_CPU_ID, KY_CTX_IP, KY_CTX_PERF, KY_CTX_PTHREAD_ID);
	const struct tracer_contexts *app = LIST("a:b", KY_CTX_APP);

	(void)unused;
	assert_int_equal(stack->size, 64);
	assert_true(tracer_contexts_want_caller(stack));
	assert_int_equal(put_all(stack, room), 64);
	assert_int_equal(mixed->size, 4 + 8 + 8 + 8);
	assert_true(tracer_contexts_want_caller(mixed));
	assert_int_equal(put_all(mixed, room), 28);
	assert_int_equal(app->size, KY_CTX_STRING_MAX);
	assert_false(tracer_contexts_want_caller(app));
	assert_int_equal(put_all(app, room), 1); /* "": nobody has registered it */
}

/* A kind that is added to the table alone would make records shorter than their description. */
static void test_each_kind(void **unused)
{
	uint8_t room[KY_CTX_RECORD_MAX + KYMO_SCRATCH_SLACK];

	(void)unused;
	for (const struct ky_ctx_type *t = ky_ctx_types; t->name[0]; t++) {
		const struct tracer_contexts *l = LIST(t->kind == KY_CTX_PERF  ? "1:2"
						       : t->kind == KY_CTX_APP ? "a:b"
									       : "8",
			t->kind);

		assert_ptr_equal(ky_ctx_type(t->kind), t);
		assert_non_null(l);
		if (t->kind != KY_CTX_APP) /* a string, as long as its text */
			assert_int_equal(put_all(l, room), l->size);
	}
}

static void test_values(void **unused)
{
	uint8_t room[128 + KYMO_SCRATCH_SLACK];
	struct {
		int32_t vtid, vpid;
		char procname[16];
		uint64_t pthread_id;
		uint32_t vegid;
	} __attribute__((packed))
	want = {(int32_t)syscall(SYS_gettid), getpid(), "", (uintptr_t)pthread_self(), getegid()};

	(void)unused;
	prctl(PR_GET_NAME, want.procname);
	assert_int_equal(put_all(LIST("", KY_CTX_VTID, KY_CTX_VPID, KY_CTX_PROCNAME,
					 KY_CTX_PTHREAD_ID, KY_CTX_VEGID),
				 room),
		sizeof(want));
	assert_memory_equal(room, &want, sizeof(want));
}

/* From now on, the numbers of process and thread cannot be read: the calls return -1. */
static bool forbid_identity(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpid, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_gettid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {KY_ARRAY_SIZE(filter), filter};

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* Whether the list has these numbers of process and thread `later` after now. */
static bool is_identity_at(
	const struct tracer_contexts *l, uint64_t later, int32_t pid, int32_t tid)
{
	uint8_t room[64 + KYMO_SCRATCH_SLACK];
	const int32_t want[2] = {pid, tid};
	uint32_t clock = ky_clock_of_machine();

	tracer_contexts_put(l, room, ky_clock_counter() + later, clock);
	return !memcmp(room, want, sizeof(want));
}

static int check_identity(void)
{
	const struct tracer_contexts *ids = LIST("", KY_CTX_VPID, KY_CTX_VTID);
	const struct tracer_contexts *named = LIST("", KY_CTX_VPID, KY_CTX_VTID, KY_CTX_PROCNAME);
	int32_t pid = getpid(), tid = (int32_t)syscall(SYS_gettid);

	kymo_contexts_invalidate();
	if (!is_identity_at(ids, 0, pid, tid) || !forbid_identity())
		return 1;
	if (!is_identity_at(ids, 2 * BELIEVE_MAX, pid, tid) ||
		!is_identity_at(named, 4 * BELIEVE_MAX, pid, tid) ||
		!is_identity_at(named, 6 * BELIEVE_MAX, pid, tid) ||
		tracer_kept.until > ky_clock_counter() + 8 * BELIEVE_MAX)
		return 2;
	if (!is_identity_at(ids, 2 * BELIEVE_IDENTITY, -1, -1))
		return 3;
	kymo_contexts_invalidate();
	return is_identity_at(named, 0, -1, -1) ? 0 : 4;
}

/* Other values of the same thread expire; its numbers are not read again for a second. */
static void test_identity_is_kept(void **unused)
{
	pid_t child = fork();
	int status;

	(void)unused;
	if (!child)
		_exit(check_identity());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* A thread that records its first event when its number cannot be read. */
static void *check_kept_of_process(void *vpid)
{
	const struct tracer_contexts *ids = LIST("", KY_CTX_VPID, KY_CTX_VTID);

	return is_identity_at(ids, 0, *(int32_t *)vpid, -1) ? NULL : vpid;
}

static int check_kept_for_filter(void)
{
	const struct tracer_contexts *ids = LIST("", KY_CTX_VPID, KY_CTX_VTID);
	int32_t pid = getpid(), tid = (int32_t)syscall(SYS_gettid);
	pthread_t thread;
	void *failed;

	kymo_contexts_invalidate();
	if (kymo_contexts_keep(1) || !forbid_identity())
		return 1;
	tracer_contexts_turn++; /* another thread has changed its name */
	if (!is_identity_at(ids, 0, pid, tid) || tracer_kept.turn != tracer_contexts_turn ||
		!is_identity_at(ids, 4 * BELIEVE_IDENTITY, pid, tid))
		return 2;
	if (pthread_create(&thread, NULL, check_kept_of_process, &pid) ||
		pthread_join(thread, &failed) || failed)
		return 3;
	kymo_contexts_invalidate();
	if (!is_identity_at(ids, 0, -1, -1))
		return 4;
	return kymo_contexts_keep(0) == 1 && !kymo_contexts_keep(0) ? 0 : 5;
}

/* Values are not read again behind a filter, except by a thread that has changed its own. */
static void test_kept_for_filter(void **unused)
{
	pid_t child = fork();
	int status;

	(void)unused;
	if (!child)
		_exit(check_kept_for_filter());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void test_same_list(void **unused)
{
	const struct tracer_contexts *l = LIST("", KY_CTX_VPID, KY_CTX_VTID, KY_CTX_CPU_ID);

	(void)unused;
	assert_ptr_equal(LIST("", KY_CTX_VPID, KY_CTX_VTID, KY_CTX_CPU_ID), l);
	assert_ptr_equal(tracer_contexts_first(l, 3), l);
	assert_ptr_equal(tracer_contexts_first(l, 2), LIST("", KY_CTX_VPID, KY_CTX_VTID));
	assert_null(tracer_contexts_first(l, 4));
	assert_null(tracer_contexts_first(l, 0));
	assert_null(tracer_contexts_first(NULL, 1));
}

static void test_refused(void **unused)
{
	uint32_t many[KY_CTX_MAX + 1];

	(void)unused;
	assert_null(LIST("", KY_CTX_KINDS));
	assert_null(LIST("", KY_CTX_VPID, KY_CTX_NONE));
	assert_null(LIST("", KY_CTX_VPID, KY_CTX_NONE)); /* again: it is kept as unknown */
	assert_null(LIST("no counter", KY_CTX_PERF));
	assert_null(LIST("65", KY_CTX_CALLSTACK));
	for (uint32_t i = 0; i < KY_ARRAY_SIZE(many); i++)
		many[i] = KY_CTX_CALLSTACK;
	assert_non_null(list_of(many, 8, "64")); /* 4096 bytes */
	assert_null(list_of(many, 9, "64"));
	assert_non_null(list_of(many, KY_CTX_MAX, "1"));
	assert_null(list_of(many, KY_CTX_MAX + 1, "1"));
	assert_null(tracer_contexts_intern((struct ky_bytes){"\2\0\0", 3}, 1)); /* truncated */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_neighbours_are_one_step),
		cmocka_unit_test(test_others_are_not),
		cmocka_unit_test(test_kept_only),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_each_kind),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_identity_is_kept),
		cmocka_unit_test(test_kept_for_filter),
		cmocka_unit_test(test_same_list),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
