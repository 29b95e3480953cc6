/* span: web:get expect: /health/deep */
#include "clock.h"
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	static const char *const p[] = {
		"/", "/login", "/cart", "/health", "/api/items", "/favicon.ico"};
	for (int i = 0; i < 550; i++) {
		int deep = !pick(19);
		kymo_span_begin(web, get, kymo_string(path, deep ? "/health/deep" : p[pick(6)]),
			kymo_i32(conn, pick(200)));
		busy(35 + pick(15));
		if (deep)
			usleep(1800);
		kymo_span_end(web, get);
		usleep(150);
	}
	return x;
}
int main(void)
{
	pthread_t t[16];

	start(t, 2, work);
	finish(t, 2);
}
