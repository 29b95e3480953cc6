/* span: rep:make expect: (format = "pdf"|tenant = "mega") */
#include "common.h"
static void *work(void *x)
{
	for (int i = 0; i < 900; i++) {
		int mega = chance(.25), pdf = chance(.25);
		kymo_span_begin(rep, make,
			kymo_string(tenant, mega       ? "mega"
					    : below(2) ? "tiny"
						       : "mid"),
			kymo_string(format, pdf	       ? "pdf"
					    : below(2) ? "csv"
						       : "html"));
		spin(about(70));
		spin(about(mega && pdf ? 700 : 30));
		kymo_span_end(rep, make);
		snooze(exponential(150));
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
