/* span: net:poll expect: only in thread \d+ \(net-5\) */
#include "common.h"
static void *work(void *x)
{
	char name[16];
	snprintf(name, sizeof name, "net-%d", (int)(intptr_t)x);
	name_thread(name);
	for (int i = 0; i < 200; i++) {
		kymo_span_begin(net, poll, kymo_u16(events, (uint16_t)below(30)));
		spin(about(60));
		if ((intptr_t)x == 5)
			snooze(700);
		kymo_span_end(net, poll);
		snooze(300);
	}
	return x;
}
int main(void)
{
	run_threads(8, work);
}
