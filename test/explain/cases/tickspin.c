/* span: net:poll expect: (timer:tick|every \d) */
#include "clock.h"
static int lock, done;
static void *ticker(void *x)
{
	prctl(PR_SET_NAME, "ticker");
	while (!__atomic_load_n(&done, 0)) {
		usleep(40000);
		kymo_span_begin(timer, tick);
		while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
			;
		busy(1500);
		__atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
		kymo_span_end(timer, tick);
	}
	return x;
}
int main(void)
{
	pthread_t t;
	pthread_create(&t, 0, ticker, 0);
	for (int i = 0; i < 3000; i++) {
		kymo_span_begin(net, poll, kymo_i32(fd, pick(64)));
		busy(20);
		while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
			;
		busy(10);
		__atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
		kymo_span_end(net, poll);
		usleep(150);
	}
	__atomic_store_n(&done, 1, 0);
	pthread_join(t, 0);
}
