/* span: txn:commit expect: txn:attempt */
#include "clock.h"
#include <stdexcept>
#include <thread>
#include <vector>
static void attempt(int left)
{
	kymo_span(txn, attempt, kymo_i32(left, left));
	busy(70 + pick(30));
	if (left)
		throw std::runtime_error("serialization failure");
}
static void work()
{
	for (int i = 0; i < 500; i++) {
		int left = pick(20) ? 0 : 5 + pick(4);
		{
			kymo_span(txn, commit, kymo_i32(rows, pick(30)));
			for (;;)
				try {
					attempt(left);
					break;
				} catch (const std::exception &) {
					left--;
				}
		}
		usleep(100);
	}
}
int main()
{
	std::vector<std::thread> v;
	for (int i = 0; i < 2; i++)
		v.emplace_back(work);
	for (auto &t : v)
		t.join();
}
