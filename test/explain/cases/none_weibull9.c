/* span: gz:block expect: nothing */
#include "common.h"
static void *work(void *x)
{
	for (int i = 0; i < 700; i++) {
		int level = 1 + below(9);
		kymo_span_begin(gz, block, kymo_i32(level, level), kymo_i32(at, i));
		spin(about(20));
		kymo_span_begin(gz, match);
		spin(70 * pow(-log(uniform() + 1e-9), .7));
		kymo_span_end(gz, match);
		kymo_span_end(gz, block, kymo_i32(crc, below(1 << 20)));
		snooze(300);
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
