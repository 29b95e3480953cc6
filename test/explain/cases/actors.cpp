/* span: actor:msg expect: (actor = 7|in thread \d+ \(actor-7\)) */
#include "common.h"
#include <condition_variable>
#include <mutex>
#include <queue>
#include <thread>
#include <vector>
struct Actor {
	std::mutex m;
	std::condition_variable c;
	std::queue<int> box;
	std::thread t;
};
static Actor actors[10];
static void run(int n)
{
	char name[16];
	Actor &a = actors[n];
	snprintf(name, sizeof(name), "actor-%d", n);
	name_thread(name);
	for (int left = 150; left > 0; left--) {
		int v;
		{
			std::unique_lock<std::mutex> l(a.m);
			a.c.wait(l, [&] { return !a.box.empty(); });
			v = a.box.front();
			a.box.pop();
		}
		kymo_span_begin(actor, msg, kymo_i32(actor, n), kymo_i32(v, v));
		spin(about(n == 7 ? 600 : 60));
		kymo_span_end(actor, msg);
	}
}
int main()
{
	spin(1);
	for (int i = 0; i < 10; i++)
		actors[i].t = std::thread(run, i);
	for (int i = 0; i < 1500; i++) {
		Actor &a = actors[i % 10];
		{
			std::lock_guard<std::mutex> l(a.m);
			a.box.push(i);
		}
		a.c.notify_one();
		snooze(200);
	}
	for (auto &a : actors)
		a.t.join();
}
