/* span: tpl:render expect: (idle_us ≥|grows with idle_us) */
#include "common.h"
static char cache[1 << 16];
int main(void)
{
	double last;
	spin(1);
	last = now_us();
	for (int i = 0; i < 900; i++) {
		int idle = (int)(now_us() - last), cold = idle > 8000;
		kymo_span_begin(tpl, render, kymo_i32(idle_us, idle));
		spin(about(cold ? 900 : 60));
		memset(cache, i, sizeof(cache));
		kymo_span_end(tpl, render);
		last = now_us();
		snooze(chance(.06) ? 15000 : 400);
	}
}
