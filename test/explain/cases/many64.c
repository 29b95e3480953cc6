/* span: chat:post spans: room:archive expect: waits for mutex .*held in room:archive */
#include "common.h"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *work(void *x)
{
	for (int i = 0; i < 40; i++) {
		if (x == (void *)17 && i % 8 == 5) {
			pthread_mutex_lock(&m);
			kymo_span_begin(room, archive);
			snooze(5000);
			kymo_span_end(room, archive);
			pthread_mutex_unlock(&m);
		}
		kymo_span_begin(chat, post);
		spin(about(20));
		pthread_mutex_lock(&m);
		spin(about(3));
		pthread_mutex_unlock(&m);
		kymo_span_end(chat, post);
		snooze(6000 + exponential(2000));
	}
	return x;
}
int main(void)
{
	run_threads(48, work);
}
