/* span: job:step expect: (only in process|only in thread) */
#include "common.h"
int main(void)
{
	spin(1);
	for (int p = 0; p < 5; p++)
		if (!fork()) {
			for (int i = 0; i < 250; i++) {
				kymo_span_begin(job, step, kymo_i32(n, below(50)));
				spin(about(p == 3 ? 800 : 130));
				kymo_span_end(job, step);
				snooze(300);
			}
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
}
