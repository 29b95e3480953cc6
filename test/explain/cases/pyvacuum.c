/* span: srv:exec expect: vacuum */
#include "clock.h"
static const char script[] = "import socket,random,struct,os,threading\n"
			     "s=socket.socket(fileno=int(os.environ['FD']))\n"
			     "ops=['select','insert','update','delete']\n"
			     "for i in range(600):\n"
			     " op='vacuum' if random.random()<.05 else random.choice(ops)\n"
			     " s.sendall(struct.pack('12sI',op.encode(),random.randrange(5000)))\n"
			     " s.recv(2)\n";
int main(void)
{
	int s[2];
	struct {
		char op[12];
		uint32_t rows;
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
		kymo_span_begin(srv, exec, kymo_string(op, r.op), kymo_u32(rows, r.rows));
		busy(35 + pick(15));
		if (!strcmp(r.op, "vacuum"))
			usleep(1300);
		kymo_span_end(srv, exec);
		if (send(s[0], "ok", 2, 0) < 0)
			break;
	}
	waitpid(p, 0, 0);
}
