/* span: la:transpose expect: n = 1024|dim */
#include "common.h"
int main(void)
{
	static const int dims[] = {1000, 1010, 1016, 1040, 1048, 1060};
	static float a[1100 * 64], b[64 * 1100];
	static float big[1100 * 1100];
	spin(1);
	for (int i = 0; i < 900; i++) {
		int n = chance(.07) ? 1024 : dims[below(6)];
		kymo_span_begin(la, transpose, kymo_i32(n, n), kymo_string(type, "f32"));
		for (int r = 0; r < 20; r++)
			for (int k = 0; k < 64; k++)
				for (int j = 0; j < 40; j++)
					big[j * n + k] += a[k * 40 + j];
		if (n == 1024)
			for (int r = 0; r < 3; r++)
				for (int k = 0; k < 1000; k++)
					b[k] += big[(k * 1024) % (1100 * 1100)], spin(.1);
		kymo_span_end(la, transpose);
		snooze(200);
	}
}
