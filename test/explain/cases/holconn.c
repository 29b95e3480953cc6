/* span: conn:request expect: upload|file:store|conn-1|conn:serve.*kind */
#include "common.h"
#define N 3
static struct q {
	pthread_mutex_t m;
	pthread_cond_t c;
	struct {
		uint64_t id;
		int up;
	} e[4096];
	int in, out;
} q[N];
static atomic_int stop;
static atomic_long ids;
static void *worker(void *x)
{
	struct q *w = &q[(intptr_t)x];
	char n[16];
	snprintf(n, 16, "conn-%d", (int)(intptr_t)x);
	name_thread(n);
	for (;;) {
		pthread_mutex_lock(&w->m);
		while (w->in == w->out && !stop)
			pthread_cond_wait(&w->c, &w->m);
		if (w->in == w->out) {
			pthread_mutex_unlock(&w->m);
			return x;
		}
		uint64_t id = w->e[w->out % 4096].id;
		int up = w->e[w->out % 4096].up;
		w->out++;
		pthread_mutex_unlock(&w->m);
		kymo_span_begin(conn, serve, kymo_string(kind, up ? "upload" : "get"));
		if (up) {
			kymo_span_begin(file, store);
			snooze(4000);
			spin(about(200));
			kymo_span_end(file, store);
		} else
			spin(about(80));
		kymo_span_end(conn, serve);
		kymo_async_end(conn, request, id);
	}
}
int main(void)
{
	pthread_t t[N];
	spin(1);
	for (int i = 0; i < N; i++) {
		pthread_mutex_init(&q[i].m, NULL);
		pthread_cond_init(&q[i].c, NULL);
		pthread_create(&t[i], NULL, worker, (void *)(intptr_t)i);
	}
	for (int i = 0; i < 2500; i++) {
		int k = below(N), up = k == 1 && chance(.03);
		struct q *w = &q[k];
		uint64_t id = (uint64_t)++ids;
		kymo_async_begin(conn, request, id, kymo_i32(conn, k),
			kymo_string(kind, up ? "upload" : "get"));
		pthread_mutex_lock(&w->m);
		w->e[w->in % 4096].id = id;
		w->e[w->in % 4096].up = up;
		w->in++;
		pthread_cond_signal(&w->c);
		pthread_mutex_unlock(&w->m);
		snooze(exponential(250));
	}
	stop = 1;
	for (int i = 0; i < N; i++) {
		pthread_mutex_lock(&q[i].m);
		pthread_cond_broadcast(&q[i].c);
		pthread_mutex_unlock(&q[i].m);
		pthread_join(t[i], NULL);
	}
}
