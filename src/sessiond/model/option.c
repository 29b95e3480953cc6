/* SPDX-License-Identifier: MIT */
#include "sessiond/model/option.h"

#include "sessiond/model/contents.h"

#include <inttypes.h>

#define FIELD(member)                                                                              \
	.offset = offsetof(struct channel, member), .size = sizeof(((struct channel *)0)->member)

/*
 * To add an option, add a member of struct channel, a row here, and an option of `kymo
 * enable-channel` in cli/cmd-channel.c.
 */
const struct option channel_options[] = {
	{"subbuf-size", OPTION_SIZE, OPTION_NEW_BUFFERS, true, FIELD(subbuf_size), KY_BLOCK_MIN,
		KY_BLOCK_MAX, .help = "bytes of a sub-buffer"},
	{"num-subbuf", OPTION_NUMBER, OPTION_NEW_BUFFERS, true, FIELD(num_subbuf),
		KY_RING_MIN_BLOCKS, KY_RING_MAX_BLOCKS, .help = "sub-buffers of each buffer"},
	{"burst-size", OPTION_SIZE, OPTION_NEW_BUFFERS, false, FIELD(burst_size), KY_BLOCK_MIN,
		KY_RING_SPREAD_MAX, .zero = "it does not grow",
		.help = "the size up to which a CPU's buffer grows while the consumer is late",
		.not_kernel = true},
	{"buffers", OPTION_WORD, OPTION_NO_BUFFERS, false, FIELD(buffers),
		.words = {"cpu", "thread", "process", "auto"},
		.help = "whether each CPU, thread or process has its own buffers",
		.not_kernel = true},
	{"pool-size", OPTION_NUMBER, OPTION_NEW_BUFFERS, false, FIELD(pool_size), 1, 32768,
		.help = "buffers that are allocated in advance for new threads",
		.not_kernel = true},
	{"mode", OPTION_WORD, OPTION_NO_BUFFERS, false, FIELD(overwrite),
		.words = {"discard", "overwrite"}, .help = "what full buffers do with new events"},
	{"event-conflict", OPTION_WORD, OPTION_AT_ONCE, false, FIELD(separate_conflicts),
		.words = {"refuse", "separate"},
		.help = "what happens to an event with a known name but other fields",
		.not_kernel = true},
	{"switch-timer", OPTION_TIME, OPTION_AT_ONCE, false, FIELD(switch_timer_us),
		OPTION_TIME_MIN, OPTION_TIME_MAX, .zero = "only when recording stops",
		.help = "how often partly filled sub-buffers are written"},
	{"read-timer", OPTION_TIME, OPTION_AT_ONCE, false, FIELD(read_timer_us), OPTION_TIME_MIN,
		OPTION_TIME_MAX, .zero = "adapted to the rate of events",
		.help = "how often the consumer looks for full sub-buffers"},
	{"blocking-timeout", OPTION_TIME, OPTION_AT_ONCE, false, FIELD(blocking_timeout_us), 1,
		OPTION_TIME_MAX, .zero = "not at all", .infinite = "until there is room",
		.help = "how long an event of an application that allows it waits for room",
		.not_kernel = true},
	{"tracefile-size", OPTION_SIZE, OPTION_NEW_BUFFERS, false, FIELD(tracefile_size),
		KY_BLOCK_MIN, INT64_MAX, .zero = "one file for each buffer",
		.help = "size of a file, after which the next one is started"},
	{"tracefile-count", OPTION_NUMBER, OPTION_NEW_BUFFERS, false, FIELD(tracefile_count), 1,
		INT32_MAX, .zero = "all of them",
		.help = "newest files of each buffer that are kept; older ones are removed"},
	{0},
};

/* Options that never change, and why. */
static const struct {
	const char *key, *why;
} fixed[] = {
	{"name", "its files have this name: create another channel"},
	{"output", "the trace is there: create another session with 'kymo create -o DIR'"},
	{"snapshot",
		"it is fixed when a session is created: create another with 'kymo create --snapshot'"},
};

/* "switch-timer" is "switch_timer" in messages. */
static bool same_key(const char *key, const char *param)
{
	for (; *key && *param; key++, param++)
		if (*key != *param && !(*key == '-' && *param == '_'))
			return false;
	return *key == *param;
}

const struct option *option_find(const char *param)
{
	for (const struct option *o = channel_options; o->key; o++)
		if (same_key(o->key, param))
			return o;
	return NULL;
}

const char *option_param(const struct option *o, char buf[OPTION_PARAM_MAX])
{
	size_t i;

	for (i = 0; o->key[i]; i++)
		buf[i] = o->key[i] == '-' ? '_' : o->key[i];
	buf[i] = '\0';
	return buf;
}

