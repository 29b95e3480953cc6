/* span: rpc:dial expect: internal */
#include "clock.h"
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	static const char *const tld[] = {".com", ".org", ".net"};
	for (int i = 0; i < 500; i++) {
		char host[48];
		int in = !pick(18);
		snprintf(host, sizeof(host), "h%d%s", pick(90000), in ? ".internal" : tld[pick(3)]);
		kymo_span_begin(rpc, dial, kymo_string(host, host));
		busy(30 + pick(15));
		if (in)
			usleep(1500);
		kymo_span_end(rpc, dial);
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
