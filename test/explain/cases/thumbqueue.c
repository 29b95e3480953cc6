/* span: th:order expect: (raw:develop|th:queued) */
#include "common.h"
#define N 500
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int put, at, raw[N];
static void *maker(void *x)
{
	name_thread("maker");
	for (int i = 0; i < N; i++) {
		pthread_mutex_lock(&m);
		while (at == put)
			pthread_cond_wait(&c, &m);
		at++;
		pthread_mutex_unlock(&m);
		kymo_async_end(th, queued, (uint64_t)i + 1);
		kymo_async_begin(th, made, (uint64_t)i + 1);
		if (raw[i]) {
			kymo_span_begin(raw, develop);
			spin(about(3000));
			kymo_span_end(raw, develop);
		} else {
			spin(about(120));
		}
		kymo_async_end(th, made, (uint64_t)i + 1);
		kymo_async_end(th, order, (uint64_t)i + 1);
	}
	return x;
}
int main(void)
{
	pthread_t t;
	spin(1);
	pthread_create(&t, 0, maker, 0);
	for (int i = 0; i < N; i++) {
		raw[i] = chance(.03);
		kymo_async_begin(th, order, (uint64_t)i + 1);
		kymo_async_begin(th, queued, (uint64_t)i + 1);
		pthread_mutex_lock(&m);
		put++;
		pthread_cond_signal(&c);
		pthread_mutex_unlock(&m);
		snooze(exponential(900));
	}
	pthread_join(t, 0);
}
