/* span: orm:list expect: orm:load comes */
#include "common.h"
static void *work(void *x)
{
	for (int i = 0; i < 400; i++) {
		int n = chance(.05) ? 60 : 1 + below(3);
		kymo_span_begin(orm, list);
		spin(about(40));
		for (int k = 0; k < n; k++) {
			kymo_span_begin(orm, load);
			spin(about(18));
			kymo_span_end(orm, load);
		}
		kymo_span_end(orm, list);
		snooze(200);
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
