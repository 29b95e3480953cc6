/* SPDX-License-Identifier: MIT */
/*
 * Names that are macros are expanded in the same way in each form of event. The program is its own
 * tracer and examines its events. Exit status: the number of wrong names, or 99.
 */
#include <kymo/tracepoint.h>

#define SHOP   shop
#define ORDER  order
#define COLOUR colour
#define LEVEL  KYMO_WARNING

KYMO_ENUM(COLOUR, KYMO_VALUE("RED", 0), KYMO_VALUE("BLUE", 1))
KYMO_EVENT_DEFINE(SHOP, ORDER, LEVEL, KYMO_NO_ARGS)
KYMO_EVENT_CLASS(SHOP, COLOUR, KYMO_ARGS(int n), kymo_enum(COLOUR, COLOUR, n))
KYMO_EVENT_INSTANCE(SHOP, COLOUR, order2, LEVEL)

static int events, wrong;

static int as_named(const struct kymo_event *event)
{
	if (strcmp(event->provider, "kymo_tracelog") == 0)
		return strcmp(event->name, "WARNING") == 0;
	return strcmp(event->provider, "shop") == 0 && strncmp(event->name, "order", 5) == 0;
}

void kymo_object_register(struct kymo_object *object)
{
	for (const struct kymo_event *const *e = object->begin; e < object->end; e++) {
		events++;
		if (as_named(*e))
			continue;
		printf("line %u: %s:%s\n", (*e)->line, (*e)->provider, (*e)->name);
		wrong++;
	}
}

void kymo_object_unregister(struct kymo_object *object)
{
	(void)object;
}

int main(void)
{
	if (kymo_event_enabled(SHOP, ORDER) || kymo_trace_enabled(SHOP, ORDER))
		return 99;
	kymo_event(SHOP, ORDER);
	kymo_event_level(SHOP, ORDER, LEVEL, kymo_enum(COLOUR, COLOUR, 1));
	kymo_trace(SHOP, ORDER);
	kymo_trace(SHOP, order2, 1);
	kymo_tracelog(LEVEL, "text");
	return events == 6 ? wrong : 99;
}
