/* SPDX-License-Identifier: MIT */
/* Finds values of different options of a variant that have the same path. */
#ifndef READER_TWINS_H
#define READER_TWINS_H

#include "reader/layout.h"

/* Links them in a scope (struct ky_node: first, twin). Returns 0 or -ENOMEM. */
int ky_twins_link(struct ky_names *names, struct ky_node *scope);

#endif
