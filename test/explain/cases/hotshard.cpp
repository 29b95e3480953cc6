/* span: svc:request expect: shard of kv:get = 11 */
/* Three shards are read for each request; one shard has a long chain. */
#include "common.h"
#include <thread>
#include <vector>
static void request(int id)
{
	kymo_span(svc, request, kymo_i32(id, id));
	spin(about(30));
	for (int k = 0; k < 3; k++) {
		int shard = below(48);
		kymo_span(kv, get, kymo_i32(shard, shard));
		spin(about(shard == 11 ? 900 : 25));
	}
	spin(about(20));
}
int main()
{
	std::vector<std::thread> all;
	spin(1);
	for (int t = 0; t < 3; t++)
		all.emplace_back([t] {
			for (int i = 0; i < 500; i++) {
				request(t * 1000 + i);
				snooze(2000);
			}
		});
	for (auto &t : all)
		t.join();
}
