/* span: req:http expect: img:resize */
#include "common.h"
static int q[2];
static void *loop(void *x)
{
	uint64_t id;
	name_thread("loop");
	while (read(q[0], &id, sizeof(id)) == sizeof(id)) {
		if (id % 37 == 5) {
			kymo_span_begin(img, resize);
			spin(4000);
			kymo_span_end(img, resize);
		}
		kymo_span_begin(http, handle);
		spin(about(60));
		kymo_span_end(http, handle);
		kymo_async_end(req, http, id);
	}
	return x;
}
int main(void)
{
	pthread_t t;
	spin(1);
	if (pipe(q))
		return 1;
	pthread_create(&t, 0, loop, 0);
	for (uint64_t i = 1; i <= 900; i++) {
		kymo_async_begin(req, http, i, kymo_i32(len, below(900)));
		if (write(q[1], &i, sizeof(i)) < 0)
			return 1;
		snooze(400);
	}
	close(q[1]);
	pthread_join(t, 0);
}
