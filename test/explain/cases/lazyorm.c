/* span: shopui:basket expect: orm:load comes */
#include "common.h"
static void *work(void *x)
{
	for (int i = 0; i < 400; i++) {
		int lines = chance(.07) ? 30 + below(10) : 1 + below(4);
		kymo_span_begin(shopui, basket, kymo_i32(customer, below(100000)));
		spin(about(40));
		for (int k = 0; k < lines; k++) {
			kymo_span_begin(orm, load, kymo_string(table, k & 1 ? "price" : "item"));
			spin(about(25));
			kymo_span_end(orm, load);
			spin(about(3));
		}
		spin(about(20));
		kymo_span_end(shopui, basket);
		snooze(500);
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
