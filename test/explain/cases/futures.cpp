/* span: page:compose expect: img:decode */
#include "clock.h"
#include <future>
int main()
{
	for (int i = 0; i < 400; i++) {
		{
			kymo_span(page, compose, kymo_i32(id, pick(4000)));
			auto f = std::async(std::launch::async, [] {
				kymo_span(img, decode);
				if (pick(20))
					busy(60);
				else
					usleep(3000);
				return 1;
			});
			{
				kymo_span(txt, layout);
				busy(50);
			}
			f.get();
		}
		usleep(100);
	}
}
