/* span: n:calc expect: nothing */
#include "clock.h"
static int done;
static void *timer(void *x)
{
	prctl(PR_SET_NAME, "timer");
	while (!__atomic_load_n(&done, 0)) {
		kymo_span_begin(n, beat);
		busy(50);
		kymo_span_end(n, beat);
		usleep(4000);
	}
	return x;
}
int main(void)
{
	pthread_t t;
	pthread_create(&t, 0, timer, 0);
	for (int i = 0; i < 1200; i++) {
		kymo_span_begin(n, calc, kymo_i32(x, pick(50)));
		busy(40 + 60 * pow(-log(dice() + 1e-9), 1.2));
		kymo_span_end(n, calc);
		usleep(150);
	}
	__atomic_store_n(&done, 1, 0);
	pthread_join(t, 0);
}
