/* span: fw:serve expect: only in process [0-9]+ */
#include "common.h"
static void serve(int slow)
{
	spin(1);
	for (int i = 0; i < 250; i++) {
		kymo_span_begin(fw, serve, kymo_i32(conn, below(64)));
		spin(about(40));
		kymo_span_begin(fw, render);
		spin(about(slow ? 520 : 60));
		kymo_span_end(fw, render);
		kymo_span_end(fw, serve);
		snooze(900);
	}
}
int main(void)
{
	for (int i = 0; i < 7; i++) {
		if (!fork()) {
			serve(i == 4);
			exit(0);
		}
	}
	while (wait(NULL) > 0)
		;
}
