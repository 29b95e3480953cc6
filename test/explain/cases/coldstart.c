/* span: app:serve expect: first \d+ of the trace */
#include "clock.h"
int main(void)
{
	for (int i = 0; i < 900; i++) {
		kymo_span_begin(app, serve, kymo_i32(user, pick(500)));
		busy(45 + pick(15) + (i < 22 ? 900 : 0));
		kymo_span_end(app, serve);
		usleep(120);
	}
}
