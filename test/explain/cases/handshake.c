/* span: api:request expect: (tls:handshake|new_conn = 1) */
#include "common.h"
static void *work(void *x)
{
	for (int i = 0; i < 700; i++) {
		int new_conn = i % 29 == 0;
		kymo_span_begin(api, request, kymo_bool(new_conn, new_conn), kymo_i32(seq, i));
		spin(about(40));
		if (new_conn) {
			kymo_span_begin(tls, handshake);
			spin(about(500));
			snooze(400);
			kymo_span_end(tls, handshake);
		}
		spin(about(40));
		kymo_span_end(api, request);
		snooze(exponential(200));
	}
	return x;
}
int main(void)
{
	run_threads(3, work);
}
