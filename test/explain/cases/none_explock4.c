/* span: api:put expect: nothing */
#include "common.h"
static pthread_mutex_t m[4];
static void *work(void *x)
{
	for (int i = 0; i < 700; i++) {
		kymo_span_begin(api, put, kymo_i32(shard, below(16)));
		spin(exponential(50));
		pthread_mutex_lock(&m[(intptr_t)x]);
		spin(about(20));
		pthread_mutex_unlock(&m[(intptr_t)x]);
		spin(exponential(150));
		kymo_span_end(api, put);
		snooze(exponential(400));
	}
	return x;
}
int main(void)
{
	for (int i = 0; i < 4; i++)
		pthread_mutex_init(&m[i], NULL);
	run_threads(4, work);
}
