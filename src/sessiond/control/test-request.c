/* SPDX-License-Identifier: MIT */
/* Tests how requests end: after all operations that they wait for, once, and in either order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sessiond/control/request.h"

static uint64_t now_ns;

static uint64_t look_at_clock(struct ky_loop_clock *c)
{
	return now_ns;
}

static void pass_time(struct ky_loop_clock *c, uint64_t ns)
{
	assert_true(ns < UINT64_MAX); /* else the request would never end */
	now_ns += ns;
}

static struct ky_loop_clock loop_clock = {look_at_clock, pass_time};
static struct env env;
static struct control control;
static unsigned n_ended, n_then;
static bool timed_out;
static enum outcome outcome;

static const struct command command = {.name = "test"};

static int setup(void **state)
{
	env_init(&env);
	if (ky_loop_init(&env.loop) < 0)
		return -1;
	env.loop.clock = &loop_clock;
	control_init(&control, &env);
	n_ended = n_then = 0;
	now_ns = KY_NS_PER_MS;
	outcome = DONE;
	return 0;
}

static int teardown(void **state)
{
	assert_true(ky_list_empty(&control.requests));
	ky_loop_deinit(&env.loop);
	return 0;
}

static struct request *make_request(void)
{
	static const struct ky_peer peer;
	struct request *r = request_new(&control, &peer, json_object_new_object(), &command);

	assert_non_null(r);
	return r;
}

static void ended(struct request_op *o, int status, const char *message)
{
	n_ended++;
	if (status)
		request_refuse(o->request, "failed", "%s", message);
}

static enum outcome then(struct request *r)
{
	n_then++;
	timed_out = r->timed_out;
	outcome = request_outcome(r);
	return outcome;
}

static void test_nothing_to_wait_for(void **state)
{
	struct request *r = make_request();

	assert_int_equal(request_await(r, then), DONE);
	assert_int_equal(n_then, 1);
	request_settle(r, DONE);
}

static void test_all_operations(void **state)
{
	struct request *r = make_request();
	struct op *a = &request_op_new(r, NULL, ended)->op,
		  *b = &request_op_new(r, NULL, ended)->op;

	assert_int_equal(request_await(r, then), LATER);
	request_settle(r, LATER);
	op_done(b, 0, "");
	assert_int_equal(n_then, 0);
	op_done(a, -EIO, "why");
	assert_int_equal(n_ended, 2);
	assert_int_equal(n_then, 1);
	assert_int_equal(outcome, REFUSED);
}

/* The first reason counts. */
static void test_reason(void **state)
{
	struct request *r = make_request();

	assert_int_equal(request_refuse(r, "usage", "%s", "first\n"), REFUSED);
	assert_int_equal(request_refuse(r, "failed", "second"), REFUSED);
	assert_string_equal(r->refusal.code, "usage");
	assert_string_equal(r->refusal.text, "first\\x0a");
	request_settle(r, REFUSED);
}

/* The daemon ends before the operation. */
static void test_request_is_freed_first(void **state)
{
	struct request *r = make_request();
	struct op *op = &request_op_new(r, NULL, ended)->op;

	request_await(r, then);
	request_free(r);
	op_done(op, 0, "");
	assert_int_equal(n_ended + n_then, 0);
}

static void test_session_is_freed_first(void **state)
{
	struct request *r = make_request();
	struct op *op = &request_op_new(r, NULL, NULL)->op;

	request_await(r, then);
	r->session_lost = true;
	op_done(op, 0, "");
	assert_int_equal(n_then, 0);
}

static enum outcome then_stop(struct request *r)
{
	ky_loop_stop(&r->env->loop);
	return then(r);
}

/* A peer that does not reply delays the request by the timeout, exactly. */
static void test_silent_peer(void **state)
{
	struct ky_list peer = KY_LIST_INIT(peer);
	struct request *r = make_request();

	assert_non_null(ticket_new(&peer, TICKET_ACK, 1, request_barrier(r)));
	assert_int_equal(request_await_peers(r, APP_ANSWER_NS, then_stop), LATER);
	assert_int_equal(ky_loop_run(&env.loop), 0);
	assert_true(timed_out);
	assert_int_equal(now_ns, KY_NS_PER_MS + APP_ANSWER_NS);
	ticket_done_all(&peer);
}

/* Refused after the peers were asked, and before the request waits for them. */
static void test_refused_meanwhile(void **state)
{
	struct ky_list peer = KY_LIST_INIT(peer);
	struct request *r = make_request();

	assert_non_null(ticket_new(&peer, TICKET_ACK, 1, request_barrier(r)));
	request_settle(r, request_refuse(r, "failed", "why"));
	ticket_done_all(&peer);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_nothing_to_wait_for),
		TEST(test_all_operations),
		TEST(test_reason),
		TEST(test_request_is_freed_first),
		TEST(test_session_is_freed_first),
		TEST(test_silent_peer),
		TEST(test_refused_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
