/* span: rcu:sync expect: scan:all */
#include "clock.h"
static int reading[3], done;
static void *reader(void *x)
{
	int k = (int)(intptr_t)x;
	while (!__atomic_load_n(&done, 0)) {
		__atomic_store_n(&reading[k], 1, __ATOMIC_SEQ_CST);
		if (k == 2 && !pick(60)) {
			kymo_span_begin(scan, all);
			usleep(5000);
			kymo_span_end(scan, all);
		} else {
			kymo_span_begin(scan, one);
			busy(20);
			kymo_span_end(scan, one);
		}
		__atomic_store_n(&reading[k], 0, __ATOMIC_SEQ_CST);
		usleep(400);
	}
	return x;
}
int main(void)
{
	pthread_t t[3];
	start(t, 3, reader);
	for (int i = 0; i < 900; i++) {
		kymo_span_begin(rcu, sync);
		busy(20);
		for (int k = 0; k < 3; k++)
			while (__atomic_load_n(&reading[k], __ATOMIC_SEQ_CST))
				usleep(20);
		kymo_span_end(rcu, sync);
		usleep(600);
	}
	__atomic_store_n(&done, 1, 0);
	finish(t, 3);
}
