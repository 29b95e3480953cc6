/* span: rt:frame expect: ready to run, and .*encoder */
#include "common.h"
#include <sched.h>
#include <signal.h>
int main(void)
{
	cpu_set_t c;
	pid_t p;
	CPU_ZERO(&c);
	CPU_SET(1, &c);
	sched_setaffinity(0, sizeof(c), &c);
	spin(1);
	p = fork();
	if (!p) {
		name_thread("encoder");
		for (;;) {
			spin(9000);
			snooze(60000);
		}
	}
	for (int i = 0; i < 1200; i++) {
		kymo_span_begin(rt, frame);
		spin(about(400));
		kymo_span_end(rt, frame);
		snooze(100);
	}
	kill(p, SIGKILL);
	wait(NULL);
}
