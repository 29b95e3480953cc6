/* span: fcgi:serve expect: cfg:reload */
#include "clock.h"
int main(void)
{
	uint64_t next = clock_us() + 20000;
	for (int i = 0; i < 1500; i++) {
		kymo_span_begin(fcgi, serve, kymo_string(uri, pick(2) ? "/a" : "/b"));
		busy(60 + pick(30));
		if (clock_us() > next) {
			kymo_span_begin(cfg, reload);
			for (int k = 0; k < 40; k++)
				if (access("/etc/hostname", R_OK))
					break;
			busy(1300);
			kymo_span_end(cfg, reload);
			next = clock_us() + 20000;
		}
		kymo_span_end(fcgi, serve);
		usleep(100);
	}
}
