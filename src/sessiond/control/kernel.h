/* SPDX-License-Identifier: MIT */
/* The parts of commands that are about kernel channels. */
#ifndef SESSIOND_CONTROL_KERNEL_H
#define SESSIOND_CONTROL_KERNEL_H

#include "sessiond/control/request.h"
#include "sessiond/kernel/events.h"
#include "sessiond/kernel/kernel.h"

/* Reads the parameter `domain`. Refuses the request and returns false if it makes no sense. */
bool request_is_kernel(struct request *r, bool *ret_kernel);
/* Opens tracefs. Refuses the request and returns false if that fails. */
bool request_kernel_opens(struct request *r);
/*
 * Makes kernel rules of them. If one cannot be, refuses the request and returns false. Also returns
 * false when the request has to wait for an operation: then it is carried out again.
 */
bool request_kernel_rules(struct request *r, struct rule **rules);
/* Returns whether the request's patterns name the rule. */
bool request_names_rule(struct request *r, const struct rule *rule);
/* The kind as messages spell it. */
const char *rule_kind_name(const struct rule *r);
/* For kernel channels, as functions of these names without "kernel" (commands.h). */
enum outcome answer_with_kernel_rules(struct request *r, struct channel *c);
enum outcome answer_when_kernel_ended(struct request *r, struct channel *c);

#endif
