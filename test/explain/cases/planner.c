/* span: db:select expect: seqscan */
#include "clock.h"
static void *w(void *x)
{
	for (int i = 0; i < 450; i++) {
		const char *plan = pick(15) ? pick(2) ? "index" : "index_only" : "seqscan";
		kymo_span_begin(db, select, kymo_i32(conn, pick(9)));
		busy(20);
		kymo_event(db, plan, kymo_string(method, plan), kymo_f64(cost, dice() * 100));
		busy(30 + pick(15) + (plan[0] == 's' ? 900 : 0));
		kymo_span_end(db, select);
		usleep(150);
	}
	return x;
}
int main(void)
{
	pthread_t t[2];
	start(t, 2, w);
	finish(t, 2);
}
