/* span: order:total expect: fraud:check */
#include "clock.h"
#define N 400
static int fd[2], back[2];
static void *fraud(void *x)
{
	uint64_t id;
	prctl(PR_SET_NAME, "fraud");
	while (read(fd[0], &id, sizeof(id)) == sizeof(id)) {
		kymo_flow_step(order, flow, id);
		kymo_span_begin(fraud, check, kymo_u64(order, id));
		busy(50);
		if (!pick(20))
			usleep(4000);
		kymo_span_end(fraud, check);
		if (write(back[1], &id, sizeof(id)) < 0)
			break;
	}
	return x;
}
int main(void)
{
	pthread_t t;
	if (pipe(fd) || pipe(back))
		return 1;
	pthread_create(&t, 0, fraud, 0);
	for (uint64_t i = 0; i < N; i++) {
		uint64_t r;
		kymo_span_begin(order, total, kymo_u64(order, i));
		kymo_flow_begin(order, flow, i);
		busy(40);
		if (write(fd[1], &i, sizeof(i)) < 0 || read(back[0], &r, sizeof(r)) < 0)
			return 1;
		kymo_flow_end(order, flow, i);
		busy(40);
		kymo_span_end(order, total);
		usleep(200);
	}
	close(fd[1]);
	pthread_join(t, 0);
}
