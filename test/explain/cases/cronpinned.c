/* span: ui:frame expect: cron:job */
#include "clock.h"
static void pin(void)
{
	cpu_set_t s;
	CPU_ZERO(&s);
	CPU_SET(0, &s);
	sched_setaffinity(0, sizeof(s), &s);
}
int main(void)
{
	pid_t p = fork();
	pin();
	if (!p) {
		prctl(PR_SET_NAME, "cron");
		if (nice(-1) < 0)
			errno = 0;
		for (int i = 0; i < 12; i++) {
			usleep(90000);
			kymo_span_begin(cron, job, kymo_i32(n, i));
			busy(25000);
			kymo_span_end(cron, job);
		}
		_exit(0);
	}
	for (int i = 0; i < 500; i++) {
		kymo_span_begin(ui, frame, kymo_i32(widgets, pick(40)));
		for (volatile int k = 0; k < 3000000; k++)
			;
		kymo_span_end(ui, frame);
		usleep(500);
	}
	waitpid(p, 0, 0);
}
