/* span: srv:handle expect: op = "sort" */
#include "clock.h"
static const char script[] =
	"import socket,random,struct,os\n"
	"s=socket.socket(fileno=int(os.environ['FD']))\n"
	"for i in range(700):\n"
	" op='sort' if random.random()<.06 else random.choice(['get','put','del','scan'])\n"
	" s.sendall(struct.pack('8sI',op.encode(),random.randrange(1000)))\n"
	" s.recv(2)\n";
int main(void)
{
	int s[2];
	struct {
		char op[8];
		uint32_t n;
	} r;
	pid_t p;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, s))
		return 1;
	p = fork();
	if (!p) {
		char fd[12];
		snprintf(fd, sizeof(fd), "%d", s[1]);
		setenv("FD", fd, 1);
		unsetenv("LD_PRELOAD");
		close(s[0]);
		execlp("python3", "python3", "-c", script, (char *)0);
		_exit(1);
	}
	close(s[1]);
	while (recv(s[0], &r, sizeof(r), MSG_WAITALL) == sizeof(r)) {
		kymo_span_begin(srv, handle, kymo_string(op, r.op), kymo_u32(n, r.n));
		busy(40 + pick(20));
		if (!strcmp(r.op, "sort"))
			busy(900);
		kymo_span_end(srv, handle);
		if (send(s[0], "ok", 2, 0) < 0)
			break;
	}
	waitpid(p, 0, 0);
}
