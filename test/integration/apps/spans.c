/* SPDX-License-Identifier: MIT */
/*
 * Spans of all kinds. The program executes its arguments one after another:
 *   forms       one span of each form, and two nested ones
 *   cplusplus   spans.h
 *   threads N   N threads, each with a span in a span, a hundred times; with the thread's number
 *   fork        a span of the parent around the child's, and one that begins in the parent and
 *               ends in the child
 *   open        one span that does not end, and one that never began
 *   wait        prints "ready", and waits for a line
 *   across      the same, in a span
 *   handler     a span in a signal handler, inside a span of the same name
 */
#include <kymo/span.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "spans.h"

static const unsigned char trace_id[16] = {0x4b, 0xf9, 0x2f, 0x35, 0x77, 0xb3, 0x4d, 0xa6, 0xa3,
	0xce, 0x92, 0x9d, 0x0e, 0x0e, 0x47, 0x36};
static const unsigned char span_id[8] = {0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7, 0x10};

static int early(int n)
{
	kymo_span(shop, scope, kymo_i32(n, n));
	kymo_span(shop, second_scope);

	if (n)
		return n;
	kymo_event(shop, late);
	return 0;
}

static void forms(void)
{
	kymo_span_begin(shop, work, kymo_u64(order, 7), kymo_string(who, "me"));
	kymo_span_begin(shop, work, kymo_u64(order, 8), kymo_string(who, "you"));
	kymo_span_end(shop, work);
	kymo_span_end(shop, work);
	early(0);
	early(1);
	kymo_async_begin(shop, request, 11, kymo_w3c_trace_id(trace_id), kymo_w3c_span_id(span_id),
		kymo_w3c_parent_id(span_id));
	kymo_async_begin(shop, request, 12, kymo_w3c_trace_id(trace_id), kymo_w3c_span_id(span_id),
		kymo_w3c_parent_id(span_id));
	kymo_async_end(shop, request, 11, kymo_i32(status, 200));
	kymo_async_end(shop, request, 12, kymo_i32(status, 404));
	kymo_flow_begin(shop, parcel, 5);
	kymo_flow_step(shop, parcel, 5, kymo_string(place, "harbour"));
	kymo_flow_end(shop, parcel, 5);
	kymo_counter(shop, stock, -3);
	kymo_counter_f64(shop, load, 0.5);
}

static void *work(void *arg)
{
	int32_t thread = (int32_t)syscall(SYS_gettid);

	(void)arg;
	for (int i = 0; i < 100; i++) {
		kymo_span(threads, outer, kymo_i32(thread, thread));
		kymo_span_begin(threads, inner, kymo_i32(thread, thread));
		kymo_span_end(threads, inner, kymo_i32(thread, thread));
	}
	return NULL;
}

static void run_threads(int n)
{
	pthread_t threads[64];

	for (int i = 0; i < n; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
}

static void fork_in_span(void)
{
	int32_t pid = (int32_t)getpid();
	pid_t child;

	kymo_span_begin(family, life, kymo_i32(pid, pid));
	kymo_async_begin(family, given, 1);
	child = fork();
	if (child == 0) {
		pid = (int32_t)getpid();
		kymo_span_begin(family, life, kymo_i32(pid, pid));
		kymo_async_end(family, given, 1);
		kymo_span_end(family, life);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	kymo_span_end(family, life);
}

static void handle(int signal)
{
	kymo_span(shop, handled, kymo_i32(signal, signal));
}

static void handler(void)
{
	kymo_span(shop, handled, kymo_i32(signal, 0));
	signal(SIGUSR1, handle);
	raise(SIGUSR1);
}

static void wait_for_line(void)
{
	puts("ready");
	fflush(stdout);
	(void)getchar();
}

static void across(void)
{
	kymo_span_begin(shop, work, kymo_u64(order, 9), kymo_string(who, "us"));
	wait_for_line();
	kymo_span_end(shop, work);
}

/* A request of OpenTelemetry's, and a span inside that knows nothing of it. */
static void traced(void)
{
	kymo_span_begin(shop, handle, kymo_w3c_trace_id(trace_id), kymo_w3c_span_id(span_id),
		kymo_i32(status, 0));
	kymo_span_begin(shop, query, kymo_string(table, "orders"));
	kymo_span_end(shop, query, kymo_f64(load, 0.5));
	kymo_span_end(shop, handle, kymo_i32(status, 200));
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "forms"))
			forms();
		else if (!strcmp(argv[i], "cplusplus"))
			spans_cplusplus(i);
		else if (!strcmp(argv[i], "threads"))
			run_threads(atoi(argv[++i]));
		else if (!strcmp(argv[i], "fork"))
			fork_in_span();
		else if (!strcmp(argv[i], "handler"))
			handler();
		else if (!strcmp(argv[i], "wait"))
			wait_for_line();
		else if (!strcmp(argv[i], "across"))
			across();
		else if (!strcmp(argv[i], "traced"))
			traced();
		else if (!strcmp(argv[i], "open")) {
			kymo_span_end(open, never_begun);
			kymo_span_begin(open, never_ended);
		} else
			return 2;
	}
	return 0;
}
