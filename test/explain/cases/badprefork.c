/* span: php:render expect: process */
#include "clock.h"
int main(void)
{
	for (int p = 0; p < 6; p++)
		if (!fork()) {
			for (int i = 0; i < 200; i++) {
				kymo_span_begin(php, render, kymo_i32(page, pick(30)));
				busy(60 + pick(25) + (p == 3 ? 300 : 0));
				kymo_span_end(php, render);
				usleep(800);
			}
			_exit(0);
		}
	while (wait(0) > 0)
		;
}