void option_explain_unknown(struct ky_buf *to, const char *param)
{
	char key[OPTION_PARAM_MAX];
	size_t i;

	/* As people write it; what is too long for any key comes near none. */
	for (i = 0; param[i] && i + 1 < sizeof(key); i++)
		key[i] = param[i] == '_' ? '-' : param[i];
	key[i] = '\0';
	for (i = 0; i < KY_ARRAY_SIZE(fixed); i++) {
		if (strcmp(fixed[i].key, key))
			continue;
		ky_buf_printf(to, "'%s' cannot be changed: %s", key, fixed[i].why);
		return;
	}
	for (const struct option *o = channel_options; o->key; o++) {
		if (!name_is_meant(key, o->key))
			continue;
		ky_buf_printf(to, "there is no option '%s': did you mean '%s'?", key, o->key);
		return;
	}
	ky_buf_printf(to, "there is no option '%s': 'kymo set' shows what there is", key);
}

/* Appends a bound in the largest unit of which it is a multiple, as it can be given: "4K", "1h". */
static void put_bound(struct ky_buf *to, const struct option *o, uint64_t v)
{
	static const char *const sizes[] = {"", "K", "M", "G"};
	const char *unit = "", *other;
	uint64_t factor = 1, f;
	size_t i;

	for (i = 1; o->kind == OPTION_SIZE && i < KY_ARRAY_SIZE(sizes) && v % (factor << 10) == 0;
		i++) {
		factor <<= 10;
		unit = sizes[i];
	}
	for (i = 0; o->kind == OPTION_TIME && (other = ky_unit_of_time(i, &f)) && v % f == 0; i++) {
		factor = f;
		unit = other;
	}
	ky_buf_printf(to, "%" PRIu64 "%s", v / factor, unit);
}

void option_describe(struct ky_buf *to, const struct option *o)
{
	static const char *const units[] = {[OPTION_NUMBER] = "",
		[OPTION_SIZE] = " (bytes, or with K, M or G)",
		[OPTION_TIME] = " (microseconds, or with us, ms, s, m or h)"};

	if (o->kind == OPTION_WORD) {
		for (size_t i = 0; o->words[i]; i++)
			ky_buf_printf(to, "%s'%s'",
				!i		  ? ""
				: o->words[i + 1] ? ", "
						  : " or ",
				o->words[i]);
		return;
	}
	if (o->zero)
		ky_buf_printf(to, "0 (%s), or ", o->zero);
	ky_buf_printf(to, "%sfrom ", o->pow2 ? "a power of two " : "");
	put_bound(to, o, o->min);
	if (o->max < INT64_MAX) {
		ky_buf_puts(to, " to ");
		put_bound(to, o, o->max);
	}
	ky_buf_puts(to, units[o->kind]);
	if (o->infinite)
		ky_buf_printf(to, ", or inf (%s)", o->infinite);
}

const char *option_effect(const struct option *o)
{
	static const char *const effects[] = {[OPTION_AT_ONCE] = "at once",
		[OPTION_NEW_BUFFERS] = "for buffers that are made from then on",
		[OPTION_NO_BUFFERS] = "while there are no buffers yet"};

	return effects[o->effect];
}

static int parse_number(const struct option *o, const char *text, uint64_t *ret_value)
{
	if (o->infinite && !strcmp(text, "inf")) {
		*ret_value = UINT64_MAX;
		return 0;
	}
	switch (o->kind) {
	case OPTION_SIZE:
		return ky_parse_size(text, ret_value);
	case OPTION_TIME:
		return ky_parse_usec(text, ret_value);
	default:
		return ky_parse_number(text, UINT64_MAX, ret_value);
	}
}

static int parse_word(const struct option *o, const char *text, uint64_t *ret_value)
{
	for (uint64_t i = 0; o->words[i]; i++) {
		if (strcmp(o->words[i], text))
			continue;
		*ret_value = i;
		return 0;
	}
	return -EINVAL;
}

static bool is_allowed(const struct option *o, uint64_t v)
{
	if (o->kind == OPTION_WORD || (v == UINT64_MAX && o->infinite) || (!v && o->zero))
		return true;
	/* Rounding brings a value within bounds, too; but 0 is a mistake. */
	return o->pow2 ? v > 0 : v >= o->min && v <= o->max;
}

int option_take(struct option_values *values, const struct option *o, const char *text)
{
	size_t row = (size_t)(o - channel_options);
	uint64_t value;
	int ret;

	ret = o->kind == OPTION_WORD ? parse_word(o, text, &value) : parse_number(o, text, &value);
	if (ret < 0 || !is_allowed(o, value))
		return -EINVAL;
	values->given |= UINT64_C(1) << row;
	values->value[row] = value;
	if (o->pow2)
		values->value[row] = ky_roundup_pow2(KY_MIN(KY_MAX(value, o->min), o->max));
	return values->value[row] != value;
}

uint64_t option_get(const struct channel *c, const struct option *o)
{
	const void *at = (const char *)c + o->offset;

	return o->size == sizeof(bool)	     ? *(const bool *)at
	       : o->size == sizeof(uint32_t) ? *(const uint32_t *)at
					     : *(const uint64_t *)at;
}

