/* span: gw:route expect: because it runs gw:forward;tls:handshake */
#include "common.h"
static void *work(void *x)
{
	for (int i = 0; i < 1500; i++) {
		kymo_span_begin(gw, route, kymo_i32(backend, below(8)));
		spin(about(50));
		kymo_span_begin(gw, forward);
		if (chance(.01)) {
			kymo_span_begin(tls, handshake);
			snooze(900);
			spin(700);
			kymo_span_end(tls, handshake);
		}
		spin(about(60));
		kymo_span_end(gw, forward);
		kymo_span_end(gw, route);
		snooze(300);
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
