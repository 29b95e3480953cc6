/* SPDX-License-Identifier: MIT */
/*
 * Intrusive doubly linked list. A list head is a node that points to itself when the list is empty.
 */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <stdbool.h>

#include "base/util.h"

struct ky_list {
	struct ky_list *next, *prev;
};

#define KY_LIST_INIT(name)                                                                         \
	{                                                                                          \
		&(name), &(name)                                                                   \
	}

static inline void ky_list_init(struct ky_list *l)
{
	l->next = l->prev = l;
}

static inline bool ky_list_empty(const struct ky_list *l)
{
	return l->next == l;
}

static inline void ky_list_append(struct ky_list *head, struct ky_list *n)
{
	n->prev = head->prev;
	n->next = head;
	head->prev->next = n;
	head->prev = n;
}

/* Unlinks n and leaves it as an empty list, so that a second removal is harmless. */
static inline void ky_list_remove(struct ky_list *n)
{
	n->prev->next = n->next;
	n->next->prev = n->prev;
	ky_list_init(n);
}

#define ky_list_entry(node, type, member) ky_container_of(node, type, member)
#define ky_list_foreach(pos, head, member)                                                         \
	for (pos = ky_list_entry((head)->next, __typeof__(*pos), member); &pos->member != (head);  \
		pos = ky_list_entry(pos->member.next, __typeof__(*pos), member))
#define ky_list_foreach_safe(pos, tmp, head, member)                                               \
	for (pos = ky_list_entry((head)->next, __typeof__(*pos), member),                          \
	    tmp = ky_list_entry(pos->member.next, __typeof__(*pos), member);                       \
		&pos->member != (head);                                                            \
		pos = tmp, tmp = ky_list_entry(tmp->member.next, __typeof__(*tmp), member))

#endif
