/* span: web:fragment expect: cache:compute */
#include "clock.h"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static uint64_t expires;
static void *w(void *x)
{
	for (int i = 0; i < 500; i++) {
		kymo_span_begin(web, fragment, kymo_string(name, "sidebar"));
		pthread_mutex_lock(&m);
		if (clock_us() > expires) {
			kymo_span_begin(cache, compute);
			usleep(3000);
			kymo_span_end(cache, compute);
			expires = clock_us() + 50000;
		}
		pthread_mutex_unlock(&m);
		busy(50 + pick(20));
		kymo_span_end(web, fragment);
		usleep(500);
	}
	return x;
}
int main(void)
{
	pthread_t t[4];
	start(t, 4, w);
	finish(t, 4);
}
