/* span: doc:convert expect: doc:render */
#include "clock.h"
#define N 500
static int p[2][2], svg[N];
static void *parser(void *x)
{
	int id;
	prctl(PR_SET_NAME, "parse");
	while (read(p[0][0], &id, sizeof(id)) == sizeof(id)) {
		kymo_async_begin(doc, parse, (uint64_t)id);
		busy(60);
		kymo_async_end(doc, parse, (uint64_t)id);
		if (write(p[1][1], &id, sizeof(id)) < 0)
			break;
	}
	close(p[1][1]);
	return x;
}
static void *renderer(void *x)
{
	int id;
	prctl(PR_SET_NAME, "render");
	while (read(p[1][0], &id, sizeof(id)) == sizeof(id)) {
		kymo_async_begin(doc, render, (uint64_t)id);
		busy(svg[id] ? 2500 : 90);
		kymo_async_end(doc, render, (uint64_t)id);
		kymo_async_end(doc, convert, (uint64_t)id, kymo_i32(ok, 1));
	}
	return x;
}
int main(void)
{
	pthread_t t[2];
	if (pipe(p[0]) || pipe(p[1]))
		return 1;
	pthread_create(&t[0], 0, parser, 0);
	pthread_create(&t[1], 0, renderer, 0);
	for (int i = 0; i < N; i++) {
		svg[i] = !pick(22);
		kymo_async_begin(doc, convert, (uint64_t)i,
			kymo_string(fmt, svg[i]	   ? "svg"
					 : pick(2) ? "md"
						   : "txt"));
		if (write(p[0][1], &i, sizeof(i)) < 0)
			return 1;
		usleep(svg[i] ? 3500 : 500);
	}
	close(p[0][1]);
	finish(t, 2);
}
