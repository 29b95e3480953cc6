/* span: pipe:item expect: pipe:encode */
#include "common.h"
#define N 500
static struct queue {
	int v[N + 1];
	int n, at;
	pthread_mutex_t m;
	pthread_cond_t c;
} q[2] = {{.m = PTHREAD_MUTEX_INITIALIZER, .c = PTHREAD_COND_INITIALIZER},
	{.m = PTHREAD_MUTEX_INITIALIZER, .c = PTHREAD_COND_INITIALIZER}};
static void put(struct queue *k, int v)
{
	pthread_mutex_lock(&k->m);
	k->v[k->n++] = v;
	pthread_cond_signal(&k->c);
	pthread_mutex_unlock(&k->m);
}
static int get(struct queue *k)
{
	int v;
	pthread_mutex_lock(&k->m);
	while (k->at == k->n)
		pthread_cond_wait(&k->c, &k->m);
	v = k->v[k->at++];
	pthread_mutex_unlock(&k->m);
	return v;
}
static void *encoder(void *x)
{
	name_thread("encoder");
	for (int i = 0; i < N; i++) {
		int v = get(&q[0]);
		kymo_async_begin(pipe, encode, (uint64_t)v + 1);
		spin(about(chance(.05) ? 2500 : 80));
		kymo_async_end(pipe, encode, (uint64_t)v + 1);
		put(&q[1], v);
	}
	return x;
}
static void *writer(void *x)
{
	name_thread("writer");
	for (int i = 0; i < N; i++) {
		int v = get(&q[1]);
		kymo_async_begin(pipe, write, (uint64_t)v + 1);
		spin(about(40));
		kymo_async_end(pipe, write, (uint64_t)v + 1);
		kymo_async_end(pipe, item, (uint64_t)v + 1);
	}
	return x;
}
int main(void)
{
	pthread_t a, b;
	spin(1);
	pthread_create(&a, 0, encoder, 0);
	pthread_create(&b, 0, writer, 0);
	for (int i = 0; i < N; i++) {
		kymo_async_begin(pipe, item, (uint64_t)i + 1);
		put(&q[0], i);
		snooze(600);
	}
	pthread_join(a, 0);
	pthread_join(b, 0);
}
