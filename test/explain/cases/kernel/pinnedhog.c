/* span: rt:frame expect: ready to run, and .*(hog|encode) */
#include "common.h"
#include <sched.h>
static _Atomic int stop;
static void pin(void)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(0, &set);
	sched_setaffinity(0, sizeof(set), &set);
}
static void *hog(void *x)
{
	pin();
	name_thread("hog");
	while (!stop) {
		snooze(40000);
		kymo_span_begin(video, encode);
		spin(9000);
		kymo_span_end(video, encode);
	}
	return x;
}
int main(void)
{
	pthread_t t;
	spin(1);
	pthread_create(&t, 0, hog, 0);
	pin();
	for (int i = 0; i < 900; i++) {
		kymo_span_begin(rt, frame);
		spin(about(250));
		kymo_span_end(rt, frame);
		snooze(400);
	}
	stop = 1;
	pthread_join(t, 0);
}
