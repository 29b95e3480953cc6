/* span: sock:read expect: -110 */
#include "clock.h"
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	for (int i = 0; i < 450; i++) {
		int bad = !pick(18);
		kymo_span_begin(sock, read, kymo_i32(fd, pick(60)));
		busy(20 + pick(10));
		if (bad)
			usleep(2000);
		kymo_span_end(sock, read, kymo_i32(result, bad ? -110 : 1));
		usleep(150);
	}
	return x;
}
int main(void)
{
	pthread_t t[16];

	start(t, 2, work);
	finish(t, 2);
}
