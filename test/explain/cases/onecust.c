/* span: bill:invoice expect: customer = "ACME" */
#include "common.h"
static void *work(void *x)
{
	static const char *const c[] = {"Initech", "Hooli", "Umbrella", "Globex", "Stark", "ACME"};
	for (int i = 0; i < 400; i++) {
		int k = chance(.04) ? 5 : below(5);
		kymo_span_begin(bill, invoice, kymo_string(customer, c[k]),
			kymo_string(currency, below(2) ? "EUR" : "USD"),
			kymo_i32(lines, 1 + below(30)));
		kymo_span_begin(tax, compute);
		spin(about(40));
		kymo_span_end(tax, compute);
		kymo_span_begin(pdf, layout);
		spin(about(80));
		if (k == 5)
			spin(about(1500));
		kymo_span_end(pdf, layout);
		kymo_span_end(bill, invoice);
		snooze(exponential(900));
	}
	return x;
}
int main(void)
{
	run_threads(3, work);
}
