/* span: zip:pack expect: bytes */
#include "common.h"
int main(void)
{
	spin(1);
	for (int i = 0; i < 1500; i++) {
		int b = (int)(1000 * exp(normal()));
		kymo_span_begin(zip, pack, kymo_i32(bytes, b), kymo_i32(level, 1 + below(9)));
		spin(about(20 + b * .1));
		kymo_span_end(zip, pack);
		snooze(200);
	}
}
