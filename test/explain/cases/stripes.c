/* span: tab:put expect: (waits for mutex .*held in reindex:stripe|stripe = 3) */
#include "common.h"
#define N 8
static pthread_mutex_t m[N];
static atomic_bool stop;
static void *reindex(void *x)
{
	name_thread("reindex");
	while (!stop) {
		snooze(6000);
		kymo_span_begin(reindex, stripe);
		pthread_mutex_lock(&m[3]);
		snooze(3000);
		pthread_mutex_unlock(&m[3]);
		kymo_span_end(reindex, stripe);
	}
	return x;
}
static void *work(void *x)
{
	for (int i = 0; i < 600; i++) {
		int k = below(N);
		kymo_span_begin(tab, put, kymo_i32(stripe, k));
		spin(about(15));
		pthread_mutex_lock(&m[k]);
		spin(about(10));
		pthread_mutex_unlock(&m[k]);
		kymo_span_end(tab, put);
		snooze(400);
	}
	return x;
}
int main(void)
{
	pthread_t t;
	for (int i = 0; i < N; i++)
		pthread_mutex_init(&m[i], NULL);
	spin(1);
	pthread_create(&t, 0, reindex, 0);
	run_threads(4, work);
	stop = 1;
	pthread_join(t, 0);
}
