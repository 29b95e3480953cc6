/* span: pkt:process expect: each 10th */
#include "clock.h"
static void *w(void *x)
{
	for (int i = 1; i <= 350; i++) {
		kymo_span_begin(pkt, process, kymo_i32(proto, pick(4)));
		busy(30 + pick(10) + (i % 10 ? 0 : 250));
		kymo_span_end(pkt, process);
		usleep(150);
	}
	return x;
}
int main(void)
{
	pthread_t t[3];
	start(t, 3, w);
	finish(t, 3);
}
