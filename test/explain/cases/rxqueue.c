/* span: nic:poll expect: only in thread \d+ \(rx-2\) */
#include "common.h"
static void *work(void *x)
{
	char name[16];
	snprintf(name, sizeof(name), "rx-%d", (int)(intptr_t)x);
	name_thread(name);
	for (int i = 0; i < 220; i++) {
		kymo_span_begin(nic, poll);
		spin(about(x == (void *)2 ? 800 : 100));
		kymo_span_end(nic, poll);
		snooze(1500);
	}
	return x;
}
int main(void)
{
	run_threads(8, work);
}
