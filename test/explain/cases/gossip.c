/* span: kvs:put spans: nothing|every|while gossip expect: mutex .*held in gossip:merge */
#include "common.h"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int stop;
static void *gossip(void *x)
{
	name_thread("gossip");
	while (!stop) {
		snooze(37000);
		kymo_span_begin(gossip, round);
		pthread_mutex_lock(&m);
		kymo_span_begin(gossip, merge, kymo_i32(peers, 3 + below(9)));
		spin(about(2200));
		kymo_span_end(gossip, merge);
		pthread_mutex_unlock(&m);
		spin(about(300));
		kymo_span_end(gossip, round);
	}
	return x;
}
static void *work(void *x)
{
	for (int i = 0; i < 900; i++) {
		kymo_span_begin(kvs, put, kymo_i32(len, below(900)));
		spin(about(25));
		pthread_mutex_lock(&m);
		spin(about(6));
		pthread_mutex_unlock(&m);
		spin(about(15));
		kymo_span_end(kvs, put);
		snooze(350);
	}
	return x;
}
int main(void)
{
	pthread_t t;
	spin(1);
	pthread_create(&t, 0, gossip, 0);
	run_threads(2, work);
	stop = 1;
	pthread_join(t, 0);
}
