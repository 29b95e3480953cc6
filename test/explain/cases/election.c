/* span: raft:propose expect: raft:election */
#include "clock.h"
static int leader = 1, done;
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	if (!k) {
		prctl(PR_SET_NAME, "elector");
		while (!__atomic_load_n(&done, 0)) {
			usleep(50000);
			__atomic_store_n(&leader, 0, 0);
			kymo_span_begin(raft, election, kymo_i32(term, 7));
			usleep(4500);
			kymo_span_end(raft, election);
			__atomic_store_n(&leader, 1, 0);
		}
		return x;
	}
	for (int i = 0; i < 600; i++) {
		kymo_span_begin(raft, propose, kymo_i32(size, pick(500)));
		while (!__atomic_load_n(&leader, 0))
			usleep(100);
		busy(40 + pick(20));
		kymo_span_end(raft, propose);
		usleep(450);
	}
	__atomic_store_n(&done, 1, 0);
	return x;
}
int main(void)
{
	pthread_t t[16];

	start(t, 3, work);
	finish(t, 3);
}
