/* span: srv:conn expect: proto = "h1" */
#include "common.h"
static void *serve(void *x)
{
	int h1 = chance(.08);
	name_thread("conn");
	kymo_span_begin(srv, conn,
		kymo_string(proto, h1	      ? "h1"
				   : below(2) ? "h2"
					      : "h3"),
		kymo_i32(fd, (int)(intptr_t)x % 30));
	spin(about(60));
	if (h1)
		snooze(900);
	kymo_span_end(srv, conn);
	return x;
}
int main(void)
{
	pthread_t t[4];
	spin(1);
	for (intptr_t i = 0; i < 240; i++) {
		for (intptr_t k = 0; k < 4; k++)
			pthread_create(&t[k], 0, serve, (void *)(i * 4 + k));
		for (int k = 0; k < 4; k++)
			pthread_join(t[k], 0);
		snooze(300);
	}
}
