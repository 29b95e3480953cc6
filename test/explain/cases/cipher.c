/* span: vpn:frame expect: suite = (7|"chacha"|.*chacha) */
#include "common.h"
static void *work(void *x)
{
	static const char *const suites[] = {"aes128", "aes256", "camellia", "chacha"};
	for (int i = 0; i < 600; i++) {
		const char *s = suites[chance(.05) ? 3 : below(3)];
		kymo_span_begin(vpn, frame, kymo_string(suite, s), kymo_i32(len, 64 + below(1400)));
		spin(about(s[1] == 'h' ? 640 : 70));
		kymo_span_end(vpn, frame, kymo_i32(out, below(1500)));
		snooze(300);
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
