/* span: app:request expect: app:deploy */
#include "clock.h"
static int version, done;
static void *deployer(void *x)
{
	prctl(PR_SET_NAME, "deployer");
	while (!__atomic_load_n(&done, 0)) {
		usleep(25000);
		__atomic_fetch_add(&version, 1, 0);
		kymo_event(app, deploy, kymo_i32(version, version));
	}
	return x;
}
static void *w(void *x)
{
	int mine = 0;
	for (int i = 0; i < 900; i++) {
		int v;
		kymo_span_begin(app, request, kymo_i32(user, pick(1000)));
		v = __atomic_load_n(&version, 0);
		busy(50 + pick(20) + (v != mine ? 900 : 0));
		mine = v;
		kymo_span_end(app, request);
		usleep(300);
	}
	return x;
}
int main(void)
{
	pthread_t t[2], d;
	pthread_create(&d, 0, deployer, 0);
	start(t, 2, w);
	finish(t, 2);
	__atomic_store_n(&done, 1, 0);
	pthread_join(d, 0);
}
