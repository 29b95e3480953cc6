/* span: backup:run expect: (volume:lock|volume) */
#include "common.h"
int main(void)
{
	spin(1);
	for (int i = 0; i < 26; i++) {
		kymo_span_begin(backup, run, kymo_i32(n, i));
		kymo_span_begin(volume, scan);
		spin(about(4000));
		kymo_span_end(volume, scan);
		if (i % 6 == 4) {
			kymo_span_begin(volume, lock);
			snooze(25000);
			kymo_span_end(volume, lock);
		}
		kymo_span_end(backup, run);
	}
}
