/* span: xml:parse expect: (alloc|malloc|children) spans: children */
#include "clock.h"
static void *w(void *x)
{
	for (int i = 0; i < 400; i++) {
		int n = pick(18) ? 10 + pick(10) : 5000;
		void **v;
		kymo_span_begin(xml, parse, kymo_i32(doc, pick(100000)));
		v = malloc((size_t)n * sizeof(*v));
		for (int k = 0; k < n; k++)
			v[k] = strdup("attribute value of the node");
		for (int k = 0; k < n; k++)
			free(v[k]);
		free(v);
		busy(30);
		kymo_span_end(xml, parse, kymo_i32(children, n));
		usleep(200);
	}
	return x;
}
int main(void)
{
	pthread_t t[2];
	start(t, 2, w);
	finish(t, 2);
}
