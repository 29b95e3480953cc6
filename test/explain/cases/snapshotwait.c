/* span: raft:append expect: raft:snapshot */
#include "clock.h"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int snapping, done;
static void *snap(void *x)
{
	prctl(PR_SET_NAME, "snapshotter");
	while (!__atomic_load_n(&done, 0)) {
		usleep(45000);
		pthread_mutex_lock(&m);
		snapping = 1;
		pthread_mutex_unlock(&m);
		kymo_span_begin(raft, snapshot);
		usleep(4000);
		kymo_span_end(raft, snapshot);
		pthread_mutex_lock(&m);
		snapping = 0;
		pthread_cond_broadcast(&c);
		pthread_mutex_unlock(&m);
	}
	return x;
}
static void *w(void *x)
{
	for (int i = 0; i < 600; i++) {
		kymo_span_begin(raft, append, kymo_i32(term, 3), kymo_i32(entries, 1 + pick(9)));
		busy(20);
		pthread_mutex_lock(&m);
		while (snapping)
			pthread_cond_wait(&c, &m);
		pthread_mutex_unlock(&m);
		busy(40 + pick(10));
		kymo_span_end(raft, append);
		usleep(500);
	}
	return x;
}
int main(void)
{
	pthread_t t[2], s;
	pthread_create(&s, 0, snap, 0);
	start(t, 2, w);
	finish(t, 2);
	__atomic_store_n(&done, 1, 0);
	pthread_join(s, 0);
}
