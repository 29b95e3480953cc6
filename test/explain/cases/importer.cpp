/* span: shop:search expect: batch:import */
#include "clock.h"
#include <semaphore.h>
#include <atomic>
#include <thread>
#include <vector>
static sem_t permits;
static std::atomic<bool> stop;
int main()
{
	sem_init(&permits, 0, 3);
	std::thread imp([] {
		prctl(PR_SET_NAME, "importer");
		while (!stop) {
			usleep(60000);
			for (int i = 0; i < 3; i++)
				sem_wait(&permits);
			{
				kymo_span(batch, import, kymo_i32(rows, 5000));
				usleep(6000);
			}
			for (int i = 0; i < 3; i++)
				sem_post(&permits);
		}
	});
	std::vector<std::thread> v;
	for (int k = 0; k < 2; k++)
		v.emplace_back([] {
			for (int i = 0; i < 600; i++) {
				{
					kymo_span(shop, search, kymo_i32(terms, 1 + pick(4)));
					sem_wait(&permits);
					busy(60);
					sem_post(&permits);
				}
				usleep(500);
			}
		});
	for (auto &t : v)
		t.join();
	stop = true;
	imp.join();
}
