/* span: cli:run expect: disk:sync */
#include "clock.h"
int main(void)
{
	for (int i = 0; i < 100; i++) {
		kymo_span_begin(cli, run, kymo_i32(arg, pick(50)));
		busy(200 + pick(60));
		if (i % 17 == 3) {
			kymo_span_begin(disk, sync);
			usleep(4000);
			kymo_span_end(disk, sync);
		}
		kymo_span_end(cli, run);
		usleep(500);
	}
}
