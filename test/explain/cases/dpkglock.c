/* span: apt:query expect: pkg:install */
#include "clock.h"
#include <sys/file.h>
int main(void)
{
	char path[] = "/tmp/dpkgXXXXXX";
	int fd = mkstemp(path);
	pid_t p = fork();
	if (!p) {
		int f = open(path, O_RDWR);
		for (int i = 0; i < 10; i++) {
			usleep(40000);
			flock(f, LOCK_EX);
			kymo_span_begin(pkg, install, kymo_i32(n, i));
			usleep(4500);
			kymo_span_end(pkg, install);
			flock(f, LOCK_UN);
		}
		_exit(0);
	}
	for (int i = 0; i < 1000; i++) {
		kymo_span_begin(apt, query, kymo_i32(pkg, pick(500)));
		flock(fd, LOCK_SH);
		busy(25);
		flock(fd, LOCK_UN);
		kymo_span_end(apt, query);
		usleep(300);
	}
	waitpid(p, 0, 0);
	unlink(path);
}
