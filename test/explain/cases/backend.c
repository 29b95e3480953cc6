/* span: gw:forward expect: backend = "b3" */
#include "common.h"
#include <sys/socket.h>
#define B 5
static int s[B][2];
static void serve(int k)
{
	int id;
	char name[16];
	snprintf(name, sizeof(name), "backend-%d", k);
	name_thread(name);
	while (read(s[k][1], &id, sizeof(id)) == sizeof(id)) {
		kymo_span_begin(be, serve, kymo_i32(id, id));
		spin(about(50));
		if (k == 3)
			snooze(900);
		kymo_span_end(be, serve);
		if (write(s[k][1], &id, sizeof(id)) < 0)
			break;
	}
	_exit(0);
}
int main(void)
{
	spin(1);
	for (int k = 0; k < B; k++) {
		if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s[k]))
			return 1;
		if (!fork()) {
			for (int i = 0; i <= k; i++)
				close(s[i][0]);
			serve(k);
		}
		close(s[k][1]);
	}
	for (int i = 0; i < 800; i++) {
		char name[8];
		int k = chance(.08) ? 3 : (int[]){0, 1, 2, 4}[below(4)], id;
		snprintf(name, sizeof(name), "b%d", k);
		kymo_span_begin(gw, forward, kymo_string(backend, name), kymo_i32(len, below(800)));
		if (write(s[k][0], &i, sizeof(i)) < 0 || read(s[k][0], &id, sizeof(id)) < 0)
			return 1;
		spin(about(15));
		kymo_span_end(gw, forward);
		snooze(350);
	}
	for (int k = 0; k < B; k++)
		close(s[k][0]);
	while (wait(NULL) > 0)
		;
}
