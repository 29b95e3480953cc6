/* span: kv:get expect: snapshot:save */
#include "common.h"
static pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;
static atomic_int stop;
static void *saver(void *x)
{
	name_thread("saver");
	while (!stop) {
		snooze(40000 + 30000 * uniform());
		kymo_span_begin(snapshot, save);
		pthread_rwlock_wrlock(&l);
		snooze(5000);
		pthread_rwlock_unlock(&l);
		kymo_span_end(snapshot, save);
	}
	return x;
}
static void *work(void *x)
{
	for (int i = 0; i < 700; i++) {
		kymo_span_begin(kv, get, kymo_i32(key, below(50)));
		spin(about(40));
		pthread_rwlock_rdlock(&l);
		spin(about(15));
		pthread_rwlock_unlock(&l);
		kymo_span_end(kv, get);
		snooze(300);
	}
	return x;
}
int main(void)
{
	pthread_t t;
	spin(1);
	pthread_create(&t, 0, saver, 0);
	run_threads(3, work);
	stop = 1;
	pthread_join(t, 0);
}
