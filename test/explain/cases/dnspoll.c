/* span: http:fetch expect: net:resolve.*(host|printer|local) */
#include "common.h"
#include <poll.h>
#include <sys/socket.h>
int main(void)
{
	static const char *const hosts[] = {"a.example.com", "b.example.com", "cdn.example.net",
		"printer.local", "mail.example.org", "nas.local"};
	int s[2];
	spin(1);
	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, s))
		return 1;
	for (int i = 0; i < 900; i++) {
		const char *host =
			hosts[chance(.04) ? 3 + 2 * below(2) : (int[]){0, 1, 2, 4}[below(4)]];
		int local = strstr(host, ".local") != NULL;
		kymo_span_begin(http, fetch, kymo_string(host, host),
			kymo_string(method, chance(.7) ? "GET" : "POST"));
		kymo_span_begin(net, resolve);
		spin(about(30));
		for (int k = 0; k < (local ? 2 : 1); k++) {
			struct pollfd p = {s[0], POLLIN, 0};
			char c;
			if (!local)
				(void)!write(s[1], "x", 1);
			if (poll(&p, 1, 5) > 0)
				(void)!read(s[0], &c, 1);
		}
		kymo_span_end(net, resolve);
		spin(about(150));
		kymo_span_end(http, fetch, kymo_i32(status, 200));
		snooze(200);
	}
}
