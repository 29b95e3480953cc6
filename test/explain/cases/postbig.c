/* span: http:handle expect: (?=.*POST)(?=.*body) */
#include "clock.h"
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	for (int i = 0; i < 700; i++) {
		int post = !pick(4), body = pick(40000);
		kymo_span_begin(http, handle, kymo_string(method, post ? "POST" : "GET"),
			kymo_i32(body, body), kymo_i32(conn, pick(40)));
		busy(30 + pick(15) + (post && body > 30000 ? 700 : 0));
		kymo_span_end(http, handle);
		usleep(100);
	}
	return x;
}
int main(void)
{
	pthread_t t[16];

	start(t, 2, work);
	finish(t, 2);
}
