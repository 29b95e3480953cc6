/* span: json:parse expect: json:value */
#include "common.h"
static void value(int depth)
{
	kymo_span_begin(json, value, kymo_i32(depth, depth));
	spin(about(5));
	for (int k = depth > 0 ? 3 : 0; k > 0; k--)
		value(depth - 1);
	kymo_span_end(json, value);
}
static void *work(void *x)
{
	for (int i = 0; i < 400; i++) {
		kymo_span_begin(json, parse);
		spin(about(20));
		value(chance(.05) ? 4 : 1);
		kymo_span_end(json, parse);
		snooze(exponential(300));
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
