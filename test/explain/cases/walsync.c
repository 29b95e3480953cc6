/* span: db:append expect: wal:sync */
#include "common.h"
#include <fcntl.h>
int main(void)
{
	char path[] = "/tmp/walXXXXXX", block[8192] = {0};
	int fd = mkstemp(path);
	unlink(path);
	spin(1);
	for (int i = 1; i < 1600; i++) {
		kymo_span_begin(db, append, kymo_i32(len, below(8192)));
		spin(about(25));
		if (pwrite(fd, block, sizeof(block), (i % 500) * 8192) < 0)
			return 1;
		if (i % 100 == 0) {
			kymo_span_begin(wal, sync);
			fsync(fd);
			snooze(1200);
			kymo_span_end(wal, sync);
		}
		kymo_span_end(db, append);
		snooze(300);
	}
}
