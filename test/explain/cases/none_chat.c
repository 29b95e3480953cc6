/* span: chat:send expect: nothing */
#include "common.h"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *work(void *x)
{
	for (int i = 0; i < 500; i++) {
		kymo_span_begin(chat, send, kymo_i32(room, below(20)));
		spin(about(40));
		pthread_mutex_lock(&m);
		spin(about(6));
		pthread_mutex_unlock(&m);
		spin(about(40) * (1 + uniform()));
		kymo_span_end(chat, send);
		snooze(exponential(900));
	}
	return x;
}
int main(void)
{
	run_threads(4, work);
}
