/* span: ml:score expect: confidence */
#include "clock.h"
int main(void)
{
	for (int i = 0; i < 900; i++) {
		double c = dice();
		kymo_span_begin(ml, score, kymo_f64(confidence, c), kymo_i32(label, pick(10)));
		busy(40 + pick(15) + (c < .06 ? 650 : 0));
		kymo_span_end(ml, score);
		usleep(70);
	}
}
