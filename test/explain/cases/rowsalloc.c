/* span: orm:load expect: malloc|rows */
#include "common.h"
struct row {
	struct row *next;
	char name[40];
};
int main(void)
{
	spin(1);
	for (int i = 0; i < 700; i++) {
		int rows = chance(.05) ? 3000 + below(2000) : 20 + below(60);
		kymo_span_begin(orm, load, kymo_string(table, below(2) ? "orders" : "items"),
			kymo_i32(limit, 5000));
		kymo_span_begin(db, query);
		spin(about(150));
		kymo_span_end(db, query, kymo_i32(rows, rows));
		struct row *head = NULL;
		for (int k = 0; k < rows; k++) {
			struct row *r = malloc(sizeof(*r));
			snprintf(r->name, 40, "row %d", k);
			r->next = head;
			head = r;
		}
		while (head) {
			struct row *r = head;
			head = r->next;
			free(r);
		}
		kymo_span_end(orm, load);
		snooze(150);
	}
}
