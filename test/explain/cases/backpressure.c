/* span: src:emit expect: condition .*(sink|sink:flush) */
#include "common.h"
#define CAP 8
#define N   1500
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t room = PTHREAD_COND_INITIALIZER, some = PTHREAD_COND_INITIALIZER;
static int n;
static void *sink(void *x)
{
	name_thread("sink");
	for (int i = 0; i < N; i++) {
		pthread_mutex_lock(&m);
		while (!n)
			pthread_cond_wait(&some, &m);
		pthread_mutex_unlock(&m);
		spin(about(20));
		if (i % 100 == 60) {
			kymo_span_begin(sink, flush);
			snooze(9000);
			kymo_span_end(sink, flush);
		}
		pthread_mutex_lock(&m);
		n--;
		pthread_cond_signal(&room);
		pthread_mutex_unlock(&m);
	}
	return x;
}
int main(void)
{
	pthread_t t;
	spin(1);
	pthread_create(&t, 0, sink, 0);
	for (int i = 0; i < N; i++) {
		kymo_span_begin(src, emit, kymo_i32(seq, i));
		spin(about(15));
		pthread_mutex_lock(&m);
		while (n == CAP)
			pthread_cond_wait(&room, &m);
		n++;
		pthread_cond_signal(&some);
		pthread_mutex_unlock(&m);
		kymo_span_end(src, emit);
		snooze(250);
	}
	pthread_join(t, 0);
}
