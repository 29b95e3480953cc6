/* span: edge:pass expect: status = 504 */
#include "common.h"
static void *work(void *x)
{
	for (int i = 0; i < 500; i++) {
		int timeout = chance(.04);
		kymo_span_begin(edge, pass, kymo_i32(port, 1024 + below(60000)));
		spin(about(35));
		if (timeout)
			snooze(2500);
		spin(about(35));
		kymo_span_end(edge, pass, kymo_i32(status, timeout ? 504 : below(9) ? 200 : 304));
		snooze(400);
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
