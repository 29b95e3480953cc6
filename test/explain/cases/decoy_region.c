/* span: web:page expect: tenant = "acme" */
#include "common.h"
static void *work(void *x)
{
	for (int i = 0; i < 700; i++) {
		int acme = chance(.07), eu = chance(acme ? .9 : .3);
		kymo_span_begin(web, page,
			kymo_string(region, eu	       ? "eu"
					    : below(2) ? "us"
						       : "ap"),
			kymo_string(tenant, acme       ? "acme"
					    : below(2) ? "bolt"
					    : below(2) ? "cork"
						       : "dune"));
		spin(about(60));
		kymo_span_begin(db, rows);
		spin(about(acme ? 700 : 50));
		kymo_span_end(db, rows);
		kymo_span_end(web, page);
		snooze(exponential(250));
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
