/* span: gfx:blur expect: grows with (width × height|height × width) */
#include "common.h"
int main(void)
{
	spin(1);
	for (int i = 0; i < 900; i++) {
		int w = 20 + below(300), h = 20 + below(300);

		kymo_span_begin(gfx, blur, kymo_i32(width, w), kymo_i32(height, h),
			kymo_i32(quality, below(100)));
		spin(5 + w * h / 400.);
		kymo_span_end(gfx, blur);
	}
}
