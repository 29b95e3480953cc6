/* SPDX-License-Identifier: MIT */
/*
 * timeline [N]: three threads, each with N requests of nested spans; asynchronous spans, a counter
 * and a flow from the first thread to the others. A name of a span's field is hostile to HTML.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <kymo/span.h>

#define N_THREADS 3

static unsigned n_requests = 100;
static volatile unsigned work;

static void spin(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		work += i;
}

static void request(unsigned thread, unsigned i)
{
	uint64_t id = (uint64_t)thread << 32 | i;

	kymo_span_begin(line, request, kymo_u64(number, i));
	kymo_async_begin(line, order, id, kymo_u64(thread, thread));
	spin(50);
	for (unsigned k = 0; k < 3; k++) {
		kymo_span_begin(line, step, kymo_u64(step, k));
		spin(i % 10 ? 100 : 3000);
		kymo_span_end(line, step);
	}
	kymo_event(line, note,
		kymo_string(text, "</script><script>document.title='broken'</script>"),
		kymo_u64(i, i));
	kymo_counter(line, depth, (int64_t)(i % 7));
	kymo_async_end(line, order, id);
	kymo_span_end(line, request);
}

static void *run(void *arg)
{
	unsigned thread = (unsigned)(uintptr_t)arg;

	kymo_flow_end(line, handover, thread);
	for (unsigned i = 0; i < n_requests; i++)
		request(thread, i);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[N_THREADS];

	if (argc > 1)
		n_requests = (unsigned)atoi(argv[1]);
	kymo_span_begin(line, start);
	for (uintptr_t i = 0; i < N_THREADS; i++) {
		kymo_flow_begin(line, handover, i);
		pthread_create(&threads[i], NULL, run, (void *)i);
	}
	kymo_span_end(line, start);
	for (unsigned i = 0; i < N_THREADS; i++)
		pthread_join(threads[i], NULL);
	kymo_span_begin(line, unfinished);
	printf("%u\n", n_requests);
	return 0;
}
