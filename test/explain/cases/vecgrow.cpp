/* span: col:push expect: vec:grow */
#include "common.h"
#include <vector>
int main()
{
	size_t cap = 64, n = 0;
	char *v = (char *)malloc(cap);
	spin(1);
	for (int i = 0; i < 2500; i++) {
		kymo_span_begin(col, push);
		spin(about(10));
		n += 400;
		if (n > cap) {
			kymo_span_begin(vec, grow, kymo_u64(from, cap));
			v = (char *)realloc(v, cap += 40000);
			memset(v + n, 1, cap - n);
			spin(300);
			kymo_span_end(vec, grow);
		}
		v[n - 1] = 1;
		kymo_span_end(col, push);
		snooze(80);
	}
	free(v);
}
