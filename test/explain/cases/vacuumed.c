/* span: db:get expect: maint:vacuum */
#include "clock.h"
int main(void)
{
	int cold = 0;
	for (int i = 0; i < 900; i++) {
		if (!pick(30)) {
			kymo_span_begin(maint, vacuum);
			busy(300);
			kymo_span_end(maint, vacuum);
			cold = 1;
		}
		kymo_span_begin(db, get, kymo_i32(key, pick(5000)));
		busy(30 + pick(10) + (cold ? 1300 : 0));
		cold = 0;
		kymo_span_end(db, get);
		usleep(120);
	}
}
