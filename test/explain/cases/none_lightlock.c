/* span: ctr:add expect: nothing */
#include "common.h"
static pthread_mutex_t m[4] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
	PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static void *work(void *x)
{
	for (int i = 0; i < 700; i++) {
		int k = below(4);
		kymo_span_begin(ctr, add, kymo_i32(shard, k));
		spin(50 * exp(.5 * normal()));
		pthread_mutex_lock(&m[k]);
		spin(1);
		pthread_mutex_unlock(&m[k]);
		spin(50 * exp(.5 * normal()));
		kymo_span_end(ctr, add);
		snooze(250);
	}
	return x;
}
int main(void)
{
	run_threads(3, work);
}
