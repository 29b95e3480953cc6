/* span: geo:lookup expect: zone = "(ap|sa)", "(ap|sa)" */
#include "common.h"
static void *work(void *x)
{
	static const char *const zones[] = {"us", "eu", "uk", "ca", "me", "ap", "sa"};
	for (int i = 0; i < 600; i++) {
		int z = chance(.1) ? 5 + below(2) : below(5);
		kymo_span_begin(geo, lookup, kymo_string(zone, zones[z]),
			kymo_u32(ip, (uint32_t)below(1 << 30)));
		spin(about(70));
		if (z >= 5)
			snooze(1300);
		kymo_span_end(geo, lookup);
		snooze(200);
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
