/* span: svc:request expect: key of cache:lookup begins with "legacy */
#include "common.h"
static void *work(void *x)
{
	static const char *kinds[] = {"user", "cart", "price", "stock", "geo"};
	char key[40];
	for (int i = 0; i < 600; i++) {
		int n = 2 + below(4);
		kymo_span_begin(svc, request, kymo_i32(id, i));
		spin(about(20));
		for (int k = 0; k < n; k++) {
			int legacy = chance(.012);
			snprintf(key, sizeof(key), "%s:%x", legacy ? "legacy" : kinds[below(5)],
				below(1 << 24));
			kymo_span_begin(cache, lookup, kymo_string(key, key));
			spin(about(legacy ? 700 : 15));
			kymo_span_end(cache, lookup);
		}
		kymo_span_end(svc, request);
		snooze(2000);
	}
	return x;
}
int main(void)
{
	run_threads(3, work);
}
