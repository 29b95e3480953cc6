/* span: c:send expect: (between c:dial_end and c:write_begin|c:dial comes) */
#include "common.h"
static void *work(void *x)
{
	for (int i = 0; i < 500; i++) {
		kymo_span_begin(c, send);
		kymo_span_begin(c, dial);
		spin(about(40));
		kymo_span_end(c, dial);
		if (chance(.05))
			snooze(2500);
		kymo_span_begin(c, write);
		spin(about(60));
		kymo_span_end(c, write);
		kymo_span_end(c, send);
		snooze(200);
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
