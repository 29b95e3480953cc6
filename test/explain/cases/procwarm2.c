/* span: py:call expect: first \d+ of each process */
#include "clock.h"
int main(void)
{
	for (int p = 0; p < 5; p++) {
		if (!fork()) {
			for (int i = 0; i < 200; i++) {
				kymo_span_begin(py, call, kymo_i32(fn, pick(30)));
				busy(40 + pick(15) + (i < 12 ? 600 : 0));
				kymo_span_end(py, call);
				usleep(100);
			}
			_exit(0);
		}
		wait(0);
	}
}
