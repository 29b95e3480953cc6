/* span: web:page expect: which is in clock_nanosleep\(\) meanwhile */
#include "common.h"
static int ab[2], ba[2];
static void *server(void *x)
{
	int v;
	name_thread("server");
	while (read(ab[0], &v, sizeof(v)) == sizeof(v)) {
		if (v % 20 == 7)
			snooze(3000);
		if (write(ba[1], &v, sizeof(v)) < 0)
			break;
	}
	return x;
}
int main(void)
{
	pthread_t t;
	if (pipe(ab) || pipe(ba))
		return 1;
	spin(1);
	pthread_create(&t, 0, server, 0);
	for (int i = 0; i < 600; i++) {
		int v = i;
		kymo_span_begin(web, page);
		spin(about(40));
		if (write(ab[1], &v, sizeof(v)) < 0 || read(ba[0], &v, sizeof(v)) < 0)
			return 1;
		kymo_span_end(web, page);
		snooze(500);
	}
	close(ab[1]);
	pthread_join(t, 0);
}
