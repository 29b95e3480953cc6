/* span: vm:op expect: gc:mark */
#include "common.h"
static pthread_rwlock_t world = PTHREAD_RWLOCK_INITIALIZER;
static atomic_bool stop;
static void *gc(void *x)
{
	name_thread("gc");
	while (!stop) {
		snooze(33000);
		kymo_span_begin(gc, mark);
		pthread_rwlock_wrlock(&world);
		snooze(3800);
		pthread_rwlock_unlock(&world);
		kymo_span_end(gc, mark);
	}
	return x;
}
static void *work(void *x)
{
	for (int i = 0; i < 700; i++) {
		kymo_span_begin(vm, op, kymo_i32(op, below(7)));
		for (int k = 0; k < 4; k++) {
			pthread_rwlock_rdlock(&world);
			spin(about(20));
			free(malloc(48));
			pthread_rwlock_unlock(&world);
		}
		kymo_span_end(vm, op);
		snooze(500);
	}
	return x;
}
int main(void)
{
	pthread_t g;
	spin(1);
	pthread_create(&g, 0, gc, 0);
	run_threads(4, work);
	stop = 1;
	pthread_join(g, 0);
}
