/* span: srv:handle expect: waits for mutex .*logrot.* held in log:rotate */
#include "common.h"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool stop;
static void *rotate(void *x)
{
	name_thread("logrot");
	while (!stop) {
		snooze(70000);
		pthread_mutex_lock(&m);
		kymo_span_begin(log, rotate);
		for (int i = 0; i < 3; i++)
			snooze(2000);
		kymo_span_end(log, rotate);
		pthread_mutex_unlock(&m);
	}
	return x;
}
static void say(const char *what)
{
	pthread_mutex_lock(&m);
	spin(about(strlen(what)));
	pthread_mutex_unlock(&m);
}
static void *work(void *x)
{
	for (int i = 0; i < 400; i++) {
		kymo_span_begin(srv, handle);
		say("begin");
		spin(about(60));
		say("middle");
		spin(about(30));
		say("end");
		kymo_span_end(srv, handle);
		snooze(700);
	}
	return x;
}
int main(void)
{
	pthread_t t;
	spin(1);
	pthread_create(&t, 0, rotate, 0);
	run_threads(4, work);
	stop = 1;
	pthread_join(t, 0);
}
