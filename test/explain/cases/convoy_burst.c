/* span: log:write spans: log:rotate expect: waits for mutex .* held in (log:rotate|log:append) */
#include "common.h"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *work(void *x)
{
	for (int i = 0; i < 300; i++) {
		kymo_span_begin(log, write);
		spin(about(40));
		pthread_mutex_lock(&m);
		kymo_span_begin(log, append);
		spin(about(10));
		kymo_span_end(log, append);
		if (chance(.01)) {
			kymo_span_begin(log, rotate);
			snooze(4000);
			kymo_span_end(log, rotate);
		}
		pthread_mutex_unlock(&m);
		kymo_span_end(log, write);
		snooze(500);
	}
	return x;
}
int main(void)
{
	run_threads(6, work);
}
