/* span: fs:save expect: (batch:hold|fs:lock) */
#include "common.h"
#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <signal.h>
int main(void)
{
	char path[] = "/tmp/flockXXXXXX";
	int fd = mkstemp(path);
	pid_t p;
	spin(1);
	p = fork();
	if (!p) {
		int f = open(path, 2);
		name_thread("batch");
		for (;;) {
			snooze(25000);
			flock(f, LOCK_EX);
			kymo_span_begin(batch, hold);
			snooze(4000);
			kymo_span_end(batch, hold);
			flock(f, LOCK_UN);
		}
	}
	for (int i = 0; i < 1200; i++) {
		kymo_span_begin(fs, save);
		spin(about(25));
		kymo_span_begin(fs, lock);
		flock(fd, LOCK_EX);
		kymo_span_end(fs, lock);
		spin(about(15));
		flock(fd, LOCK_UN);
		kymo_span_end(fs, save);
		snooze(500);
	}
	kill(p, SIGKILL);
	wait(NULL);
	unlink(path);
}
