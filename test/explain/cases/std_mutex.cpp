/*
 * span: db:commit
 * spans: wal:checkpoint
 * expect: waits for mutex .*checkpointer.* held in wal:checkpoint
 */
#include "common.h"
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>
static std::mutex wal;
static std::atomic<bool> stop;
int main()
{
	spin(1);
	std::thread checkpointer([] {
		name_thread("checkpointer");
		while (!stop) {
			snooze(30000 + 20000 * uniform());
			kymo_span_begin(wal, checkpoint);
			std::lock_guard<std::mutex> l(wal);
			snooze(5000);
			kymo_span_end(wal, checkpoint);
		}
	});
	std::vector<std::thread> v;
	for (int k = 0; k < 3; k++)
		v.emplace_back([] {
			for (int i = 0; i < 700; i++) {
				kymo_span_begin(db, commit, kymo_i32(pages, below(20)));
				spin(about(40));
				{
					std::lock_guard<std::mutex> l(wal);
					spin(about(6));
				}
				spin(about(30));
				kymo_span_end(db, commit);
				snooze(400);
			}
		});
	for (auto &t : v)
		t.join();
	stop = true;
	checkpointer.join();
}
