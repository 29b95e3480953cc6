/* span: css:layout expect: (called in print:page|print:page) */
#include "common.h"
static void layout(int print)
{
	kymo_span_begin(css, layout);
	spin(about(print ? 700 : 60));
	kymo_span_end(css, layout);
}
static void *work(void *x)
{
	for (int i = 0; i < 700; i++) {
		if (chance(.05)) {
			kymo_span_begin(print, page);
			spin(about(20));
			layout(1);
			kymo_span_end(print, page);
		} else {
			kymo_span_begin(screen, page);
			spin(about(20));
			layout(0);
			kymo_span_end(screen, page);
		}
		snooze(exponential(200));
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
