/* span: web:page expect: in zip:pack */
#include "common.h"
static int ab[2], ba[2], bc[2], cb[2];
static void *middle(void *x)
{
	int v;
	name_thread("middle");
	while (read(ab[0], &v, sizeof(v)) == sizeof(v)) {
		kymo_span_begin(mid, relay);
		if (write(bc[1], &v, sizeof(v)) < 0 || read(cb[0], &v, sizeof(v)) < 0)
			break;
		kymo_span_end(mid, relay);
		if (write(ba[1], &v, sizeof(v)) < 0)
			break;
	}
	close(bc[1]);
	return x;
}
static void *last(void *x)
{
	int v;
	name_thread("packer");
	while (read(bc[0], &v, sizeof(v)) == sizeof(v)) {
		kymo_span_begin(zip, pack);
		spin(about(v % 20 == 7 ? 3000 : 40));
		kymo_span_end(zip, pack);
		if (write(cb[1], &v, sizeof(v)) < 0)
			break;
	}
	return x;
}
int main(void)
{
	pthread_t t[2];
	if (pipe(ab) || pipe(ba) || pipe(bc) || pipe(cb))
		return 1;
	spin(1);
	pthread_create(&t[0], 0, middle, 0);
	pthread_create(&t[1], 0, last, 0);
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
	pthread_join(t[0], 0);
	pthread_join(t[1], 0);
}
