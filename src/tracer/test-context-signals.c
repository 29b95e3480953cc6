/* SPDX-License-Identifier: MIT */
/*
 * Signal handlers that record with other contexts than the code that they interrupted, at every
 * instruction of the code that keeps the values. The processor's single steps are signals. The
 * handler of the k-th step puts other contexts, and so does that of a step some steps later. The
 * same is done at every instruction of an event's update. (None of this is in a restartable
 * sequence, which would never end.)
 */
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

#include <cmocka.h>

#include "base/clock.h"
#include "tracer/context.h"
#include "tracer/special.h"
#include "tracer/tracer.h"

struct tracer tracer;
struct tracer_set tracer_sets[TRACER_MAX_SETS];

void tracer_lock(sigset_t *ret_old)
{
	(void)ret_old;
}

void tracer_unlock(const sigset_t *old)
{
	(void)old;
}

void tracer_listener_wake(void)
{
}

void kymo_app_left_out(const char *event, const char *why)
{
	(void)event;
	(void)why;
}

void tracer_debug(const char *fmt, ...)
{
	(void)fmt;
}

#if defined(__x86_64__) && defined(__LP64__)
#define TRAP_FLAG 0x100
#define APART	  4

/* A list, and the bytes of its contexts, which are always the same. */
struct sample {
	const struct tracer_contexts *list;
	uint32_t size;
	uint8_t bytes[64];
};

static struct sample ids, thread_only;
static volatile int step, first, second; /* current step, and the steps at which handlers record */
static volatile int n_wrong;

static struct sample make_sample(const uint32_t *kinds, uint32_t n)
{
	uint8_t buf[256];
	struct ky_writer w = {.buf = buf, .cap = sizeof(buf)};
	struct sample s = {0};

	for (uint32_t i = 0; i < n; i++) {
		ky_write_u32(&w, kinds[i]);
		ky_write_str(&w, "");
	}
	s.list = tracer_contexts_intern((struct ky_bytes){buf, (uint32_t)w.len}, n);
	assert_non_null(s.list);
	s.size = (uint32_t)(tracer_contexts_put(
				    s.list, s.bytes, ky_clock_counter(), ky_clock_of_machine()) -
			    s.bytes);
	return s;
}

/* Puts contexts as for a record: as kept, if they are kept. */
static void put_and_compare(const struct sample *s)
{
	uint8_t room[64 + KYMO_SCRATCH_SLACK];

	if (tracer_kept.of == s->list && tracer_kept.turn == tracer_contexts_turn)
		n_wrong += memcmp(tracer_kept.bytes, s->bytes, s->size) != 0;
	tracer_contexts_put(s->list, room, ky_clock_counter(), ky_clock_of_machine());
	n_wrong += memcmp(room, s->bytes, s->size) != 0;
}

static void on_step(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)info;
	step++;
	if (step == first)
		put_and_compare(&thread_only);
	if (step == second)
		put_and_compare(&ids);
	if (step >= first && step >= second)
		((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
}

static void set_trap_flag(void)
{
	__asm__ volatile(
		"lea -128(%%rsp), %%rsp; pushfq; orl %0, (%%rsp); popfq; lea 128(%%rsp), %%rsp" ::
			"i"(TRAP_FLAG)
		: "memory", "cc");
}

/* Returns false if the values were complete before the steps were over. */
static bool interrupt_at(int a, int b, bool stale)
{
	bool all;

	put_and_compare(&thread_only);
	if (stale)
		kymo_contexts_invalidate();
	step = 0;
	first = a;
	second = b;
	set_trap_flag();
	put_and_compare(&ids);
	all = step >= a;
	first = second = 0; /* the next step is the last */
	put_and_compare(&ids);
	put_and_compare(&thread_only);
	put_and_compare(&ids);
	return all;
}

static struct kymo_event_state updated, before_update;

static void on_step_of_update(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)info;
	step++;
	n_wrong += memcmp(&updated, &before_update, sizeof(updated)) != 0;
	if (step >= first)
		((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
}

/*
 * An event whose contexts need the caller: while its hooks change, it calls no function that does
 * not note the caller.
 */
static void test_update(void **state)
{
	static const uint32_t caller[] = {KY_CTX_IP};
	struct sigaction action = {.sa_sigaction = on_step_of_update, .sa_flags = SA_SIGINFO}, old;
	struct ky_hook hook = {.active = 1,
		.mapped = 1,
		.n_rings = 1,
		.n_special = 1,
		.special = tracer_record_special,
		.contexts = make_sample(caller, 1).list};
	struct kymo_event event = {
		.size = sizeof(event), .kind = KYMO_EVENT_PLAIN, .state = &updated};
	struct tracer_event e = {.ev = &event, .hooks = &hook};

	(void)state;
	n_wrong = 0;
	tracer_event_update(&e);
	assert_true(updated.hook == &hook);
	before_update = updated;
	assert_int_equal(sigaction(SIGTRAP, &action, &old), 0);
	step = 0;
	first = INT_MAX;
	set_trap_flag();
	tracer_event_update(&e);
	first = 0; /* the next step is the last */
	sigaction(SIGTRAP, &old, NULL);
	assert_int_equal(n_wrong, 0);
}

static void test_handlers(void **state)
{
	static const uint32_t some[] = {KY_CTX_VPID, KY_CTX_VTID};
	static const uint32_t one[] = {KY_CTX_PTHREAD_ID};
	struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO}, old;

	(void)state;
	ids = make_sample(some, KY_ARRAY_SIZE(some));
	thread_only = make_sample(one, KY_ARRAY_SIZE(one));
	assert_int_equal(sigaction(SIGTRAP, &action, &old), 0);
	for (int stale = 0; stale < 2; stale++)
		for (int k = 1; interrupt_at(k, k + APART, stale); k++)
			assert_int_equal(n_wrong, 0);
	sigaction(SIGTRAP, &old, NULL);
}
#else
static void test_update(void **state)
{
	(void)state;
	skip();
}

static void test_handlers(void **state)
{
	(void)state;
	skip();
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_update), cmocka_unit_test(test_handlers)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
