/* SPDX-License-Identifier: MIT */
#include "sessiond/model/tracker.h"

const char *const tracker_names[N_TRACKERS] = {"vpid", "vuid", "vgid", "pid"};

void tracker_reset(struct tracker *t, bool all)
{
	free(t->values);
	*t = (struct tracker){.narrowed = !all};
}

void tracker_deinit(struct tracker *t)
{
	tracker_reset(t, true);
}

int tracker_copy(struct tracker *to, const struct tracker *from)
{
	uint32_t *values = malloc((from->n + 1) * sizeof(*values));

	if (!values)
		return -ENOMEM;
	if (from->n)
		memcpy(values, from->values, from->n * sizeof(*values));
	*to = (struct tracker){from->narrowed, values, from->n};
	return 0;
}

static uint32_t find_index(const struct tracker *t, uint32_t value)
{
	uint32_t i;

	for (i = 0; i < t->n && t->values[i] != value; i++)
		;
	return i;
}

bool tracker_has(const struct tracker *t, uint32_t value)
{
	return !t->narrowed || find_index(t, value) < t->n;
}

int tracker_add(struct tracker *t, uint32_t value)
{
	uint32_t *grown;

	if (find_index(t, value) < t->n)
		return 0;
	if (t->n >= TRACKER_VALUES_MAX)
		return -EDQUOT;
	grown = realloc(t->values, (t->n + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	grown[t->n++] = value;
	t->values = grown;
	t->narrowed = true;
	return 0;
}

int tracker_remove(struct tracker *t, uint32_t value)
{
	uint32_t i = find_index(t, value);

	if (i == t->n)
		return t->narrowed ? -ENOENT : -EINVAL;
	memmove(&t->values[i], &t->values[i + 1], (--t->n - i) * sizeof(*t->values));
	return 0;
}
