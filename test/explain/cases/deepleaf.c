/* span: a:request expect: d:checksum */
#include "clock.h"
static void d(int bad)
{
	kymo_span_begin(d, checksum);
	busy(10 + pick(5) + (bad ? 1200 : 0));
	kymo_span_end(d, checksum);
}
static void c(int bad)
{
	kymo_span_begin(c, decode);
	busy(15);
	d(0), d(bad), d(0);
	kymo_span_end(c, decode);
}
int main(void)
{
	for (int i = 0; i < 700; i++) {
		kymo_span_begin(a, request, kymo_i32(id, pick(99999)));
		busy(10);
		for (int k = 0; k < 2; k++) {
			kymo_span_begin(b, fetch);
			c(k == 0 && !pick(18));
			busy(10);
			kymo_span_end(b, fetch);
		}
		kymo_span_end(a, request);
		usleep(100);
	}
}
