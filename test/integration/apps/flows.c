/* SPDX-License-Identifier: MIT */
/* Records requests between two hosts, as events of one program: flows N */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <kymo/span.h>
#include <kymo/tracepoint.h>

/* A message takes a microsecond. */
static void travel(void)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - begin.tv_sec) * 1000000000LL + now.tv_nsec - begin.tv_nsec < 1000);
}

int main(int argc, char **argv)
{
	const uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	unsigned char trace[16] = {1}, caller[8] = {0}, callee[8] = {1};

	for (uint64_t i = 1; i <= n; i++) {
		memcpy(caller + 1, &i, 7);
		memcpy(callee + 1, &i, 7);
		kymo_event(rpc, send, kymo_u64(id, i), kymo_w3c_trace_id(trace),
			kymo_w3c_span_id(caller));
		travel();
		kymo_event(rpc, receive, kymo_u64(id, i), kymo_w3c_trace_id(trace),
			kymo_w3c_span_id(callee), kymo_w3c_parent_id(caller));
		kymo_event(rpc, answer, kymo_u64(id, i), kymo_w3c_trace_id(trace),
			kymo_w3c_span_id(callee), kymo_w3c_parent_id(caller));
		travel();
		kymo_event(rpc, answered, kymo_u64(id, i), kymo_w3c_trace_id(trace),
			kymo_w3c_span_id(caller));
	}
	return 0;
}
