/* span: etl:load expect: net:dns */
#include "clock.h"
int main(void)
{
	for (int i = 0; i < 60; i++) {
		kymo_span_begin(etl, load, kymo_i32(batch, i));
		kymo_span_begin(net, dns);
		usleep(i % 12 == 7 ? 40000 : 300);
		kymo_span_end(net, dns);
		kymo_span_begin(etl, insert);
		busy(3000 + pick(800));
		kymo_span_end(etl, insert);
		kymo_span_end(etl, load);
	}
}
