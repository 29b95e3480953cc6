/* span: eng:plan expect: (load ≥|grows with load) */
#include "common.h"
static void *work(void *x)
{
	for (int i = 0; i < 700; i++) {
		double load = uniform();
		kymo_span_begin(eng, plan, kymo_f64(load, load), kymo_i32(zone, below(4)));
		spin(about(load > .93 ? 700 : 80));
		kymo_span_end(eng, plan);
		snooze(exponential(200));
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
