/* span: vm:request expect: gc:(mark|pause) */
#include "common.h"
static atomic_int paused, stop;
static void *collector(void *x)
{
	name_thread("collector");
	while (!stop) {
		snooze(45000);
		kymo_span_begin(gc, mark);
		paused = 1;
		snooze(6000);
		paused = 0;
		kymo_span_end(gc, mark);
	}
	return x;
}
static void *work(void *x)
{
	for (int i = 0; i < 600; i++) {
		kymo_span_begin(vm, request, kymo_i32(kind, below(3)));
		for (int k = 0; k < 5; k++) {
			spin(about(30));
			while (paused)
				snooze(100);
		}
		kymo_span_end(vm, request);
		snooze(250);
	}
	return x;
}
int main(void)
{
	pthread_t t;
	spin(1);
	pthread_create(&t, 0, collector, 0);
	run_threads(2, work);
	stop = 1;
	pthread_join(t, 0);
}
