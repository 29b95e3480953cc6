/* span: img:thumb expect: between img:decode_end and img:encode_begin */
#include "common.h"
static void *work(void *x)
{
	for (int i = 0; i < 500; i++) {
		kymo_span_begin(img, thumb);
		kymo_span_begin(img, decode);
		spin(about(90));
		kymo_span_end(img, decode);
		spin(about(10));
		if (chance(.05))
			snooze(2500);
		kymo_span_begin(img, encode);
		spin(about(60));
		kymo_span_end(img, encode);
		kymo_span_end(img, thumb);
		snooze(exponential(300));
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
