/* span: img:thumb expect: hit = 0 */
#include "clock.h"
static void *w(void *x)
{
	for (int i = 0; i < 500; i++) {
		int hit = pick(14) != 0;
		kymo_span_begin(
			img, thumb, kymo_i32(id, pick(4000)), kymo_i32(width, 64 << pick(3)));
		busy(hit ? 30 + pick(12) : 800 + pick(300));
		kymo_span_end(img, thumb, kymo_bool(hit, hit));
		usleep(140);
	}
	return x;
}
int main(void)
{
	pthread_t t[2];
	start(t, 2, w);
	finish(t, 2);
}
