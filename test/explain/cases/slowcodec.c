/* span: av:packet expect: only in thread [0-9]+ \(soft-3\) */
#include "common.h"
static void *work(void *x)
{
	char name[16];
	snprintf(name, sizeof(name), (intptr_t)x == 3 ? "soft-%d" : "hard-%d", (int)(intptr_t)x);
	name_thread(name);
	for (int i = 0; i < 220; i++) {
		kymo_span_begin(av, packet, kymo_i32(pts, i * 40));
		spin(about(20));
		kymo_span_begin(av, decode);
		spin(about((intptr_t)x == 3 ? 700 : 90));
		kymo_span_end(av, decode);
		kymo_span_end(av, packet);
		snooze(900);
	}
	return x;
}
int main(void)
{
	run_threads(8, work);
}
