/* span: acct:post expect: (ledger:close|mutex) */
#include "clock.h"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int done;
static void *closer(void *x)
{
	prctl(PR_SET_NAME, "closer");
	while (!__atomic_load_n(&done, 0)) {
		usleep(45000);
		pthread_mutex_lock(&m);
		kymo_span_begin(ledger, close);
		usleep(4500);
		kymo_span_end(ledger, close);
		pthread_mutex_unlock(&m);
	}
	return x;
}
static void *w(void *x)
{
	for (int i = 0; i < 500; i++) {
		struct timespec t;
		kymo_span_begin(acct, post, kymo_i32(amount, pick(900)));
		do {
			clock_gettime(CLOCK_REALTIME, &t);
			t.tv_nsec += 2000000;
			if (t.tv_nsec >= 1000000000)
				t.tv_sec++, t.tv_nsec -= 1000000000;
		} while (pthread_mutex_timedlock(&m, &t));
		busy(10);
		pthread_mutex_unlock(&m);
		busy(30);
		kymo_span_end(acct, post);
		usleep(500);
	}
	return x;
}
int main(void)
{
	pthread_t t[2], c;
	pthread_create(&c, 0, closer, 0);
	start(t, 2, w);
	finish(t, 2);
	__atomic_store_n(&done, 1, 0);
	pthread_join(c, 0);
}
