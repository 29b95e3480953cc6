/* span: s3:put expect: (s3:attempt comes|event s3:status) */
#include "common.h"
static void *work(void *x)
{
	for (int i = 0; i < 500; i++) {
		int bad = chance(.04) ? 3 + below(3) : 0;
		kymo_span_begin(s3, put, kymo_string(bucket, below(3) ? "logs" : "media"));
		for (int k = 0; k <= bad; k++) {
			kymo_span_begin(s3, attempt, kymo_i32(n, k));
			spin(about(120));
			kymo_event(s3, status, kymo_i32(code, k < bad ? 503 : 200));
			spin(about(10));
			kymo_span_end(s3, attempt);
		}
		kymo_span_end(s3, put);
		snooze(500);
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
