/* span: dns:resolve expect: ttl */
#include "clock.h"
int main(void)
{
	for (int i = 0; i < 800; i++) {
		int ttl = pick(16) ? 1 + pick(3600) : -pick(100);
		kymo_span_begin(dns, resolve, kymo_i32(ttl, ttl), kymo_i32(type, pick(5)));
		if (ttl <= 0)
			usleep(1800);
		busy(30 + pick(12));
		kymo_span_end(dns, resolve);
		usleep(80);
	}
}
