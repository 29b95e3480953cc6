/* span: sess:find expect: the later, the longer */
#include "common.h"
int main(void)
{
	spin(1);
	for (int i = 0; i < 2500; i++) {
		kymo_span_begin(sess, find, kymo_i32(token, below(1000000)));
		spin(about(15) + i * .12);
		kymo_span_end(sess, find);
		snooze(150);
	}
}
