/* span: pay:charge expect: status = 503.*known at the end only */
#include "common.h"
static void *work(void *x)
{
	for (int i = 0; i < 500; i++) {
		int bad = chance(.06);
		kymo_span_begin(pay, charge, kymo_f64(amount, uniform() * 200));
		spin(about(90));
		if (bad)
			snooze(2000);
		kymo_span_end(pay, charge, kymo_i32(status, bad ? 503 : below(2) ? 200 : 201));
		snooze(200);
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
