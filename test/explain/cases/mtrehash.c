/* span: kv:set expect: kv:grow|entries|size */
#include "common.h"
int main(void)
{
	long cap = 64, n = 0;
	spin(1);
	for (int i = 0; i < 4000; i++) {
		kymo_span_begin(kv, set, kymo_i64(key, below(1000000)));
		spin(about(20));
		if (++n * 4 > cap * 3) {
			kymo_event(kv, grow, kymo_i64(entries, n));
			spin((double)cap * 2);
			cap *= 2;
		}
		kymo_span_end(kv, set);
		snooze(60);
	}
}
