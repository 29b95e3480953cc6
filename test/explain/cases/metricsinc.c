/* span: rpc:serve expect: (lock|metrics) spans: metrics */
#include "clock.h"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static long counters[64];
static void inc(int k)
{
	pthread_mutex_lock(&m);
	counters[k]++;
	pthread_mutex_unlock(&m);
}
static void *w(void *x)
{
	for (int i = 0; i < 350; i++) {
		int labels = pick(15) ? 3 : 4000;
		kymo_span_begin(rpc, serve, kymo_i32(metrics, labels > 3), kymo_i32(peer, pick(9)));
		busy(60 + pick(20));
		for (int k = 0; k < labels; k++)
			inc(k & 63);
		kymo_span_end(rpc, serve);
		usleep(200);
	}
	return x;
}
int main(void)
{
	pthread_t t[2];
	start(t, 2, w);
	finish(t, 2);
}
