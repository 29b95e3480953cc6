/* span: txt:fold expect: locale = "tr" */
#include "common.h"
static void *work(void *x)
{
	static const char *const l[] = {"en", "de", "fr", "es", "it", "pt", "nl", "sv", "pl", "tr"};
	for (int i = 0; i < 700; i++) {
		int k = chance(.93) ? below(9) : 9;
		kymo_span_begin(
			txt, fold, kymo_string(locale, l[k]), kymo_i32(chars, 20 + below(200)));
		kymo_span_begin(txt, map);
		spin(about(k == 9 ? 350 : 35));
		kymo_span_end(txt, map);
		spin(about(20));
		kymo_span_end(txt, fold);
		snooze(exponential(200));
	}
	return x;
}
int main(void)
{
	run_threads(3, work);
}
