/* span: sdk:upload expect: api:try */
#include "clock.h"
static void *up(void *x)
{
	int budget = 40;
	for (int i = 0; i < 450; i++) {
		int status;
		kymo_span_begin(sdk, upload, kymo_u64(object, (uint64_t)i * 77 % 1000),
			kymo_string(class, pick(2) ? "hot" : "cold"));
		do {
			kymo_span_begin(api, try);
			usleep(150);
			status = budget-- > 0 ? 200 : 429;
			kymo_span_end(api, try, kymo_i32(status, status));
			if (status == 429) {
				usleep(400);
				if (!pick(4))
					budget = 20 + pick(60);
			}
		} while (status != 200);
		kymo_span_end(sdk, upload);
	}
	return x;
}
int main(void)
{
	pthread_t t[2];
	start(t, 2, up);
	finish(t, 2);
}
