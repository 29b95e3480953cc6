/* span: jit:call expect: the first \d+ of each (process|thread) */
#include "common.h"
int main(void)
{
	spin(1);
	for (int p = 0; p < 5; p++) {
		if (!fork()) {
			for (int i = 0; i < 200; i++) {
				kymo_span_begin(jit, call, kymo_i32(fn, below(40)));
				spin(about(i < 14 ? 700 : 60));
				kymo_span_end(jit, call);
				snooze(250);
			}
			_exit(0);
		}
		snooze(30000);
	}
	while (wait(NULL) > 0)
		;
}
