/* span: ux:click expect: (after|idle|had none for|nothing recorded) */
#include "clock.h"
int main(void)
{
	for (int i = 0; i < 600; i++) {
		int idle = !pick(18);
		usleep(idle ? 9000 : 200 + (unsigned)pick(200));
		kymo_span_begin(ux, click, kymo_i32(button, pick(12)));
		busy(60 + pick(20) + (idle ? 800 : 0));
		kymo_span_end(ux, click);
	}
}
