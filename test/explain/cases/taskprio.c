/* span: task:life expect: prio */
#include "common.h"
static struct {
	int prio;
	uint64_t id;
} q[8];
static int take(int n)
{
	int best = 0;

	for (int i = 1; i < n; i++)
		best = q[i].prio > q[best].prio ? i : best;
	return best;
}
int main(void)
{
	uint64_t id = 0;

	spin(1);
	for (int burst = 0; burst < 120; burst++) {
		for (int n = 0; n < 8; n++) {
			q[n].prio = below(6) ? 5 + below(4) : 1;
			q[n].id = ++id;
			kymo_async_begin(task, life, id, kymo_i32(prio, q[n].prio),
				kymo_i32(owner, below(30)));
		}
		for (int n = 8; n; n--) {
			int k = take(n);

			kymo_span_begin(task, run);
			spin(about(50));
			kymo_span_end(task, run);
			kymo_async_end(task, life, q[k].id);
			q[k] = q[n - 1];
		}
		snooze(1200);
	}
}