static void option_put(struct channel *c, const struct option *o, uint64_t v)
{
	void *at = (char *)c + o->offset;

	if (o->size == sizeof(bool))
		*(bool *)at = v;
	else if (o->size == sizeof(uint32_t))
		*(uint32_t *)at = (uint32_t)v;
	else
		*(uint64_t *)at = v;
}

bool option_is_changed(
	const struct channel *c, const struct option *o, const struct option_values *values)
{
	size_t row = (size_t)(o - channel_options);

	return values->given >> row & 1 && values->value[row] != option_get(c, o);
}

/*
 * Returns whether `longer` is a name like those of channel c's files: "NAME_1", "NAME-thread_1" or
 * "NAME-p12-3_1".
 */
static bool is_file_of(const struct channel *c, const char *longer)
{
	size_t len = strlen(c->name);
	const char *rest = longer + len;
	int n = 0;

	if (!c->tracefile_size || strncmp(longer, c->name, len))
		return false;
	if (!strncmp(rest, "-thread", 7))
		rest += 7;
	sscanf(rest, "-p%*u-%*u%n", &n);
	rest += n;
	return *rest == '_' && rest[1] && !rest[1 + strspn(rest + 1, "0123456789")];
}

/*
 * Finds a channel whose files could have the same names as this one's: a file NAME_1_0 can belong
 * to channel NAME or to channel NAME_1. Returns NULL if there is none.
 */
static const struct channel *find_namesake(const struct channel *c)
{
	const struct channel *other;

	ky_list_foreach (other, &c->session->channels, node)
		if (is_file_of(c, other->name) || is_file_of(other, c->name))
			return other;
	return NULL;
}

/* Checks whether the channel, as it would be, makes sense. */
static int check_channel(const struct channel *c, struct ky_buf *why)
{
	struct ky_geometry g = {
		.n_rings = 1, .n_blocks = c->num_subbuf, .block_size = c->subbuf_size};

	if (ky_geometry_init(&g) < 0)
		ky_buf_printf(why,
			"channel '%s' would need rings of more than %u MiB each: ask for fewer or smaller sub-buffers",
			c->name, KY_RING_MAX >> 20);
	else if (!c->overwrite && c->session->snapshot)
		ky_buf_printf(why,
			"session '%s' keeps events for snapshots only: its channels are in overwrite mode",
			c->session->name);
	else if (c->overwrite && c->blocking_timeout_us)
		ky_buf_printf(why,
			"channel '%s' is in overwrite mode, where there is always room: a blocking-timeout goes with discard mode",
			c->name);
	else if (c->tracefile_count && !c->tracefile_size)
		ky_buf_printf(why,
			"channel '%s' would have one file for each buffer, however large: a tracefile-count needs a tracefile-size too",
			c->name);
	else if (c->tracefile_size && c->tracefile_size < c->subbuf_size)
		ky_buf_printf(why,
			"a tracefile-size of %" PRIu64
			" is less than a sub-buffer of channel '%s' has, %" PRIu32
			": make files larger, or sub-buffers smaller",
			c->tracefile_size, c->name, c->subbuf_size);
	else if (find_namesake(c))
		ky_buf_printf(why,
			"channels '%s' and '%s' would have files of the same name, because their size is limited: call one of them otherwise",
			c->name, find_namesake(c)->name);
	else
		return 0;
	return -EINVAL;
}

/* Returns the first given option that a channel of the kernel cannot have, or NULL. */
static const struct option *find_not_kernel(const struct option_values *values)
{
	for (const struct option *o = channel_options; o->key; o++)
		if (o->not_kernel && values->given >> (o - channel_options) & 1)
			return o;
	return NULL;
}

int options_check(const struct channel *c, const struct option_values *values, struct ky_buf *why)
{
	const struct option *foreign = c->domain == DOMAIN_KERNEL ? find_not_kernel(values) : NULL;
	struct channel would_be = *c;

	if (foreign) {
		ky_buf_printf(why,
			"channel '%s' has the kernel's buffers, one for each CPU: %s is for channels of applications",
			c->name, foreign->key);
		return -EINVAL;
	}
	for (const struct option *o = channel_options; o->key; o++) {
		if (o->effect != OPTION_NO_BUFFERS || !channel_has_buffers(c) ||
			!option_is_changed(c, o, values))
			continue;
		ky_buf_printf(why,
			"the %s of channel '%s' cannot change any more: it has buffers, which %s: make another channel",
			o->key, c->name,
			c->domain == DOMAIN_KERNEL ? "the kernel fills"
						   : "applications have mapped");
		return -EINVAL;
	}
	options_apply(&would_be, values);
	return check_channel(&would_be, why);
}

void options_apply(struct channel *c, const struct option_values *values)
{
	for (const struct option *o = channel_options; o->key; o++)
		if (values->given >> (o - channel_options) & 1)
			option_put(c, o, values->value[o - channel_options]);
}

void channel_set_options(struct channel *c, const struct option_values *values)
{
	options_apply(c, values);
	OBSERVE(c->session->env, channel_changed, c);
}
