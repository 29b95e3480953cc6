/* span: nn:load expect: nothing */
#include "common.h"
static void *work(void *x)
{
	for (int i = 0; i < 700; i++) {
		kymo_span_begin(nn, load, kymo_i32(layer, below(12)),
			kymo_string(dev, below(2) ? "a" : "b"));
		for (int k = 0; k < 3; k++) {
			kymo_span_begin(nn, tensor, kymo_i32(k, k));
			spin(30 * exp(.5 * normal()));
			kymo_span_end(nn, tensor);
		}
		kymo_span_end(nn, load);
		snooze(300);
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
