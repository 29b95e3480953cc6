/* span: n:job expect: nothing */
#include "common.h"
static int q[3][2];
static void *stage(void *x)
{
	int k = (int)(intptr_t)x;
	uint64_t id;
	while (read(q[k][0], &id, sizeof(id)) == sizeof(id)) {
		if (k) {
			kymo_async_begin(n, back, id);
			spin(60 * exp(.5 * normal()));
			kymo_async_end(n, back, id);
			kymo_async_end(n, job, id);
			continue;
		}
		kymo_async_begin(n, front, id);
		spin(60 * exp(.5 * normal()));
		kymo_async_end(n, front, id);
		if (write(q[1][1], &id, sizeof(id)) < 0)
			break;
	}
	if (!k)
		close(q[1][1]);
	return x;
}
int main(void)
{
	pthread_t t[2];
	spin(1);
	if (pipe(q[0]) || pipe(q[1]))
		return 1;
	for (intptr_t k = 0; k < 2; k++)
		pthread_create(&t[k], 0, stage, (void *)k);
	for (uint64_t i = 1; i <= 600; i++) {
		kymo_async_begin(n, job, i, kymo_i32(w, below(9)));
		if (write(q[0][1], &i, sizeof(i)) < 0)
			return 1;
		snooze(200 + exponential(400));
	}
	close(q[0][1]);
	pthread_join(t[0], 0);
	pthread_join(t[1], 0);
}
