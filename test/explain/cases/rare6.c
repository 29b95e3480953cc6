/* span: mq:ack expect: mail:flush */
#include "common.h"
int main(void)
{
	spin(1);
	for (int i = 0; i < 2400; i++) {
		kymo_span_begin(mq, ack, kymo_i32(id, i));
		spin(about(20));
		if (i % 400 == 211) {
			kymo_span_begin(mail, flush);
			snooze(6000);
			kymo_span_end(mail, flush);
		}
		kymo_span_end(mq, ack);
		snooze(150);
	}
}
