/* span: ev:conn expect: cpu:hash */
#include "clock.h"
#define N 700
int main(void)
{
	uint64_t due[N], t = clock_us() + 1000;
	int q[N], head = 0, tail = 0, next = 0;
	for (int i = 0; i < N; i++)
		due[i] = t += 200 + (unsigned)pick(400);
	while (tail < N) {
		while (next < N && clock_us() >= due[next]) {
			kymo_async_begin(ev, conn, 100u + (unsigned)next, kymo_i32(port, pick(5)));
			q[head++] = next++;
		}
		if (tail == head)
			continue;
		if (!pick(50)) {
			kymo_span_begin(cpu, hash);
			busy(3500);
			kymo_span_end(cpu, hash);
		}
		busy(70);
		kymo_async_end(ev, conn, 100u + (unsigned)q[tail++]);
	}
}
