/* span: smtp:send expect: tcp:reconnect */
#include "clock.h"
int main(void)
{
	for (int i = 0; i < 700; i++) {
		kymo_span_begin(smtp, send, kymo_i32(rcpt, 1 + pick(4)));
		if (!pick(28)) {
			kymo_span_begin(tcp, reconnect);
			usleep(2200);
			kymo_span_end(tcp, reconnect);
		}
		kymo_span_begin(smtp, data);
		busy(60 + pick(30));
		kymo_span_end(smtp, data);
		kymo_span_end(smtp, send);
		usleep(150);
	}
}
