/* span: doc:parse expect: nothing */
#include "common.h"
int main(void)
{
	spin(1);
	for (int i = 0; i < 1500; i++) {
		kymo_span_begin(doc, parse, kymo_i32(id, below(100000)));
		void *p[16];
		for (int k = 0; k < 16; k++) {
			p[k] = malloc((size_t)(16 + below(500)));
			spin(exponential(8));
		}
		for (int k = 0; k < 16; k++)
			free(p[k]);
		kymo_span_end(doc, parse);
		snooze(200);
	}
}
