/* span: http:parse expect: query */
#include "clock.h"
static void *w(void *x)
{
	for (int i = 0; i < 500; i++) {
		char q[64];
		int evil = !pick(22);
		snprintf(q, sizeof(q), evil ? "Ez=%d&FY=%d" : "id=%d&p=%d", pick(100000), pick(99));
		kymo_span_begin(
			http, parse, kymo_string(query, q), kymo_u32(len, (unsigned)strlen(q)));
		busy(25 + pick(10) + (evil ? 800 : 0));
		kymo_span_end(http, parse);
		usleep(120);
	}
	return x;
}
int main(void)
{
	pthread_t t[2];
	start(t, 2, w);
	finish(t, 2);
}
