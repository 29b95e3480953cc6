/* span: auth:check expect: ldap:bind */
#include "clock.h"
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	for (int i = 0; i < 400; i++) {
		kymo_span_begin(auth, check, kymo_i32(uid, pick(3000)));
		kymo_span_begin(auth, token);
		busy(25 + pick(10));
		kymo_span_end(auth, token);
		if (!pick(20)) {
			kymo_span_begin(ldap, bind);
			usleep(1700);
			kymo_span_end(ldap, bind);
		}
		kymo_span_end(auth, check);
		usleep(200);
	}
	return x;
}
int main(void)
{
	pthread_t t[16];

	start(t, 2, work);
	finish(t, 2);
}
