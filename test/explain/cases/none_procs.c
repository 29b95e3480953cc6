/* span: n:req expect: nothing */
#include "clock.h"
int main(void)
{
	for (int p = 0; p < 5; p++)
		if (!fork()) {
			for (int i = 0; i < 220; i++) {
				kymo_span_begin(n, req, kymo_i32(id, pick(9999)),
					kymo_string(verb, pick(3) ? "get" : "put"));
				busy(50 - 50 * log(dice() + 1e-9));
				kymo_span_end(n, req);
				usleep(600);
			}
			_exit(0);
		}
	while (wait(0) > 0)
		;
}
