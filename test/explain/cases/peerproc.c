/* span: cli:call expect: (srv:compact|srv:serve) */
#include "common.h"
#include <sys/socket.h>
int main(void)
{
	int s[2], id;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s))
		return 1;
	spin(1);
	if (!fork()) {
		close(s[0]);
		name_thread("server");
		while (read(s[1], &id, sizeof(id)) == sizeof(id)) {
			kymo_span_begin(srv, serve, kymo_i32(id, id));
			spin(about(50));
			if (chance(.05)) {
				kymo_span_begin(srv, compact);
				spin(2500);
				kymo_span_end(srv, compact);
			}
			kymo_span_end(srv, serve);
			if (write(s[1], &id, sizeof(id)) < 0)
				break;
		}
		_exit(0);
	}
	close(s[1]);
	for (int i = 0; i < 900; i++) {
		kymo_span_begin(cli, call, kymo_i32(id, i));
		spin(about(20));
		kymo_span_begin(cli, wait);
		if (write(s[0], &i, sizeof(i)) < 0 || read(s[0], &id, sizeof(id)) < 0)
			return 1;
		kymo_span_end(cli, wait);
		kymo_span_end(cli, call);
		snooze(400);
	}
	close(s[0]);
	wait(NULL);
}
