/* span: svc:op expect: nothing */
#include "clock.h"
static void *w(void *x)
{
	for (int i = 0; i < 600; i++) {
		double z = 0;
		for (int k = 0; k < 12; k++)
			z += dice();
		kymo_span_begin(svc, op, kymo_i32(user, pick(80)),
			kymo_string(kind, pick(2) ? "r" : "w"), kymo_i32(size, pick(5000)));
		busy(80 * exp(.45 * (z - 6)));
		kymo_span_end(svc, op);
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
