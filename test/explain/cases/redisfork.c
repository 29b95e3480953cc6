/* span: redis:command expect: redis:fork */
#include "clock.h"
int main(void)
{
	size_t size = 192u << 20;
	char *db = malloc(size);
	memset(db, 1, size);
	for (int i = 1; i <= 1200; i++) {
		kymo_span_begin(redis, command, kymo_string(cmd, i & 1 ? "GET" : "SET"),
			kymo_u32(client, (uint32_t)pick(30)));
		busy(60 + 20 * dice());
		if (i % 90 == 0) {
			pid_t p;
			kymo_span_begin(redis, fork);
			p = fork();
			if (!p)
				_exit(0);
			kymo_span_end(redis, fork);
			waitpid(p, NULL, WNOHANG);
		}
		db[(size_t)pick(1 << 20) * 128] = 2;
		kymo_span_end(redis, command);
		usleep(100);
	}
}
