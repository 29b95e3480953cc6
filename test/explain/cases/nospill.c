/* span: roll:write spans: nothing|grotto|.* expect: mutex .*held .*(rotate|roll) */
#include "common.h"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int stop;
static void *rotate(void *x)
{
	name_thread("rotate");
	while (!stop) {
		snooze(20000 + 30000 * uniform());
		pthread_mutex_lock(&m);
		kymo_event(roll, rename, kymo_i32(n, 1));
		snooze(1800);
		kymo_event(roll, reopen, kymo_i32(fd, 7));
		pthread_mutex_unlock(&m);
	}
	return x;
}
static void *work(void *x)
{
	for (int i = 0; i < 1200; i++) {
		kymo_span_begin(roll, write);
		pthread_mutex_lock(&m);
		spin(about(8));
		pthread_mutex_unlock(&m);
		spin(about(20));
		kymo_span_end(roll, write);
		snooze(250);
	}
	return x;
}
int main(void)
{
	pthread_t t;
	spin(1);
	pthread_create(&t, 0, rotate, 0);
	run_threads(2, work);
	stop = 1;
	pthread_join(t, 0);
}
