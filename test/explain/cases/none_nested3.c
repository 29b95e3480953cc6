/* span: web:page expect: nothing */
#include "common.h"
int main(void)
{
	spin(1);
	for (int i = 0; i < 1500; i++) {
		kymo_span_begin(web, page, kymo_string(lang, below(3) ? "en" : "de"),
			kymo_i32(user, below(500)));
		kymo_span_begin(db, query);
		spin(exponential(60) + 20);
		kymo_span_end(db, query);
		kymo_span_begin(web, template);
		spin(exponential(60) + 20);
		kymo_span_end(web, template);
		kymo_span_begin(web, gzip);
		spin(exponential(60) + 20);
		kymo_span_end(web, gzip);
		kymo_span_end(web, page);
		snooze(exponential(300));
	}
}
