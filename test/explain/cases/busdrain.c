/* span: bus:send expect: bus:drain */
#include "clock.h"
#include <semaphore.h>
static sem_t full, empty;
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	if (k) {
		for (int i = 1; i <= 1200; i++) {
			sem_wait(&full);
			if (i % 100 == 0) {
				kymo_span_begin(bus, drain);
				usleep(8000);
				kymo_span_end(bus, drain);
			}
			sem_post(&empty);
		}
		return x;
	}
	for (int i = 0; i < 1200; i++) {
		kymo_span_begin(bus, send, kymo_i32(topic, pick(6)));
		sem_wait(&empty);
		busy(20);
		sem_post(&full);
		kymo_span_end(bus, send);
		usleep(250);
	}
	return x;
}
int main(void)
{
	pthread_t t[16];
	sem_init(&full, 0, 0);
	sem_init(&empty, 0, 5);
	start(t, 2, work);
	finish(t, 2);
}
