/* span: http:request expect: path begins with "/admin/ */
#include "common.h"
static void *work(void *x)
{
	static const char *const areas[] = {"/shop/", "/blog/", "/img/", "/api/v1/"};
	for (int i = 0; i < 500; i++) {
		char path[64];
		int admin = chance(.05);
		snprintf(path, sizeof path, "%s%x", admin ? "/admin/" : areas[below(4)],
			below(1 << 28));
		kymo_span_begin(http, request, kymo_string(path, path),
			kymo_u32(port, 1024 + below(60000)));
		spin(about(80));
		kymo_span_begin(http, route);
		spin(about(admin ? 700 : 30));
		kymo_span_end(http, route);
		kymo_span_end(http, request);
		snooze(200);
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
