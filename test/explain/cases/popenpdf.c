/* span: mail:render expect: format|pdf|convert:run */
#include "common.h"
int main(void)
{
	static const char *const f[] = {"html", "text", "html", "pdf"};
	spin(1);
	for (int i = 0; i < 600; i++) {
		const char *format = f[chance(.08) ? 3 : below(3)];
		kymo_span_begin(
			mail, render, kymo_string(format, format), kymo_i32(to, below(5000)));
		spin(about(200));
		if (*format == 'p') {
			kymo_span_begin(convert, run);
			(void)!system("/bin/true");
			kymo_span_end(convert, run);
		}
		spin(about(50));
		kymo_span_end(mail, render);
		snooze(200);
	}
}
