/* SPDX-License-Identifier: MIT */
/* The meaning of a trace's classes to a source: by the names of events and their fields. */
#ifndef ANALYSIS_SOURCE_CLASS_H
#define ANALYSIS_SOURCE_CLASS_H

#include "analysis/source-event.h"

/*
 * Fills in a class, which is zeroed. Names go to *names, which keeps an error. The caller frees
 * c->fields.
 */
void ky_source_class_init(
	struct ky_source_class *c, const struct ky_event_class *e, struct ky_texts *names);
/* Whether events of this name come from the preloads, or from the tracer itself. */
bool ky_source_is_library(const char *name);
/* Returns true if the event of this name is of the provider: "libc:malloc" of "libc". */
bool ky_source_is_of_provider(const char *name, const char *provider);

#endif
