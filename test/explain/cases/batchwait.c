/* span: kafka:send expect: (waits for a condition|kafka:linger|sender) spans: kafka:linger */
#include "clock.h"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int queued, sent, done;
static void *sender(void *x)
{
	prctl(PR_SET_NAME, "sender");
	while (!__atomic_load_n(&done, 0)) {
		kymo_span_begin(kafka, linger);
		/* sends when a batch is full, or after 10 ms */
		for (int i = 0; i < 100 && __atomic_load_n(&queued, 0) - sent < 1; i++)
			usleep(100);
		if (!pick(20))
			usleep(6000);
		kymo_span_end(kafka, linger);
		pthread_mutex_lock(&m);
		sent = queued;
		pthread_cond_broadcast(&c);
		pthread_mutex_unlock(&m);
	}
	return x;
}
int main(void)
{
	pthread_t t;
	pthread_create(&t, 0, sender, 0);
	for (int i = 0; i < 900; i++) {
		int mine;
		kymo_span_begin(kafka, send, kymo_i32(partition, pick(12)));
		busy(20);
		pthread_mutex_lock(&m);
		mine = ++queued;
		while (sent < mine)
			pthread_cond_wait(&c, &m);
		pthread_mutex_unlock(&m);
		kymo_span_end(kafka, send);
		usleep(200);
	}
	__atomic_store_n(&done, 1, 0);
	pthread_join(t, 0);
}
