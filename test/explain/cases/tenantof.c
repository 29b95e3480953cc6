/* span: tpl:render expect: (?=.*tenant)(?=.*acme) */
#include "clock.h"
static void *w(void *x)
{
	static const char *const t[] = {"globex", "initech", "umbrella", "hooli", "wonka"};
	for (int i = 0; i < 450; i++) {
		const char *who = pick(16) ? t[pick(5)] : "acme";
		kymo_span_begin(web, request, kymo_string(tenant, who));
		busy(20);
		kymo_span_begin(tpl, render, kymo_i32(blocks, 5 + pick(5)));
		busy(50 + pick(20) + (who[0] == 'a' ? 700 : 0));
		kymo_span_end(tpl, render);
		kymo_span_end(web, request);
		usleep(150);
	}
	return x;
}
int main(void)
{
	pthread_t t[2];
	start(t, 2, w);
	finish(t, 2);
}
