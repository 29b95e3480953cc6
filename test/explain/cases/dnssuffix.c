/* span: dns:resolve expect: host ends with "\.?internal */
#include "common.h"
static void *work(void *x)
{
	static const char *const tops[] = {"com", "net", "org", "dev", "io"};
	for (int i = 0; i < 600; i++) {
		char host[64];
		int slow = chance(.06);
		snprintf(host, sizeof(host), "h%d.s%d.%s", below(100000), below(900),
			slow ? "internal" : tops[below(5)]);
		kymo_span_begin(dns, resolve, kymo_string(host, host));
		spin(about(35));
		if (slow)
			snooze(1500 + exponential(800));
		kymo_span_end(dns, resolve);
		snooze(exponential(250));
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
