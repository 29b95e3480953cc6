/* span: s3:put expect: (bytes|size) */
#include "clock.h"
int main(void)
{
	for (int i = 0; i < 800; i++) {
		double z = dice() + dice() + dice() + dice() - 2;
		unsigned n = (unsigned)(9000 * exp(1.6 * z));
		kymo_span_begin(
			s3, put, kymo_u32(bytes, n), kymo_string(bucket, pick(2) ? "a" : "b"));
		busy(40 + pick(12));
		if (n > 40000)
			usleep(2500);
		kymo_span_end(s3, put);
		usleep(80);
	}
}
