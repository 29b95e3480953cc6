/* span: q:job expect: (q:wait|report:render) */
#include "common.h"
#define N 400
static struct {
	uint64_t id;
	int heavy;
} ring[N * 2];
static atomic_int put, get, done;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *server(void *x)
{
	name_thread("server");
	while (!done || get < put) {
		int at;
		if (get >= put) {
			snooze(50);
			continue;
		}
		at = get++;
		kymo_async_end(q, wait, ring[at].id);
		kymo_async_begin(q, run, ring[at].id);
		if (ring[at].heavy) {
			kymo_span_begin(report, render);
			spin(3500);
			kymo_span_end(report, render);
		}
		spin(about(60));
		kymo_async_end(q, run, ring[at].id);
		kymo_async_end(q, job, ring[at].id);
	}
	return x;
}
int main(void)
{
	pthread_t t;
	spin(1);
	pthread_create(&t, 0, server, 0);
	for (int i = 0; i < N; i++) {
		ring[put].id = 1000u + (unsigned)i;
		ring[put].heavy = chance(.04);
		kymo_async_begin(q, job, ring[put].id, kymo_i32(user, below(9)));
		kymo_async_begin(q, wait, ring[put].id);
		put++;
		snooze(500);
	}
	done = 1;
	pthread_join(t, 0);
	pthread_mutex_destroy(&m);
}
