/* span: svc:handle expect: log:flush */
#include "clock.h"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static size_t fill;
static void logline(int n)
{
	pthread_mutex_lock(&m);
	fill += (size_t)n;
	if (fill > 16384) {
		kymo_event(log, flush, kymo_u64(bytes, fill));
		usleep(1500);
		fill = 0;
	}
	pthread_mutex_unlock(&m);
}
static void *worker(void *x)
{
	for (int i = 0; i < 800; i++) {
		kymo_span_begin(svc, handle, kymo_i32(route, pick(12)));
		logline(80);
		busy(60 + pick(30));
		logline(120);
		kymo_span_end(svc, handle);
		usleep(300);
	}
	return x;
}
int main(void)
{
	pthread_t t[1];
	start(t, 1, worker);
	finish(t, 1);
}
