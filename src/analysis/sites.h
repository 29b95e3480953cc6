/* SPDX-License-Identifier: MIT */
/* Places of a program as numbers, for the analyses of memory and of locks. */
#ifndef ANALYSIS_SITES_H
#define ANALYSIS_SITES_H

#include "analysis/keys.h"
#include "reader/query.h"

/*
 * Numbers the texts of addresses; 0: no address, or no memory. Equal texts have one number, so that
 * processes of one program have the same sites.
 */
struct ky_sites {
	uint32_t (*find)(void *arg, const struct ky_item *event, uint64_t pid, uint64_t address,
		bool is_code);
	void *arg;
};

/* The value of a field of integers; `otherwise` if the event has no such field. */
uint64_t ky_site_number(struct ky_field_ref *f, const struct ky_item *item, uint64_t otherwise);
/* The name of an event behind its provider, if that is the library's or LTTng-UST's; or NULL. */
const char *ky_site_function(const struct ky_event_class *e, const char *library);
/* A process of a host, as one number. */
uint64_t ky_site_process(const struct ky_item *item, uint64_t pid);

#endif
