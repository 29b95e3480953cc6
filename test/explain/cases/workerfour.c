/* span: php:run expect: (process|w-4) */
#include "clock.h"
int main(void)
{
	for (int p = 0; p < 6; p++)
		if (!fork()) {
			char n[16];
			snprintf(n, sizeof(n), "w-%d", p);
			prctl(PR_SET_NAME, n);
			for (int i = 0; i < 180; i++) {
				kymo_span_begin(php, run, kymo_i32(script, pick(25)));
				busy(60 + pick(20));
				if (p == 4)
					usleep(600);
				kymo_span_end(php, run);
				usleep(900);
			}
			_exit(0);
		}
	while (wait(0) > 0)
		;
}
