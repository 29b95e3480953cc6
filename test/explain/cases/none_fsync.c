/* span: log:append expect: nothing */
#include "common.h"
#include <fcntl.h>
int main(void)
{
	char name[] = "/var/tmp/kymo-case.XXXXXX";
	int fd = mkstemp(name);
	unlink(name);
	static char b[4096];
	spin(1);
	for (int i = 0; i < 800; i++) {
		kymo_span_begin(log, append, kymo_i32(len, below(4096)));
		spin(about(50));
		if (pwrite(fd, b, sizeof(b), 0) < 0)
			return 1;
		fdatasync(fd);
		spin(about(20));
		kymo_span_end(log, append);
		snooze(300);
	}
}
