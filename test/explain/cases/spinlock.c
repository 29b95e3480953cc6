/* span: tx:begin expect: (snap:take|while) */
#include "common.h"
static pthread_spinlock_t l;
static atomic_bool stop;
static void *snap(void *x)
{
	name_thread("snap");
	while (!stop) {
		snooze(26000);
		kymo_span_begin(snap, take);
		pthread_spin_lock(&l);
		spin(2500);
		pthread_spin_unlock(&l);
		kymo_span_end(snap, take);
	}
	return x;
}
int main(void)
{
	pthread_t t;
	pthread_spin_init(&l, 0);
	spin(1);
	pthread_create(&t, 0, snap, 0);
	for (int i = 0; i < 1500; i++) {
		kymo_span_begin(tx, begin);
		spin(about(25));
		pthread_spin_lock(&l);
		spin(about(4));
		pthread_spin_unlock(&l);
		kymo_span_end(tx, begin);
		snooze(350);
	}
	stop = 1;
	pthread_join(t, 0);
}
