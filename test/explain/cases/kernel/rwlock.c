/* span: tab:read expect: until thread \d+ \(writer\) wakes it */
#include "common.h"
static pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;
static atomic_bool stop;
static void *writer(void *x)
{
	name_thread("writer");
	while (!stop) {
		snooze(20000);
		kymo_span_begin(tab, rebuild);
		pthread_rwlock_wrlock(&l);
		spin(2500);
		pthread_rwlock_unlock(&l);
		kymo_span_end(tab, rebuild);
	}
	return x;
}
static void *work(void *x)
{
	for (int i = 0; i < 500; i++) {
		kymo_span_begin(tab, read);
		spin(about(30));
		pthread_rwlock_rdlock(&l);
		spin(about(10));
		pthread_rwlock_unlock(&l);
		kymo_span_end(tab, read);
		snooze(500);
	}
	return x;
}
int main(void)
{
	pthread_t t;
	spin(1);
	pthread_create(&t, 0, writer, 0);
	run_threads(2, work);
	stop = 1;
	pthread_join(t, 0);
}
