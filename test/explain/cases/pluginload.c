/* span: edit:open expect: (plugin:load|the first) */
#include "common.h"
static _Atomic int loaded[40];
static void *work(void *x)
{
	for (int i = 0; i < 500; i++) {
		int k = below(40);
		kymo_span_begin(edit, open, kymo_i32(kind, k));
		spin(about(60));
		if (!loaded[k]) {
			loaded[k] = 1;
			kymo_span_begin(plugin, load, kymo_i32(kind, k));
			spin(about(1500));
			kymo_span_end(plugin, load);
		}
		kymo_span_end(edit, open);
		snooze(300);
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
