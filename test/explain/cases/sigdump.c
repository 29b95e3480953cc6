/* span: calc:row expect: sig:dump */
#include "clock.h"
#include <signal.h>
static pthread_t victim;
static int done;
static void dump(int s)
{
	(void)s;
	kymo_span_begin(sig, dump);
	for (int i = 0; i < 3; i++)
		busy(700);
	kymo_span_end(sig, dump);
}
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	if (k) {
		while (!__atomic_load_n(&done, 0)) {
			usleep(30000);
			pthread_kill(victim, SIGUSR1);
		}
		return x;
	}
	victim = pthread_self();
	for (int i = 0; i < 3000; i++) {
		kymo_span_begin(calc, row, kymo_i32(row, i));
		busy(150);
		kymo_span_end(calc, row);
		busy(20);
	}
	__atomic_store_n(&done, 1, 0);
	return x;
}
int main(void)
{
	pthread_t t[16];
	signal(SIGUSR1, dump);
	victim = pthread_self();
	start(t, 2, work);
	finish(t, 2);
}
