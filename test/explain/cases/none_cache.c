/* span: tab:scan expect: nothing */
#include "common.h"
int main(void)
{
	static char t[24 << 20];
	volatile long s = 0;
	memset(t, 1, sizeof(t));
	spin(1);
	for (int i = 0; i < 1200; i++) {
		kymo_span_begin(tab, scan, kymo_i32(column, below(30)));
		kymo_span_begin(tab, read);
		for (int k = 0; k < 3000; k++)
			s += t[(size_t)(uniform() * sizeof(t))];
		kymo_span_end(tab, read);
		kymo_span_begin(tab, sum);
		spin(about(60));
		kymo_span_end(tab, sum);
		kymo_span_end(tab, scan);
		snooze(200);
	}
}
