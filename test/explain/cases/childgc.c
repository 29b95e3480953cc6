/* span: bridge:call expect: child:gc */
#include "clock.h"
int main(void)
{
	int a[2], b[2], v;
	pid_t p;
	if (pipe(a) || pipe(b))
		return 1;
	p = fork();
	if (!p) {
		prctl(PR_SET_NAME, "node");
		close(a[1]);
		while (read(a[0], &v, 4) == 4) {
			busy(35);
			if (!pick(24)) {
				kymo_span_begin(child, gc);
				busy(3000);
				kymo_span_end(child, gc);
			}
			if (write(b[1], &v, 4) < 0)
				break;
		}
		_exit(0);
	}
	for (int i = 0; i < 600; i++) {
		kymo_span_begin(bridge, call, kymo_i32(method, pick(15)));
		if (write(a[1], &i, 4) < 0 || read(b[0], &v, 4) < 0)
			return 1;
		busy(15);
		kymo_span_end(bridge, call);
		usleep(200);
	}
	close(a[1]);
	waitpid(p, 0, 0);
}
