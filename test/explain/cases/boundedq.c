/* span: ingest:push expect: db:flush|waits for a condition until .*writer */
#include "clock.h"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t room = PTHREAD_COND_INITIALIZER, some = PTHREAD_COND_INITIALIZER;
static int n, done;
static void *writer(void *x)
{
	prctl(PR_SET_NAME, "writer");
	for (int i = 1;; i++) {
		pthread_mutex_lock(&m);
		while (!n && !done)
			pthread_cond_wait(&some, &m);
		if (!n)
			break;
		n--;
		pthread_cond_signal(&room);
		pthread_mutex_unlock(&m);
		busy(60);
		if (i % 100 == 0) {
			kymo_span_begin(db, flush);
			usleep(15000);
			kymo_span_end(db, flush);
		}
	}
	pthread_mutex_unlock(&m);
	return x;
}
int main(void)
{
	pthread_t t;
	pthread_create(&t, 0, writer, 0);
	for (int i = 0; i < 1800; i++) {
		kymo_span_begin(ingest, push, kymo_i32(len, pick(500)));
		busy(20);
		pthread_mutex_lock(&m);
		while (n >= 12)
			pthread_cond_wait(&room, &m);
		n++;
		pthread_cond_signal(&some);
		pthread_mutex_unlock(&m);
		kymo_span_end(ingest, push);
		usleep(200);
	}
	pthread_mutex_lock(&m);
	done = 1;
	pthread_cond_signal(&some);
	pthread_mutex_unlock(&m);
	pthread_join(t, 0);
}
