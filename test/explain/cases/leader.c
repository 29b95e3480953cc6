/* span: kv:commit expect: condition .*(leader|raft:append|raft:snapshot) */
#include "common.h"
#define N 900
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work_c = PTHREAD_COND_INITIALIZER, done_c = PTHREAD_COND_INITIALIZER;
static int asked, done;
static void *leader(void *x)
{
	name_thread("leader");
	for (int i = 0; i < N; i++) {
		pthread_mutex_lock(&m);
		while (asked <= i)
			pthread_cond_wait(&work_c, &m);
		pthread_mutex_unlock(&m);
		kymo_span_begin(raft, append);
		spin(about(40));
		if (i % 45 == 10) {
			kymo_span_begin(raft, snapshot);
			snooze(4000);
			kymo_span_end(raft, snapshot);
		}
		kymo_span_end(raft, append);
		pthread_mutex_lock(&m);
		done = i + 1;
		pthread_cond_broadcast(&done_c);
		pthread_mutex_unlock(&m);
	}
	return x;
}
int main(void)
{
	pthread_t t;
	spin(1);
	pthread_create(&t, 0, leader, 0);
	for (int i = 0; i < N; i++) {
		kymo_span_begin(kv, commit);
		spin(about(20));
		pthread_mutex_lock(&m);
		asked = i + 1;
		pthread_cond_signal(&work_c);
		while (done <= i)
			pthread_cond_wait(&done_c, &m);
		pthread_mutex_unlock(&m);
		kymo_span_end(kv, commit);
		snooze(300);
	}
	pthread_join(t, 0);
}
