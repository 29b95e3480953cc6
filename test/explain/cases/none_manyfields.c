/* span: rec:save expect: nothing */
#include "clock.h"
static const char *const city[] = {"Oslo", "Rome", "Kyiv", "Lima", "Bonn", "Nice", "Pune"};
static void *w(void *x)
{
	for (int i = 0; i < 500; i++) {
		kymo_span_begin(rec, save, kymo_i32(a, pick(4)), kymo_i32(b, pick(9)),
			kymo_string(city, city[pick(7)]), kymo_f64(weight, dice()),
			kymo_bool(ok, pick(2)), kymo_i32(c, pick(1000)), kymo_i32(d, pick(100000)),
			kymo_i32(e, i));
		busy(60 - 60 * log(dice() + 1e-9));
		kymo_span_end(rec, save, kymo_i32(f, pick(5)), kymo_i32(g, pick(60)));
		usleep(120);
	}
	return x;
}
int main(void)
{
	pthread_t t[2];
	start(t, 2, w);
	finish(t, 2);
}
