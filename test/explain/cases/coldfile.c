/* span: blob:get expect: file:pread */
#include "clock.h"
int main(void)
{
	char path[] = "/tmp/blobXXXXXX", *b = calloc(1, 1 << 20);
	int fd = mkstemp(path);
	for (int i = 0; i < 24; i++)
		if (write(fd, b, 1 << 20) < 0)
			return 1;
	for (int i = 0; i < 800; i++) {
		int big = !pick(20);
		kymo_span_begin(blob, get, kymo_i32(id, pick(5000)));
		busy(30);
		kymo_span_begin(file, pread);
		for (int k = big ? 8 : 1; k--;)
			if (pread(fd, b, big ? 1 << 20 : 4096, (off_t)pick(16) << 20) < 0)
				return 1;
		kymo_span_end(file, pread);
		busy(20);
		kymo_span_end(blob, get);
		usleep(100);
	}
	unlink(path);
}
