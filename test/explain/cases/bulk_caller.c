/* span: idx:update expect: when called in bulk:import */
#include "common.h"
static void update(double us)
{
	kymo_span_begin(idx, update);
	spin(about(us));
	kymo_span_end(idx, update);
}
static void *work(void *x)
{
	for (int i = 0; i < 600; i++) {
		if (chance(.06)) {
			kymo_span_begin(bulk, import);
			spin(30);
			update(900);
			kymo_span_end(bulk, import);
		} else {
			kymo_span_begin(user, save);
			spin(30);
			update(70);
			kymo_span_end(user, save);
		}
		snooze(200);
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
