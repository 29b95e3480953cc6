/* span: xml:load expect: (xml:entity|event) */
#include "common.h"
static void *work(void *x)
{
	for (int i = 0; i < 500; i++) {
		int n = chance(.06) ? 120 : 3 + below(4);
		kymo_span_begin(xml, load);
		spin(about(40));
		for (int k = 0; k < n; k++) {
			kymo_event(xml, entity, kymo_i32(k, k));
			spin(about(6));
		}
		kymo_span_end(xml, load);
		snooze(exponential(250));
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
