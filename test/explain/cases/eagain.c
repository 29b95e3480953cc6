/* span: nb:send expect: EAGAIN */
#include "clock.h"
static void *w(void *x)
{
	for (int i = 0; i < 450; i++) {
		int bad = !pick(16);
		kymo_span_begin(nb, send, kymo_i32(fd, pick(50)));
		busy(25 + pick(10));
		if (bad)
			usleep(1500);
		kymo_span_end(nb, send, kymo_string(error, bad ? "EAGAIN" : "OK"));
		usleep(150);
	}
	return x;
}
int main(void)
{
	pthread_t t[2];
	start(t, 2, w);
	finish(t, 2);
}
