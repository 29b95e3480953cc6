/* span: db:select expect: plan of web:page = "free" */
#include "common.h"
static void *work(void *x)
{
	static const char *const plans[] = {"pro", "team", "gold", "trial", "free"};
	for (int i = 0; i < 500; i++) {
		int p = chance(.06) ? 4 : below(4);
		kymo_span_begin(web, page, kymo_string(plan, plans[p]),
			kymo_u32(user, (uint32_t)below(100000)));
		spin(about(30));
		kymo_span_begin(db, select);
		spin(about(p == 4 ? 800 : 60));
		kymo_span_end(db, select);
		kymo_span_end(web, page);
		snooze(200);
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
