/* span: calc:step expect: prof:sample|every */
#include "common.h"
#include <signal.h>
#include <sys/time.h>
static void tick(int n)
{
	(void)n;
	kymo_span_begin(prof, sample);
	spin(900);
	kymo_span_end(prof, sample);
}
int main(void)
{
	struct itimerval v = {{0, 37000}, {0, 37000}};
	spin(1);
	signal(SIGALRM, tick);
	setitimer(ITIMER_REAL, &v, NULL);
	for (int i = 0; i < 4000; i++) {
		kymo_span_begin(calc, step, kymo_f64(dt, uniform()));
		spin(about(150));
		kymo_span_end(calc, step);
		spin(200);
	}
}
