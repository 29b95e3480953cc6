/* span: q:push expect: q:compact */
#include "clock.h"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int done;
static void *compactor(void *x)
{
	prctl(PR_SET_NAME, "compactor");
	while (!__atomic_load_n(&done, 0)) {
		usleep(35000);
		pthread_mutex_lock(&m);
		kymo_span_begin(q, compact);
		busy(1800);
		kymo_span_end(q, compact);
		pthread_mutex_unlock(&m);
	}
	return x;
}
static void *pusher(void *x)
{
	for (int i = 0; i < 600; i++) {
		int wait = 20;
		kymo_span_begin(q, push, kymo_u32(bytes, 64u + (unsigned)pick(64)));
		while (pthread_mutex_trylock(&m)) {
			usleep((unsigned)wait);
			wait = wait < 300 ? wait * 2 : wait;
		}
		busy(8);
		pthread_mutex_unlock(&m);
		busy(40);
		kymo_span_end(q, push);
		usleep(350);
	}
	return x;
}
int main(void)
{
	pthread_t t[2], s;
	pthread_create(&s, 0, compactor, 0);
	start(t, 2, pusher);
	finish(t, 2);
	__atomic_store_n(&done, 1, 0);
	pthread_join(s, 0);
}
