/* span: arch:read expect: age */
#include "clock.h"
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	for (int i = 0; i < 600; i++) {
		int age = pick(16) ? pick(300) : 400 + pick(3000);
		kymo_span_begin(arch, read, kymo_i32(age_days, age), kymo_i32(user, pick(4000)));
		busy(30 + pick(12));
		if (age > 365)
			usleep(1400);
		kymo_span_end(arch, read);
		usleep(100);
	}
	return x;
}
int main(void)
{
	pthread_t t[16];

	start(t, 2, work);
	finish(t, 2);
}
