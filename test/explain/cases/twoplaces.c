/* span: svc:request expect: (?=.*db:query)(?=.*db:commit) */
#include "common.h"
static void *work(void *x)
{
	for (int i = 0; i < 800; i++) {
		kymo_span_begin(svc, request, kymo_i32(id, i));
		kymo_span_begin(db, query);
		spin(about(60));
		if (chance(.03))
			snooze(6000);
		kymo_span_end(db, query);
		spin(about(30));
		kymo_span_begin(db, commit);
		spin(about(30));
		if (chance(.03))
			snooze(5000 + 1500 * uniform());
		kymo_span_end(db, commit);
		kymo_span_end(svc, request);
		snooze(1500);
	}
	return x;
}
int main(void)
{
	run_threads(3, work);
}
