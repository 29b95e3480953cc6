/* span: o:order expect: (?s)(o:tax.*country = "BR"|o:stock).*because.*(o:stock|o:tax) */
#include "common.h"
static void *work(void *x)
{
	static const char *const cc[] = {"DE", "FR", "US", "JP", "BR"};
	for (int i = 0; i < 900; i++) {
		int k = chance(.04) ? 4 : below(4);
		kymo_span_begin(o, order, kymo_string(country, cc[k]));
		spin(about(40));
		kymo_span_begin(o, tax);
		spin(about(k == 4 ? 1500 : 40));
		kymo_span_end(o, tax);
		if (chance(.04)) {
			kymo_span_begin(o, stock);
			snooze(1500);
			kymo_span_end(o, stock);
		}
		kymo_span_end(o, order);
		snooze(150);
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
