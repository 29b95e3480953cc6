/* span: kv:put expect: kv:snapshot */
#include "clock.h"
static int l, done;
static void lock(void)
{
	while (__atomic_exchange_n(&l, 1, __ATOMIC_ACQUIRE))
		usleep(30);
}
static void unlock(void)
{
	__atomic_store_n(&l, 0, __ATOMIC_RELEASE);
}
static void *snap(void *x)
{
	prctl(PR_SET_NAME, "snapshotter");
	while (!__atomic_load_n(&done, 0)) {
		usleep(50000);
		lock();
		kymo_span_begin(kv, snapshot);
		usleep(3500);
		kymo_span_end(kv, snapshot);
		unlock();
	}
	return x;
}
static void *put(void *x)
{
	for (int i = 0; i < 700; i++) {
		kymo_span_begin(kv, put, kymo_i32(key, pick(10000)));
		busy(30);
		lock();
		busy(6);
		unlock();
		kymo_span_end(kv, put);
		usleep(500);
	}
	return x;
}
int main(void)
{
	pthread_t t[2], s;
	pthread_create(&s, 0, snap, 0);
	start(t, 2, put);
	finish(t, 2);
	__atomic_store_n(&done, 1, 0);
	pthread_join(s, 0);
}
