/* SPDX-License-Identifier: MIT */
/*
 * Why a session records less than its user may think: in sentences, for `status`.
 */
#ifndef SESSIOND_CONTROL_EXPLAIN_H
#define SESSIOND_CONTROL_EXPLAIN_H

#include "base/buf.h"
#include "sessiond/model/contents.h"

/* Why no event that a program has, or ever had, is recorded by this enabled rule of an enabled channel. */
void explain_rule(struct ky_buf *to, const struct channel *c, const struct rule *r);

#endif
