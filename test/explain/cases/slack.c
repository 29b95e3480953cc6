/* span: rtp:send expect: pacer-2|thread */
#include "common.h"
static void *sender(void *x)
{
	int k = (int)(intptr_t)x;
	char n[16];
	snprintf(n, sizeof(n), "pacer-%d", k);
	name_thread(n);
	if (k == 2)
		prctl(PR_SET_TIMERSLACK, 3000000UL);
	for (int i = 0; i < 500; i++) {
		kymo_span_begin(rtp, send, kymo_i32(seq, i), kymo_i32(bytes, 800 + below(400)));
		spin(about(20));
		snooze(200);
		spin(about(20));
		kymo_span_end(rtp, send);
		usleep(1000);
	}
	return x;
}
int main(void)
{
	run_threads(6, sender);
}
