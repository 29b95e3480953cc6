/* span: book:add expect: (book:rebalance) */
#include "clock.h"
static int next_ticket, serving, done;
static void lock(void)
{
	int t = __atomic_fetch_add(&next_ticket, 1, __ATOMIC_ACQ_REL);
	while (__atomic_load_n(&serving, __ATOMIC_ACQUIRE) != t)
		sched_yield();
}
static void unlock(void)
{
	__atomic_fetch_add(&serving, 1, __ATOMIC_RELEASE);
}
static void *rebalance(void *x)
{
	prctl(PR_SET_NAME, "rebalancer");
	while (!__atomic_load_n(&done, 0)) {
		usleep(50000);
		lock();
		kymo_span_begin(book, rebalance);
		usleep(3000);
		kymo_span_end(book, rebalance);
		unlock();
	}
	return x;
}
static void *w(void *x)
{
	for (int i = 0; i < 700; i++) {
		kymo_span_begin(book, add, kymo_i32(px, pick(1000)));
		lock();
		busy(8);
		unlock();
		busy(30);
		kymo_span_end(book, add);
		usleep(500);
	}
	return x;
}
int main(void)
{
	pthread_t t[2], r;
	pthread_create(&r, 0, rebalance, 0);
	start(t, 2, w);
	finish(t, 2);
	__atomic_store_n(&done, 1, 0);
	pthread_join(r, 0);
}
