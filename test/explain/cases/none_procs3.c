/* span: z:call expect: nothing */
#include "clock.h"
int main(void)
{
	for (int p = 0; p < 3; p++)
		if (!fork()) {
			for (int i = 0; i < 350; i++) {
				kymo_span_begin(z, call, kymo_i32(n, pick(800)));
				busy(60 + 20 * (dice() + dice() + dice() + dice()));
				kymo_span_end(z, call);
				usleep(350);
			}
			_exit(0);
		}
	while (wait(0) > 0)
		;
}
