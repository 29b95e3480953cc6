/* span: rt:tick expect: mutex .*(log:format|logger) spans: log:format */
#include "clock.h"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int done;
static void *hog(void *x)
{
	while (!__atomic_load_n(&done, 0)) {
		busy(6000);
		usleep(9000);
	}
	return x;
}
static void *logger(void *x)
{
	prctl(PR_SET_NAME, "logger");
	if (nice(15) < 0)
		errno = 0;
	while (!__atomic_load_n(&done, 0)) {
		pthread_mutex_lock(&m);
		kymo_span_begin(log, format);
		busy(800);
		kymo_span_end(log, format);
		pthread_mutex_unlock(&m);
		usleep(20000);
	}
	return x;
}
int main(void)
{
	pthread_t t[3], l;
	start(t, 2, hog);
	pthread_create(&l, 0, logger, 0);
	for (int i = 0; i < 900; i++) {
		kymo_span_begin(rt, tick, kymo_i32(seq, i));
		busy(20);
		pthread_mutex_lock(&m);
		busy(5);
		pthread_mutex_unlock(&m);
		kymo_span_end(rt, tick);
		usleep(900);
	}
	__atomic_store_n(&done, 1, 0);
	finish(t, 2);
	pthread_join(l, 0);
}
