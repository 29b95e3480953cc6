/* span: cache:get expect: cache:reload */
#include "clock.h"
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static int done;
static void *reloader(void *x)
{
	prctl(PR_SET_NAME, "reloader");
	while (!__atomic_load_n(&done, 0)) {
		usleep(45000);
		kymo_span_begin(cache, reload);
		pthread_rwlock_wrlock(&rw);
		busy(2500);
		pthread_rwlock_unlock(&rw);
		kymo_span_end(cache, reload);
	}
	return x;
}
static void *reader(void *x)
{
	for (int i = 0; i < 700; i++) {
		kymo_span_begin(cache, get, kymo_u64(key, (uint64_t)pick(100000)));
		pthread_rwlock_rdlock(&rw);
		busy(30 + 10 * dice());
		pthread_rwlock_unlock(&rw);
		kymo_span_end(cache, get);
		usleep(500);
	}
	return x;
}
int main(void)
{
	pthread_t t[2], s;
	pthread_create(&s, 0, reloader, 0);
	start(t, 2, reader);
	finish(t, 2);
	__atomic_store_n(&done, 1, 0);
	pthread_join(s, 0);
}
