/* span: bt:insert expect: page:split */
#include "common.h"
static void *work(void *x)
{
	int fill = below(40);
	for (int i = 0; i < 1500; i++) {
		kymo_span_begin(bt, insert, kymo_i32(key, below(1 << 30)));
		spin(about(12));
		if (++fill == 40) {
			kymo_span_begin(page, split, kymo_i32(level, 1));
			free(calloc(1, 4096));
			spin(about(420));
			kymo_span_end(page, split);
			fill = below(15);
		}
		spin(about(5));
		kymo_span_end(bt, insert);
		snooze(80);
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
