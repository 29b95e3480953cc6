/* span: journal:add expect: (fsync|fdatasync) */
#include "common.h"
#include <fcntl.h>
int main(void)
{
	int fd = open("/tmp/kymo-explain-syncer", O_RDWR | O_CREAT | O_TRUNC, 0600);
	char block[65536] = {0};
	spin(1);
	for (int i = 0; i < 400; i++) {
		kymo_span_begin(journal, add, kymo_i32(len, below(900)));
		spin(about(60));
		if (write(fd, block, 64) < 0)
			return 1;
		if (chance(.06)) {
			if (write(fd, block, sizeof(block)) < 0)
				return 1;
			fsync(fd);
		}
		kymo_span_end(journal, add);
		snooze(300);
	}
	unlink("/tmp/kymo-explain-syncer");
}
