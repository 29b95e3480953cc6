/* span: push:notify expect: (?=.*ios)(?=.*version) */
#include "clock.h"
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	for (int i = 0; i < 800; i++) {
		int ios = pick(2), version = 6 + pick(12);
		kymo_span_begin(push, notify, kymo_string(os, ios ? "ios" : "android"),
			kymo_i32(version, version), kymo_i32(device, pick(90000)));
		busy(30 + pick(10) + (ios && version < 8 ? 550 : 0));
		kymo_span_end(push, notify);
		usleep(90);
	}
	return x;
}
int main(void)
{
	pthread_t t[16];

	start(t, 2, work);
	finish(t, 2);
}
