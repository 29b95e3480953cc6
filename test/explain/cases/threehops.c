/* span: a:call expect: c:lookup */
#include "clock.h"
static int p[2][2], r[2][2];
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	int id;
	if (k) {
		while (read(p[k - 1][0], &id, 4) == 4 && id >= 0) {
			if (k == 1) {
				kymo_span_begin(b, forward);
				if (write(p[1][1], &id, 4) < 0 || read(r[1][0], &id, 4) < 0)
					break;
				kymo_span_end(b, forward);
			} else {
				kymo_span_begin(c, lookup);
				busy(30);
				if (!pick(20))
					usleep(4000);
				kymo_span_end(c, lookup);
			}
			if (write(r[k - 1][1], &id, 4) < 0)
				break;
		}
		id = -1;
		if (k == 1 && write(p[1][1], &id, 4) < 0)
			return 0;
		return x;
	}
	for (int i = 0; i < 500; i++) {
		kymo_span_begin(a, call, kymo_i32(key, pick(700)));
		busy(20);
		if (write(p[0][1], &i, 4) < 0 || read(r[0][0], &id, 4) < 0)
			break;
		kymo_span_end(a, call);
		usleep(250);
	}
	id = -1;
	if (write(p[0][1], &id, 4) < 0)
		return 0;
	return x;
}
int main(void)
{
	pthread_t t[16];
	for (int i = 0; i < 2; i++)
		if (pipe(p[i]) || pipe(r[i]))
			return 1;
	start(t, 3, work);
	finish(t, 3);
}
