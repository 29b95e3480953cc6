/* span: rpc:echo expect: nothing */
#include "common.h"
int main(void)
{
	int a[2], b[2];
	char c;
	spin(1);
	if (pipe(a) || pipe(b))
		return 1;
	if (!fork()) {
		close(a[1]);
		while (read(a[0], &c, 1) == 1) {
			spin(exponential(60));
			(void)!write(b[1], &c, 1);
		}
		_exit(0);
	}
	for (int i = 0; i < 1500; i++) {
		kymo_span_begin(rpc, echo, kymo_i32(size, below(1000)));
		(void)!write(a[1], "x", 1);
		(void)!read(b[0], &c, 1);
		spin(about(20));
		kymo_span_end(rpc, echo);
		snooze(200);
	}
	close(a[1]);
	wait(NULL);
}
