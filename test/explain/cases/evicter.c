/* span: lru:put expect: lru:evict */
#include "clock.h"
int main(void)
{
	int used = 0;
	for (int i = 0; i < 1500; i++) {
		int size = 1 + pick(8);
		kymo_span_begin(lru, put, kymo_i32(size, size));
		busy(20 + pick(8));
		if (used + size > 300) {
			for (int k = 0; k < 40; k++) {
				kymo_span_begin(lru, evict);
				busy(22);
				kymo_span_end(lru, evict);
			}
			used = 100;
		}
		used += size;
		kymo_span_end(lru, put);
		usleep(60);
	}
}
