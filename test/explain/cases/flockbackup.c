/* span: mail:deliver expect: backup:run */
#include "clock.h"
#include <sys/file.h>
#include <signal.h>
int main(void)
{
	char path[] = "/tmp/spoolXXXXXX";
	int fd = mkstemp(path);
	pid_t p = fork();
	if (!p) {
		int f = open(path, O_RDWR);
		prctl(PR_SET_NAME, "backup");
		for (int i = 0; i < 12; i++) {
			usleep(40000);
			flock(f, LOCK_EX);
			kymo_span_begin(backup, run);
			usleep(5000);
			kymo_span_end(backup, run);
			flock(f, LOCK_UN);
		}
		_exit(0);
	}
	for (int i = 0; i < 1200; i++) {
		kymo_span_begin(mail, deliver, kymo_i32(bytes, pick(90000)));
		flock(fd, LOCK_EX);
		busy(30);
		flock(fd, LOCK_UN);
		kymo_span_end(mail, deliver);
		usleep(300);
	}
	waitpid(p, 0, 0);
	unlink(path);
}
