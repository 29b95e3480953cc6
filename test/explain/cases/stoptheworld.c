/* span: app:tx expect: gc:pause */
#include "clock.h"
static int stop_world, parked, done;
static void *collector(void *x)
{
	prctl(PR_SET_NAME, "G1 Main");
	while (!__atomic_load_n(&done, 0)) {
		usleep(50000);
		kymo_span_begin(gc, pause, kymo_string(cause, "G1 Evacuation"));
		__atomic_store_n(&stop_world, 1, __ATOMIC_SEQ_CST);
		busy(4000);
		__atomic_store_n(&stop_world, 0, __ATOMIC_SEQ_CST);
		kymo_span_end(gc, pause);
	}
	return x;
}
static void safepoint(void)
{
	while (__atomic_load_n(&stop_world, __ATOMIC_SEQ_CST))
		usleep(50), parked++;
}
static void *mutator(void *x)
{
	for (int i = 0; i < 700; i++) {
		kymo_span_begin(app, tx, kymo_i32(items, pick(20)));
		for (int k = 0; k < 8; k++) {
			busy(15);
			safepoint();
		}
		kymo_span_end(app, tx);
		usleep(400);
	}
	return x;
}
int main(void)
{
	pthread_t t[2], g;
	pthread_create(&g, 0, collector, 0);
	start(t, 2, mutator);
	finish(t, 2);
	__atomic_store_n(&done, 1, 0);
	pthread_join(g, 0);
}
