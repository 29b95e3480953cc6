/* span: cgi:run expect: script = "search" */
#include "common.h"
int main(void)
{
	static const char *const scripts[] = {"home", "list", "item", "cart", "search"};
	spin(1);
	for (int i = 0; i < 200; i++) {
		if (!fork()) {
			int k = chance(.1) ? 4 : below(4);
			kymo_span_begin(cgi, run, kymo_string(script, scripts[k]));
			spin(about(150));
			kymo_span_begin(cgi, body);
			spin(about(k == 4 ? 2500 : 100));
			kymo_span_end(cgi, body);
			kymo_span_end(cgi, run);
			_exit(0);
		}
		wait(NULL);
	}
}
