/* span: mq:publish expect: each 50th|every 50th */
#include "clock.h"
int main(void)
{
	for (int i = 0; i < 2000; i++) {
		kymo_span_begin(mq, publish, kymo_i32(topic, pick(8)));
		busy(30 + pick(15) + (i % 50 == 7 ? 900 : 0));
		kymo_span_end(mq, publish);
		usleep(40);
	}
}
