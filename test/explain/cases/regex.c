/* span: rx:match expect: (length of pattern|grows with|pattern) */
#include "common.h"
static void *work(void *x)
{
	for (int i = 0; i < 600; i++) {
		char pattern[64];
		int n = 3 + below(8) + (chance(.05) ? 30 + below(10) : 0);
		for (int k = 0; k < n; k++)
			pattern[k] = (char)('a' + below(26));
		pattern[n] = 0;
		kymo_span_begin(rx, match, kymo_string(pattern, pattern));
		spin(about(20 + n * n * .5));
		kymo_span_end(rx, match, kymo_bool(matched, below(2)));
		snooze(exponential(300));
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
