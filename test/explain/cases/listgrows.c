/* span: reg:insert expect: (the later|later) */
#include "clock.h"
struct node {
	struct node *next;
	int key;
};
int main(void)
{
	struct node *head = NULL;
	for (int i = 0; i < 3000; i++) {
		struct node *n = malloc(sizeof(*n)), *p;
		kymo_span_begin(reg, insert, kymo_u32(hash, (unsigned)pick(1 << 30)));
		n->key = i;
		n->next = NULL;
		for (int k = 0; k < 12; k++)
			for (p = head; p && p->next; p = p->next)
				;
		if (head)
			p->next = n;
		else
			head = n;
		kymo_span_end(reg, insert);
	}
}
