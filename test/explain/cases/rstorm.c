/* span: cli:call expect: cli:attempt */
#include "common.h"
int main(void)
{
	spin(1);
	for (int i = 0; i < 1200; i++) {
		int bad = chance(.05), n = bad ? 4 + below(4) : 1;
		kymo_span_begin(cli, call, kymo_i32(endpoint, below(12)));
		for (int k = 0; k < n; k++) {
			kymo_span_begin(cli, attempt, kymo_i32(no, k));
			spin(about(90));
			kymo_span_end(cli, attempt, kymo_i32(code, k + 1 < n ? 503 : 200));
			if (k + 1 < n)
				snooze(100 << k);
		}
		kymo_span_end(cli, call);
		snooze(200);
	}
}
