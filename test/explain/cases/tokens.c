/* span: api:call expect: rl:wait */
#include "common.h"
static atomic_int tokens;
static atomic_bool stop;
static void *refill(void *x)
{
	while (!stop) {
		snooze(20000);
		tokens = 110;
	}
	return x;
}
static void *work(void *x)
{
	for (int i = 0; i < 900; i++) {
		kymo_span_begin(api, call);
		spin(about(25));
		while (atomic_fetch_sub(&tokens, 1) <= 0) {
			kymo_span_begin(rl, wait);
			snooze(1500);
			kymo_span_end(rl, wait);
		}
		spin(about(25));
		kymo_span_end(api, call);
		snooze(300);
	}
	return x;
}
int main(void)
{
	pthread_t t;
	tokens = 110;
	spin(1);
	pthread_create(&t, 0, refill, 0);
	run_threads(3, work);
	stop = 1;
	pthread_join(t, 0);
}
