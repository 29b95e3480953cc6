/* SPDX-License-Identifier: MIT */
/* A growing array of elements of one type. Zeroed at first. */
#ifndef BASE_VEC_H
#define BASE_VEC_H

#include "base/util.h"

#define KY_VEC(type)                                                                               \
	struct {                                                                                   \
		type *v; /* owned */                                                               \
		size_t n, cap;                                                                     \
	}

/* Room for n elements of this size at *v; 0 or -ENOMEM. */
static inline int ky_vec_reserve(void **v, size_t *cap, size_t n, size_t size)
{
	size_t more = *cap ? *cap : 8;
	void *p;

	if (n <= *cap)
		return 0;
	while (more < n)
		more *= 2;
	p = reallocarray(*v, more, size);
	if (!p)
		return -ENOMEM;
	*v = p;
	*cap = more;
	return 0;
}

/* Appends x (an expression of the type); 0 or -ENOMEM. */
#define ky_vec_add(vec, ...)                                                                       \
	(ky_vec_reserve((void **)&(vec)->v, &(vec)->cap, (vec)->n + 1, sizeof(*(vec)->v)) < 0      \
			? -ENOMEM                                                                  \
			: ((vec)->v[(vec)->n++] = (__VA_ARGS__), 0))

/* Drops the older half when it has max elements. */
#define ky_vec_drop_oldest(vec, max)                                                               \
	do {                                                                                       \
		if ((vec)->n >= (max)) {                                                           \
			(vec)->n /= 2;                                                             \
			memmove((vec)->v, (vec)->v + (vec)->n, (vec)->n * sizeof(*(vec)->v));      \
		}                                                                                  \
	} while (0)

#define ky_vec_deinit(vec)                                                                         \
	do {                                                                                       \
		free((vec)->v);                                                                    \
		(vec)->v = NULL;                                                                   \
		(vec)->n = (vec)->cap = 0;                                                         \
	} while (0)

#endif
