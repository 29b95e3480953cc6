/* span: pipe:item expect: st:enrich */
#include "clock.h"
#define N 600
static int q[2][2];
static void *decode(void *x)
{
	uint64_t id;
	while (read(q[0][0], &id, sizeof(id)) == sizeof(id)) {
		kymo_span_begin(st, decode);
		busy(50);
		kymo_span_end(st, decode);
		if (write(q[1][1], &id, sizeof(id)) < 0)
			break;
	}
	close(q[1][1]);
	return x;
}
static void *enrich(void *x)
{
	uint64_t id;
	while (read(q[1][0], &id, sizeof(id)) == sizeof(id)) {
		kymo_span_begin(st, enrich, kymo_u64(item, id));
		busy(50);
		if (id % 40 == 11)
			usleep(4000);
		kymo_span_end(st, enrich);
		kymo_async_end(pipe, item, id);
	}
	return x;
}
int main(void)
{
	pthread_t t[2];
	if (pipe(q[0]) || pipe(q[1]))
		return 1;
	pthread_create(&t[0], 0, decode, 0);
	pthread_create(&t[1], 0, enrich, 0);
	for (uint64_t i = 1; i < N; i++) {
		kymo_async_begin(pipe, item, i);
		if (write(q[0][1], &i, sizeof(i)) < 0)
			break;
		usleep(450);
	}
	close(q[0][1]);
	finish(t, 2);
}
