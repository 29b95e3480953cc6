/* span: svc:request expect: the first \d+ */
/* The first requests of the process fill the cache; nothing is recorded of that. */
#include "common.h"
static atomic_int served;
static void *work(void *x)
{
	for (int i = 0; i < 800; i++) {
		kymo_span_begin(svc, request, kymo_i32(user, below(100000)));
		spin(about(40));
		if (served++ < 45)
			snooze(900 + 200 * normal());
		spin(about(50));
		kymo_span_end(svc, request);
		snooze(1500);
	}
	return x;
}
int main(void)
{
	run_threads(3, work);
}
