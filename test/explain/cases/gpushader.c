/* span: view:frame spans: shader:build expect: waits for a condition .*shader:build */
#include "common.h"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t asked = PTHREAD_COND_INITIALIZER, drawn = PTHREAD_COND_INITIALIZER;
static int want, have;
static void *gpu(void *x)
{
	name_thread("gpu");
	for (;;) {
		pthread_mutex_lock(&m);
		while (want == have)
			pthread_cond_wait(&asked, &m);
		pthread_mutex_unlock(&m);
		if (want < 0)
			return x;
		if (chance(.05)) {
			kymo_span_begin(shader, build, kymo_i32(id, below(100)));
			spin(about(2600));
			kymo_span_end(shader, build);
		}
		spin(about(60));
		pthread_mutex_lock(&m);
		have = want;
		pthread_cond_signal(&drawn);
		pthread_mutex_unlock(&m);
	}
}
int main(void)
{
	pthread_t t;
	spin(1);
	pthread_create(&t, 0, gpu, 0);
	for (int i = 1; i <= 600; i++) {
		kymo_span_begin(view, frame);
		spin(about(50));
		pthread_mutex_lock(&m);
		want = i;
		pthread_cond_signal(&asked);
		while (have != i)
			pthread_cond_wait(&drawn, &m);
		pthread_mutex_unlock(&m);
		kymo_span_end(view, frame);
		snooze(400);
	}
	pthread_mutex_lock(&m);
	want = -1;
	pthread_cond_signal(&asked);
	pthread_mutex_unlock(&m);
	pthread_join(t, 0);
}
