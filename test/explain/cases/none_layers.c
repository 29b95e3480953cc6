/* span: ml:infer expect: nothing */
#include "common.h"
int main(void)
{
	spin(1);
	for (int i = 0; i < 900; i++) {
		kymo_span_begin(ml, infer, kymo_f64(score, uniform()), kymo_i32(batch, 8));
		for (int k = 0; k < 4; k++) {
			kymo_span_begin(ml, layer, kymo_i32(no, k));
			spin(about(60));
			kymo_span_end(ml, layer);
		}
		kymo_span_end(ml, infer);
		snooze(150);
	}
}
