/* span: mail:scan expect: process */
#include "clock.h"
int main(void)
{
	for (int p = 0; p < 7; p++)
		if (!fork()) {
			char n[16];
			snprintf(n, sizeof(n), "scan-%d", p);
			prctl(PR_SET_NAME, n);
			for (int i = 0; i < 150; i++) {
				kymo_span_begin(mail, scan, kymo_i32(size, pick(90000)));
				busy(70 + pick(25));
				if (p == 2)
					usleep(700);
				kymo_span_end(mail, scan);
				usleep(900);
			}
			_exit(0);
		}
	while (wait(0) > 0)
		;
}
