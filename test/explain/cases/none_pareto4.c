/* span: web:asset expect: nothing */
#include "clock.h"
int main(void)
{
	for (int i = 0; i < 1200; i++) {
		double us = 50 / pow(dice() + 1e-4, .4);
		kymo_span_begin(web, asset, kymo_i32(id, pick(300)), kymo_bool(gzip, pick(2)));
		busy(us);
		kymo_span_end(web, asset);
		usleep(80);
	}
}
