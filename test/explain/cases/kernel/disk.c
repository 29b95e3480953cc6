/* span: db:row expect: (block device|pread64|pread) */
#define _GNU_SOURCE
#include "common.h"
#include <fcntl.h>
int main(void)
{
	char path[] = "/var/tmp/diskXXXXXX";
	int fd = mkstemp(path);
	char *b;
	spin(1);
	if (posix_memalign((void **)&b, 4096, 1 << 20))
		return 1;
	memset(b, 1, 1 << 20);
	for (int i = 0; i < 64; i++)
		if (write(fd, b, 1 << 20) < 0)
			return 1;
	fsync(fd);
	close(fd);
	fd = open(path, O_RDONLY | O_DIRECT);
	for (int i = 0; i < 700; i++) {
		kymo_span_begin(db, row);
		spin(about(60));
		if (i % 16 == 3 && pread(fd, b, 1 << 20, (off_t)below(63) << 20) < 0)
			return 1;
		kymo_span_end(db, row);
		snooze(300);
	}
	unlink(path);
}
