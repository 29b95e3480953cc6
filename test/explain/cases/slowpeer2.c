/* span: quorum:write expect: (peer = 2|replica:apply) */
#include "common.h"
#include <sys/socket.h>
#define P 3
static int s[P][2];
int main(void)
{
	spin(1);
	for (int k = 0; k < P; k++) {
		if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s[k]))
			return 1;
		if (!fork()) {
			int v;
			for (int i = 0; i <= k; i++)
				close(s[i][0]);
			while (read(s[k][1], &v, sizeof(v)) == sizeof(v)) {
				kymo_span_begin(replica, apply, kymo_i32(peer, k));
				spin(about(25));
				if (k == 2 && v % 30 == 4)
					snooze(3500);
				kymo_span_end(replica, apply);
				if (write(s[k][1], &v, sizeof(v)) < 0)
					break;
			}
			_exit(0);
		}
		close(s[k][1]);
	}
	for (int i = 0; i < 700; i++) {
		kymo_span_begin(quorum, write, kymo_i32(index, i));
		for (int k = 0; k < P; k++)
			if (write(s[k][0], &i, sizeof(i)) < 0)
				return 1;
		for (int k = 0, v; k < P; k++) {
			kymo_span_begin(quorum, ack, kymo_i32(peer, k));
			if (read(s[k][0], &v, sizeof(v)) < 0)
				return 1;
			kymo_span_end(quorum, ack);
		}
		kymo_span_end(quorum, write);
		snooze(350);
	}
	for (int k = 0; k < P; k++)
		close(s[k][0]);
	while (wait(NULL) > 0)
		;
}
