/* span: sess:lookup expect: (the later, the longer|grows with (live|scanned)|(live|scanned) ≥) */
#include "common.h"
static int *v, n;
int main(void)
{
	v = calloc(4000000, sizeof(*v));
	spin(1);
	for (int i = 0; i < 1500; i++) {
		long sum = 0;
		kymo_span_begin(sess, lookup, kymo_i32(user, below(1000)));
		for (int k = 0; k < n; k++)
			sum += v[k] ^ k;
		spin(about(20));
		kymo_span_end(sess, lookup, kymo_i32(scanned, n), kymo_i32(found, (int)(sum & 1)));
		for (int k = below(900); k > 0; k--)
			v[n++] = below(100);
		snooze(300);
	}
}
