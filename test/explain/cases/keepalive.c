/* span: db:query expect: net:connect */
#include "clock.h"
int main(void)
{
	uint64_t last = 0;
	for (int i = 0; i < 600; i++) {
		kymo_span_begin(db, query, kymo_string(table, pick(3) ? "orders" : "users"),
			kymo_i32(limit, 10 * pick(10)));
		if (clock_us() - last > 8000) {
			kymo_span_begin(net, connect);
			usleep(2500);
			kymo_span_end(net, connect);
		}
		busy(80 + pick(50));
		last = clock_us();
		kymo_span_end(db, query);
		usleep(pick(25) ? 300 + (unsigned)pick(600) : 12000);
	}
}
