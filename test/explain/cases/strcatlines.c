/* span: csv:join expect: (lines|alloc) */
#include "clock.h"
int main(void)
{
	for (int i = 0; i < 500; i++) {
		int lines = pick(20) ? 5 + pick(20) : 500 + pick(100);
		char *s = calloc(1, 40000);
		kymo_span_begin(csv, join, kymo_i32(lines, lines));
		for (int k = 0; k < lines; k++)
			strcat(s, "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p\n");
		kymo_span_end(csv, join);
		free(s);
		usleep(60);
	}
}
