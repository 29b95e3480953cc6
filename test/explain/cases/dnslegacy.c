/* span: http:get expect: (?=.*dns:lookup)(?=.*legacy) */
#include "clock.h"
static void *crawler(void *x)
{
	static const char *const hosts[] = {
		"www.corp", "api.corp", "cdn.corp", "auth.corp", "img.corp", "pay.corp"};
	for (int i = 0; i < 400; i++) {
		const char *h = pick(20) ? hosts[pick(6)] : "legacy.corp";
		kymo_span_begin(
			http, get, kymo_string(host, h), kymo_i32(port, pick(2) ? 80 : 443));
		kymo_span_begin(dns, lookup);
		usleep(h[0] == 'l' && h[1] == 'e' ? 25000 : 80);
		kymo_span_end(dns, lookup);
		kymo_span_begin(tcp, connect);
		usleep(120);
		kymo_span_end(tcp, connect);
		kymo_span_begin(http, read);
		busy(50 + pick(80));
		kymo_span_end(http, read);
		kymo_span_end(http, get);
	}
	return x;
}
int main(void)
{
	pthread_t t[3];
	start(t, 3, crawler);
	finish(t, 3);
}
