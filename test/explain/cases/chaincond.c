/* span: a:get expect: c:io */
#include "clock.h"
static pthread_mutex_t ma = PTHREAD_MUTEX_INITIALIZER, mb = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ca = PTHREAD_COND_INITIALIZER, cb = PTHREAD_COND_INITIALIZER;
static int asked, answered, asked_b, answered_b;
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	if (k == 0) {
		for (int i = 1; i <= 500; i++) {
			kymo_span_begin(a, get, kymo_i32(key, pick(80)));
			pthread_mutex_lock(&ma);
			asked = i;
			pthread_cond_broadcast(&ca);
			while (answered < i)
				pthread_cond_wait(&ca, &ma);
			pthread_mutex_unlock(&ma);
			kymo_span_end(a, get);
			usleep(200);
		}
		return x;
	}
	if (k == 1) {
		for (int i = 1; i <= 500; i++) {
			pthread_mutex_lock(&ma);
			while (asked < i)
				pthread_cond_wait(&ca, &ma);
			pthread_mutex_unlock(&ma);
			kymo_span_begin(b, relay);
			pthread_mutex_lock(&mb);
			asked_b = i;
			pthread_cond_broadcast(&cb);
			while (answered_b < i)
				pthread_cond_wait(&cb, &mb);
			pthread_mutex_unlock(&mb);
			kymo_span_end(b, relay);
			pthread_mutex_lock(&ma);
			answered = i;
			pthread_cond_broadcast(&ca);
			pthread_mutex_unlock(&ma);
		}
		return x;
	}
	for (int i = 1; i <= 500; i++) {
		pthread_mutex_lock(&mb);
		while (asked_b < i)
			pthread_cond_wait(&cb, &mb);
		pthread_mutex_unlock(&mb);
		kymo_span_begin(c, io);
		usleep(pick(20) ? 60 : 4000);
		kymo_span_end(c, io);
		pthread_mutex_lock(&mb);
		answered_b = i;
		pthread_cond_broadcast(&cb);
		pthread_mutex_unlock(&mb);
	}
	return x;
}
int main(void)
{
	pthread_t t[16];

	start(t, 3, work);
	finish(t, 3);
}
