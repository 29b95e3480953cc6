/* span: db:commit expect: wal:sync|32nd|32 */
#include "common.h"
#include <fcntl.h>
int main(void)
{
	char name[] = "/var/tmp/kymo-case.XXXXXX";
	int fd = mkstemp(name);
	unlink(name);
	static char page[65536];
	spin(1);
	memset(page, 7, sizeof(page));
	for (int i = 1; i <= 1600; i++) {
		kymo_span_begin(
			db, commit, kymo_u32(txid, (uint32_t)i), kymo_i32(pages, 1 + below(8)));
		spin(about(40));
		if (pwrite(fd, page, sizeof(page), (off_t)(i % 32) * 65536) < 0)
			return 1;
		if (i % 32 == 0) {
			kymo_span_begin(wal, sync);
			fdatasync(fd);
			kymo_span_end(wal, sync);
		}
		spin(about(20));
		kymo_span_end(db, commit);
		snooze(300);
	}
}
