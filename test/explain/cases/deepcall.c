/* span: cart:total expect: tax:table */
#include "common.h"
static void leaf(void)
{
	kymo_span_begin(tax, table);
	spin(about(chance(.012) ? 1300 : 8));
	kymo_span_end(tax, table);
}
static void line(void)
{
	kymo_span_begin(cart, line);
	spin(about(6));
	leaf();
	kymo_span_begin(disc, rule);
	spin(about(9));
	kymo_span_end(disc, rule);
	kymo_span_end(cart, line);
}
static void *work(void *x)
{
	for (int i = 0; i < 500; i++) {
		kymo_span_begin(cart, total);
		for (int k = 0; k < 4; k++)
			line();
		kymo_span_end(cart, total);
		snooze(exponential(200));
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
