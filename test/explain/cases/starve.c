/* span: task:run expect: lng:job */
#include "common.h"
static int q[2];
static void *worker(void *x)
{
	uint64_t id;
	name_thread("worker");
	while (read(q[0], &id, sizeof(id)) == sizeof(id)) {
		if (id >= 1000000) {
			kymo_span_begin(lng, job);
			snooze(6000);
			kymo_span_end(lng, job);
			continue;
		}
		spin(about(50));
		kymo_async_end(task, run, id);
	}
	return x;
}
int main(void)
{
	pthread_t t[2];
	spin(1);
	if (pipe(q))
		return 1;
	for (int k = 0; k < 2; k++)
		pthread_create(&t[k], 0, worker, 0);
	for (uint64_t i = 1; i <= 1000; i++) {
		uint64_t id = 1000000 + i;
		kymo_async_begin(task, run, i);
		if (write(q[1], &i, sizeof(i)) < 0)
			return 1;
		for (int k = 0; k < 2 && i % 70 == 30; k++)
			if (write(q[1], &id, sizeof(id)) < 0)
				return 1;
		snooze(450);
	}
	close(q[1]);
	for (int k = 0; k < 2; k++)
		pthread_join(t[k], 0);
}
