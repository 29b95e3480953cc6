/* span: kv:put expect: replica-2|raft:compact */
#include "common.h"
#define R 3
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t go = PTHREAD_COND_INITIALIZER, done = PTHREAD_COND_INITIALIZER;
static int seq, acks, stop;
static void *replica(void *x)
{
	int k = (int)(intptr_t)x, seen = 0;
	char n[16];
	snprintf(n, 16, "replica-%d", k);
	name_thread(n);
	for (;;) {
		pthread_mutex_lock(&m);
		while (seq == seen && !stop)
			pthread_cond_wait(&go, &m);
		if (seq == seen) {
			pthread_mutex_unlock(&m);
			return x;
		}
		seen = seq;
		pthread_mutex_unlock(&m);
		kymo_span_begin(raft, append);
		spin(about(40));
		kymo_span_end(raft, append);
		if (k == 2 && chance(.04)) {
			kymo_span_begin(raft, compact);
			snooze(1500);
			spin(about(500));
			kymo_span_end(raft, compact);
		}
		pthread_mutex_lock(&m);
		acks++;
		pthread_cond_signal(&done);
		pthread_mutex_unlock(&m);
	}
}
int main(void)
{
	pthread_t t[R];
	spin(1);
	for (int i = 0; i < R; i++)
		pthread_create(&t[i], NULL, replica, (void *)(intptr_t)i);
	for (int i = 0; i < 1000; i++) {
		kymo_span_begin(kv, put, kymo_i32(key, below(999)));
		pthread_mutex_lock(&m);
		acks = 0;
		seq++;
		pthread_cond_broadcast(&go);
		while (acks < R)
			pthread_cond_wait(&done, &m);
		pthread_mutex_unlock(&m);
		spin(about(30));
		kymo_span_end(kv, put);
		snooze(300);
	}
	pthread_mutex_lock(&m);
	stop = 1;
	pthread_cond_broadcast(&go);
	pthread_mutex_unlock(&m);
	for (int i = 0; i < R; i++)
		pthread_join(t[i], NULL);
}
