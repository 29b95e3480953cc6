/* SPDX-License-Identifier: MIT */
/*
 * Why a session records less than its user may think: in sentences, for `status`.
 */
#ifndef SESSIOND_CONTROL_EXPLAIN_H
#define SESSIOND_CONTROL_EXPLAIN_H

#include "base/buf.h"
#include "sessiond/model/contents.h"

/*
 * Appends why this enabled rule of an enabled channel records no event that an application has, or
 * ever had.
 */
void explain_rule(struct ky_buf *to, const struct channel *c, const struct rule *r);
/*
 * Appends a hint if it is the kernel that has events of this name. Reads the list of all of its
 * events: not for many rules at once.
 */
void explain_kernel_name(struct ky_buf *to, const struct env *e, const struct rule *r);

#endif
