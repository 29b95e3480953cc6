/* span: acl:check expect: waits for mutex .*auditor.* held in (disk:read|audit:scan) */
#include "common.h"
#include <atomic>
#include <mutex>
#include <thread>
static std::mutex m;
static std::atomic<bool> stop;
int main()
{
	spin(1);
	std::thread a([] {
		name_thread("auditor");
		while (!stop) {
			snooze(30000);
			kymo_span_begin(audit, scan);
			std::lock_guard<std::mutex> l(m);
			for (int i = 0; i < 4; i++) {
				kymo_span_begin(disk, read);
				snooze(900);
				kymo_span_end(disk, read);
				spin(20);
			}
			kymo_span_end(audit, scan);
		}
	});
	std::thread w[3];
	for (auto &t : w)
		t = std::thread([] {
			for (int i = 0; i < 500; i++) {
				kymo_span_begin(acl, check, kymo_i32(uid, below(300)));
				spin(about(18));
				{
					std::lock_guard<std::mutex> l(m);
					spin(about(6));
				}
				kymo_span_end(acl, check);
				snooze(600);
			}
		});
	for (auto &t : w)
		t.join();
	stop = true;
	a.join();
}
