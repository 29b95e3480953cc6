/* span: img:scale expect: megapixels ≥ */
#include "common.h"
static void *work(void *x)
{
	for (int i = 0; i < 700; i++) {
		double mp = uniform() * 10;
		kymo_span_begin(img, scale, kymo_f64(megapixels, mp),
			kymo_u64(image, (uint64_t)i * 7919 % 10007));
		spin(about(120));
		if (mp > 9.5)
			spin(about(1200)); /* tiles */
		kymo_span_end(img, scale);
		snooze(150);
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
