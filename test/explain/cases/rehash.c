/* span: ht:put expect: ht:rehash */
#include "common.h"
int main(void)
{
	int n = 0, cap = 64;
	spin(1);
	for (int i = 0; i < 2500; i++) {
		kymo_span_begin(ht, put, kymo_i32(key, below(99999)));
		spin(about(9));
		if (++n > cap) {
			kymo_span_begin(ht, rehash, kymo_i32(cap, cap));
			spin(120 + n * .3);
			kymo_span_end(ht, rehash);
			cap += 90;
		}
		kymo_span_end(ht, put);
		snooze(60);
	}
}
