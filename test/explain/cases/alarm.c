/* span: calc:step expect: sig:handler */
#include "clock.h"
#include <signal.h>
#include <sys/time.h>
static void handler(int s)
{
	(void)s;
	kymo_span_begin(sig, handler);
	busy(2500);
	kymo_span_end(sig, handler);
}
int main(void)
{
	struct itimerval v = {{0, 30000}, {0, 30000}};
	signal(SIGALRM, handler);
	setitimer(ITIMER_REAL, &v, 0);
	for (int i = 0; i < 6000; i++) {
		kymo_span_begin(calc, step, kymo_i32(i, i));
		for (volatile int k = 0; k < 500000; k++)
			;
		kymo_span_end(calc, step);
	}
}
