/* span: shop:checkout expect: nothing */
#include "common.h"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
int main(void)
{
	spin(1);
	for (int i = 0; i < 2000; i++) {
		kymo_span_begin(shop, checkout, kymo_i32(items, below(20)),
			kymo_string(tenant, below(2) ? "acme" : "globex"));
		spin(about(40));
		pthread_mutex_lock(&m);
		spin(5);
		pthread_mutex_unlock(&m);
		spin(exponential(100));
		kymo_span_end(shop, checkout);
		snooze(200);
	}
}
