/* span: out:write expect: gzip:block */
#include "clock.h"
static int fd[2];
static void *gz(void *x)
{
	char b[4096];
	int i = 0;
	prctl(PR_SET_NAME, "gzip");
	while (read(fd[0], b, sizeof(b)) > 0) {
		busy(30);
		if (++i % 60 == 0) {
			kymo_span_begin(gzip, block);
			usleep(9000);
			kymo_span_end(gzip, block);
		}
	}
	return x;
}
int main(void)
{
	char b[4096] = {0};
	pthread_t t;
	if (pipe(fd))
		return 1;
	fcntl(fd[1], F_SETPIPE_SZ, 8192);
	pthread_create(&t, 0, gz, 0);
	for (int i = 0; i < 1500; i++) {
		kymo_span_begin(out, write, kymo_i32(line, pick(5000)));
		busy(15);
		if (write(fd[1], b, sizeof(b)) < 0)
			return 1;
		kymo_span_end(out, write);
		usleep(250);
	}
	close(fd[1]);
	pthread_join(t, 0);
}
