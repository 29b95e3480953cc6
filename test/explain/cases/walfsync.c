/* span: wal:commit expect: wal:fsync */
#include "clock.h"
int main(void)
{
	for (int i = 1; i <= 1600; i++) {
		kymo_span_begin(wal, commit, kymo_i32(bytes, pick(500)));
		busy(25 + pick(8));
		if (i % 32 == 0) {
			kymo_span_begin(wal, fsync);
			usleep(1800);
			kymo_span_end(wal, fsync);
		}
		kymo_span_end(wal, commit);
		usleep(60);
	}
}
