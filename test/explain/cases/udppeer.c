/* span: game:tick expect: peer:compute */
#include "clock.h"
int main(void)
{
	int s[2], v = 0;
	pid_t p;
	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, s))
		return 1;
	p = fork();
	if (!p) {
		prctl(PR_SET_NAME, "peer");
		for (int i = 0; recv(s[1], &v, sizeof(v), 0) == sizeof(v) && v >= 0; i++) {
			kymo_span_begin(peer, compute);
			busy(40);
			if (!pick(22))
				usleep(3500);
			kymo_span_end(peer, compute);
			send(s[1], &v, sizeof(v), 0);
		}
		_exit(0);
	}
	for (int i = 0; i < 600; i++) {
		kymo_span_begin(game, tick, kymo_i32(players, pick(8)));
		busy(30);
		send(s[0], &i, sizeof(i), 0);
		recv(s[0], &v, sizeof(v), 0);
		kymo_span_end(game, tick);
		usleep(200);
	}
	v = -1;
	send(s[0], &v, sizeof(v), 0);
	waitpid(p, 0, 0);
}
