/* span: cache:put expect: mem:used */
#include "clock.h"
static long used;
static int done;
static void *monitor(void *x)
{
	prctl(PR_SET_NAME, "monitor");
	while (!__atomic_load_n(&done, 0)) {
		__atomic_store_n(&used, pick(12) ? 300 + pick(300) : 950 + pick(40), 0);
		kymo_counter(mem, used, __atomic_load_n(&used, 0));
		usleep(7000);
	}
	return x;
}
int main(void)
{
	pthread_t t;
	used = 400;
	pthread_create(&t, 0, monitor, 0);
	for (int i = 0; i < 2500; i++) {
		kymo_span_begin(cache, put, kymo_u32(bytes, 100u + (unsigned)pick(900)));
		busy(50 + pick(20));
		if (__atomic_load_n(&used, 0) > 900)
			busy(600); /* reclaims directly */
		kymo_span_end(cache, put);
		usleep(200);
	}
	__atomic_store_n(&done, 1, 0);
	pthread_join(t, 0);
}
