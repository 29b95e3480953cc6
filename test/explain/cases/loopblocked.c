/* span: conn:request expect: fs:stat */
#include "clock.h"
#define N 900
int main(void)
{
	uint64_t arrive[N], t = clock_us() + 1000;
	int next = 0, open[N], n_open = 0;
	for (int i = 0; i < N; i++)
		arrive[i] = t += 250 + (unsigned)pick(300);
	while (next < N || n_open) {
		while (next < N && clock_us() >= arrive[next]) {
			kymo_async_begin(conn, request, (uint64_t)next + 1, kymo_i32(fd, pick(40)));
			open[n_open++] = next++;
		}
		if (!n_open)
			continue;
		if (!pick(60)) {
			kymo_span_begin(fs, stat);
			usleep(4000);
			kymo_span_end(fs, stat);
		}
		busy(90);
		kymo_async_end(conn, request, (uint64_t)open[0] + 1);
		memmove(open, open + 1, (size_t)--n_open * sizeof(int));
	}
}
