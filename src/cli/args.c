/* SPDX-License-Identifier: MIT */
#include "cli/args.h"

#include <assert.h>

#include "cli/text.h"

const struct cli_option cli_common_options[] = {
	{"json", 0, NULL, "print one JSON object instead of text"},
	{"help", 'h', NULL, "show this help"},
	{0},
};

/*
 * Names that lttng(1) has for options: each stands for one of the command's own, with a value.
 * is_default: beside that option, it asks for what the command does anyway.
 */
static const struct alias {
	const char *name, *own, *value;
	bool is_default;
} aliases[] = {
	{"all-events", "all", NULL, false},
	{"buffers-pid", "buffers", "process", false},
	{"buffers-uid", "buffers", "cpu", false},
	{"tracepoint", "userspace", NULL, true},
};

/* Names that other tools have for what an option of the command does: the answer suggests it. */
static const struct synonym {
	const char *name, *own;
} synonyms[] = {
	{"after", "begin"},
	{"before", "end"},
	{"columns", "fields"},
	{"count", "tail"},
	{"dir", "output"},
	{"expr", "filter"},
	{"filter-expression", "filter"},
	{"format", "to"},
	{"from", "begin"},
	{"grep", "event"},
	{"group-by", "by"},
	{"histogram", "hist"},
	{"interval", "delay"},
	{"last", "tail"},
	{"limit", "tail"},
	{"match", "event"},
	{"name", "event"},
	{"out", "output"},
	{"out-file", "output"},
	{"port", "listen"},
	{"refresh", "delay"},
	{"since", "begin"},
	{"start", "begin"},
	{"stop", "end"},
	{"symbol-path", "symbols"},
	{"timestamp", "time"},
	{"until", "end"},
	{"where", "filter"},
};

#define IN_FRONT "it is for kymo itself: write it before the command"
#define NO_LOGGERS                                                                                 \
	"loggers have no contexts of their own: 'kymo enable-event' takes their names, 'kymo list' shows them"

#define FIRST_LINES "'| head' shows the first lines, --tail=N the last events"
#define OF_PROCESS  "--filter='vpid == N' selects the events of a process"
#define OF_THREAD   "--filter='vtid == N' selects the events of a thread"
#define NAMED_RULE  "give the name of its rule, as 'kymo status' shows it"

/*
 * Options of lttng(1), of its later versions, or of perf-record(1), that are refused: the answer
 * says why, or what to use instead. beside: only for commands that have this option; the more
 * special entry comes first.
 */
static const struct refused {
	const char *name;
	char letter;
	const char *why, *beside;
} refused[] = {
	{"action", 0, "--do=ACTION", "do"},
	{"all", 'a', "name each session", "override-name"},
	{"all-cpus", 'a', "--whole-system records the kernel events of all processes",
		"whole-system"},
	{"buffer-allocation", 0, "--buffers=cpu or --buffers=thread", "num-subbuf"},
	{"buffer-ownership", 0, "--buffers=cpu (of a user) or --buffers=process", "num-subbuf"},
	{"call-graph", 'g',
		"'-t callstack' records the stack of each event, --sample=HZ of CPU samples",
		"sample"},
	{"buffers-global", 0, "the kernel's buffers always are: leave it out", NULL},
	{"capture", 0, "a snapshot holds the event with all its fields", "when"},
	{"channel", 'c', "'kymo status' shows the channels of a session", "fields"},
	{"condition", 0, "--when=CONDITION", "when"},
	{"ctrl-url", 'C', "one connection has both: 'kymo create --set-url'", NULL},
	{"data-url", 'D', "one connection has both: 'kymo create --set-url'", NULL},
	{"domain", 'd', "'kymo status' shows all of a session", "fields"},
	{"event-name", 'E', "--when='event(PATTERN)'", "when"},
	{"exclude-name", 'x', "--when='event(PATTERN)' has no exclusions", "when"},
	{"filter", 'f', "--when='event(PATTERN) && FILTER'", "when"},
	{"filter", 'f', "this command has no filters", NULL},
	{"freq", 'F', "--sample=HZ", "sample"},
	{"gid", 0, "--vgid, which is for events of programs", "vgid"},
	{"glob", 'g', "name each session, or --all", "no-wait"},
	{"group", 'g', "it is an option of kymo-sessiond", "no-sessiond"},
	{"jul", 'j', NO_LOGGERS, "list"},
	{"function", 0, NAMED_RULE, NULL},
	{"head", 0, FIRST_LINES, "tail"},
	{"http", 0, "'kymo web' serves traces to browsers", "from-start"},
	{"kernel", 'k', "this command is not about the kernel", NULL},
	{"lines", 'n', FIRST_LINES, "tail"},
	{"list-commands", 0, "'kymo --help' lists them", NULL},
	{"list-options", 0, "--help lists them", NULL},
	{"location", 'L', "'kymo enable-event' has --probe, --function and --userspace-probe",
		"when"},
	{"log-level", 'l', "--when='event(PATTERN, LEVEL)'", "when"},
	{"log4j", 'l', "-l is short for --loglevel: write --log4j", "log4j"},
	{"log4j", 'l', NO_LOGGERS, "list"},
	{"mi", 'm', "there is no XML: --json prints one JSON object", "no-sessiond"},
	{"mi", 0, "there is no XML: --json prints one JSON object", NULL},
	{"monitor-timer", 0, "'kymo status' says at any time how full buffers are", NULL},
	{"name", 0, "the name comes without an option: kymo add-trigger NAME", "when"},
	{"no-sessiond", 0, IN_FRONT, NULL},
	{"no-consumer", 0, "--no-output writes no trace", NULL},
	{"output", 0, "the buffers of a channel are always mapped", "num-subbuf"},
	{"owner-uid", 0, "a trigger belongs to its session: --session=NAME", NULL},
	{"percentiles", 0,
		"'kymo stat' shows them for each span, --latency for other pairs of events",
		"latency"},
	{"pid", 'p', OF_PROCESS, "begin"},
	{"output-path", 0, "--output=FILE", NULL},
	{"override-url", 0, "--output=DIR, a directory of this host", NULL},
	{"pid", 'p', "--by=process shows each process", "rounds"},
	{"python", 'p', NO_LOGGERS, "list"},
	{"pid", 'p', "a session records programs that run: 'kymo create', 'kymo track --vpid=PID'",
		NULL},
	{"probe", 0, NAMED_RULE, NULL},
	{"quiet", 'q', IN_FRONT, NULL},
	{"rate-policy", 0, "--rate=N/PERIOD", "when"},
	{"replicas", 0, "as many as there are servers: --listen=A,B,C makes three", "shards"},
	{"relayd-path", 0, "'kymo ship' and 'kymo receive' need no relay daemon", NULL},
	{"sessiond-path", 0, "kymo-sessiond is taken from beside this program", NULL},
	{"session", 's', "name the session, or its trace, after the command", "begin"},
	{"set-url", 'U', "it belongs to 'kymo create'; 'kymo ship' sends a trace that is there",
		NULL},
	{"spans", 0, "'kymo stat' shows all spans", "latency"},
	{"syscall", 'S', "leave it out, and " NAMED_RULE, "remove"},
	{"thread", 0, OF_THREAD, "begin"},
	{"tid", 0, OF_THREAD, "begin"},
	{"type", 't', "--when='event(PATTERN)' is about events of programs", "when"},
	{"trace-format", 0, "traces are CTF 1.8, which all readers know", "no-output"},
	{"trace-path", 't', "name the trace after the command", NULL},
	{"uid", 0, "--vuid, which is for events of programs", "vuid"},
	{"userspace-probe", 0, NAMED_RULE, NULL},
	{"verbose", 'v', IN_FRONT, NULL},
	{"version", 'V', IN_FRONT, NULL},
	{"wait", 0, "'kymo fleet fetch' waits until the hosts have shipped", "trace-id"},
	{"wait", 0, "commands wait, unless --no-wait is given", "no-wait"},
	{"viewer", 0, "'babeltrace2 TRACE' and others read the trace as it is", NULL},
};

/* Longest option name and number of options that suggestions look at. */
#define NAMES_MAX 64

static const struct cli_option *find_long(const struct cli_option *t, const char *name, size_t len)
{
	for (; t && t->name; t++) {
		if (strlen(t->name) == len && !memcmp(t->name, name, len))
			return t;
	}
	return NULL;
}

static const struct cli_option *find_letter(const struct cli_option *t, char letter)
{
	for (; t && t->name; t++) {
		if (t->letter == letter)
			return t;
	}
	return NULL;
}

static const struct refused *find_refused(
	const struct cli_option *own, const char *name, size_t len, char letter)
{
	for (const struct refused *r = refused; r < refused + KY_ARRAY_SIZE(refused); r++) {
		if (r->beside && !find_long(own, r->beside, strlen(r->beside)))
			continue;
		if (letter ? r->letter == letter
			   : strlen(r->name) == len && !memcmp(r->name, name, len))
			return r;
	}
	return NULL;
}

static const char *find_synonym(const struct cli_option *own, const char *name)
{
	for (const struct synonym *s = synonyms; s < synonyms + KY_ARRAY_SIZE(synonyms); s++)
		if (!strcmp(s->name, name) && find_long(own, s->own, strlen(s->own)))
			return s->own;
	return NULL;
}

static int no_option_letter(struct cli_args *a, char letter)
{
	const struct refused *r = find_refused(a->table, NULL, 0, letter);

	if (r) {
		snprintf(a->why, sizeof(a->why), "option '-%c' (--%s) is not supported: %s", letter,
			r->name, r->why);
		return -EOPNOTSUPP;
	}
	snprintf(a->why, sizeof(a->why), "unknown option '-%c'", letter);
	return -EINVAL;
}

static int no_option_long(struct cli_args *a, const char *name, size_t len)
{
	const struct cli_option *const tables[] = {a->table, cli_common_options};
	const struct refused *r = find_refused(a->table, name, len, 0);
	const char *names[NAMES_MAX + 1], *near = NULL;
	char given[64];
	size_t n = 0;

	snprintf(given, sizeof(given), "%.*s", (int)KY_MIN(len, sizeof(given)), name);
	if (r) {
		snprintf(a->why, sizeof(a->why), "option '--%s' is not supported: %s", r->name,
			r->why);
		return -EOPNOTSUPP;
	}
	for (size_t i = 0; i < KY_ARRAY_SIZE(tables); i++) {
		for (const struct cli_option *o = tables[i]; o && o->name && n < NAMES_MAX; o++)
			names[n++] = o->name;
	}
	names[n] = NULL;
	near = find_synonym(a->table, given);
	if (!near)
		near = cli_nearest(given, names);
	if (near)
		snprintf(a->why, sizeof(a->why), "unknown option '--%s': did you mean '--%s'?",
			given, near);
	else
		snprintf(a->why, sizeof(a->why), "unknown option '--%s'", given);
	return -EINVAL;
}

static bool may_lack_argument(const struct cli_option *opt)
{
	return *opt->arg == '-' || (*opt->arg == '+' && opt->arg[1] == '-');
}

/*
 * The same value again is the same wish; of two, neither is what was meant for sure. An empty value
 * is the mistake of a script whose variable is not set.
 */
static int keep_value(struct cli_args *a, const struct cli_option *opt, const char *value)
{
	if (value && !*value && !may_lack_argument(opt)) {
		snprintf(a->why, sizeof(a->why), "option '--%s' has an empty argument", opt->name);
		return -EINVAL;
	}
	for (size_t i = 0; i < a->n_given && opt->arg && *opt->arg != '+'; i++) {
		struct cli_given *g = &a->given[i];

		if (g->opt != opt)
			continue;
		if (g->value && value && strcmp(g->value, value)) {
			snprintf(a->why, sizeof(a->why),
				strstr(opt->arg, ",..")
					? "option '--%s' can be given once only: write '%.64s,%.64s'"
					: "option '--%s' can be given once only: '%.64s' or '%.64s'?",
				opt->name, g->value, value);
			return -EINVAL;
		}
		g->value = value ? value : g->value;
		return 0;
	}
	a->given[a->n_given++] = (struct cli_given){opt, value};
	return 0;
}

/* Returns whether this is "--", or "--NAME" or "--NAME=VALUE" of the command. */
static bool is_long_option(const struct cli_args *a, const char *word)
{
	return !strncmp(word, "--", 2) &&
	       (!word[2] || find_long(a->table, word + 2, strcspn(word + 2, "=")));
}

/*
 * An option's argument is the next one of the command line; *i moves on to it. Another option is
 * none: the argument was forgotten.
 */
static int keep_with_next(
	struct cli_args *a, const struct cli_option *opt, int argc, char **argv, int *i)
{
	if (may_lack_argument(opt) && (*i + 1 >= argc || *argv[*i + 1] == '-'))
		return keep_value(a, opt, "");
	if (*i + 1 >= argc || is_long_option(a, argv[*i + 1])) {
		snprintf(a->why, sizeof(a->why), "option '--%s' needs an argument: %s", opt->name,
			cli_option_arg(opt));
		return -EINVAL;
	}
	return keep_value(a, opt, argv[++*i]);
}

/* -ENOENT if it is none, or of an option that the command does not have. */
static int keep_alias(struct cli_args *a, const char *name, size_t len)
{
	const struct cli_option *opt;

	for (size_t i = 0; i < KY_ARRAY_SIZE(aliases); i++) {
		if (strlen(aliases[i].name) != len || memcmp(aliases[i].name, name, len))
			continue;
		opt = find_long(a->table, aliases[i].own, strlen(aliases[i].own));
		if (!opt)
			return -ENOENT;
		return aliases[i].is_default ? 0 : keep_value(a, opt, aliases[i].value);
	}
	return -ENOENT;
}

static int parse_long(struct cli_args *a, int argc, char **argv, int *i)
{
	const char *name = argv[*i] + 2, *equals = strchr(name, '=');
	size_t len = equals ? (size_t)(equals - name) : strlen(name);
	const struct cli_option *opt = find_long(a->table, name, len);
	int r;

	if (!opt)
		opt = find_long(cli_common_options, name, len);
	if (!opt) {
		r = equals ? -ENOENT : keep_alias(a, name, len);
		return r == -ENOENT ? no_option_long(a, name, len) : r;
	}
	if (equals && !opt->arg) {
		snprintf(a->why, sizeof(a->why), "option '--%s' takes no argument", opt->name);
		return -EINVAL;
	}
	if (opt->arg && *cli_option_arg(opt) != '[' && !equals)
		return keep_with_next(a, opt, argc, argv, i);
	return keep_value(a, opt, equals ? equals + 1 : NULL);
}

/* "-x", "-xVALUE", "-x=VALUE", "-x VALUE", and several letters in one argument. */
static int parse_letters(struct cli_args *a, int argc, char **argv, int *i)
{
	const struct cli_option *opt;
	int r = 0;

	for (const char *p = argv[*i] + 1; *p && !r; p++) {
		opt = find_letter(a->table, *p);
		if (!opt)
			opt = find_letter(cli_common_options, *p);
		if (!opt)
			return no_option_letter(a, *p);
		if (opt->arg && !p[1])
			return keep_with_next(a, opt, argc, argv, i);
		r = keep_value(a, opt, opt->arg ? p + 1 + (p[1] == '=') : NULL);
		if (opt->arg)
			break;
	}
	return r;
}

/* Each character of the command line gives at most one option. */
static size_t most_options(int argc, char **argv)
{
	size_t n = 1;

	for (int i = 0; i < argc; i++)
		n += strlen(argv[i]);
	return n;
}

int cli_args_parse(struct cli_args *a, const struct cli_option *table, enum cli_parse_mode mode,
	int argc, char **argv)
{
	bool options = true;
	int r = 0;

	*a = (struct cli_args){.table = table};
	a->given = calloc(most_options(argc, argv), sizeof(*a->given));
	a->pos = calloc((size_t)argc + 1, sizeof(*a->pos));
	if (!a->given || !a->pos) {
		snprintf(a->why, sizeof(a->why), "no memory");
		return -ENOMEM;
	}
	for (int i = 0; i < argc && !r; i++) {
		if (mode == CLI_PARSE_SIDES && !strcmp(argv[i], "--") && !a->n_before) {
			a->n_before = a->n_pos;
		} else if (options && !strcmp(argv[i], "--")) {
			options = false;
		} else if (options && !strncmp(argv[i], "--", 2)) {
			r = parse_long(a, argc, argv, &i);
		} else if (options && argv[i][0] == '-' && argv[i][1]) {
			r = parse_letters(a, argc, argv, &i);
		} else {
			a->pos[a->n_pos++] = argv[i];
			options = options && mode != CLI_PARSE_UNTIL_ARG;
		}
	}
	return r;
}

void cli_args_deinit(struct cli_args *a)
{
	free(a->given);
	free(a->pos);
	memset(a, 0, sizeof(*a));
}

int cli_args_add(struct cli_args *a, const char *name, const char *value)
{
	struct cli_given *given = reallocarray(a->given, a->n_given + 1, sizeof(*given));

	if (!given)
		return -ENOMEM;
	a->given = given;
	a->given[a->n_given++] = (struct cli_given){find_long(a->table, name, strlen(name)), value};
	return 0;
}

const char *cli_args_next(const struct cli_args *a, const char *name, size_t *iter)
{
	assert(*find_long(a->table, name, strlen(name))->arg == '+');
	while (*iter < a->n_given) {
		const struct cli_given *g = &a->given[(*iter)++];

		if (!strcmp(g->opt->name, name))
			return g->value;
	}
	return NULL;
}

static const struct cli_given *last(const struct cli_args *a, const char *name)
{
	assert(find_long(a->table, name, strlen(name)) ||
		find_long(cli_common_options, name, strlen(name)));
	for (size_t i = a->n_given; i-- > 0;) {
		if (!strcmp(a->given[i].opt->name, name))
			return &a->given[i];
	}
	return NULL;
}

bool cli_args_has(const struct cli_args *a, const char *name)
{
	return last(a, name) != NULL;
}

const char *cli_args_get(const struct cli_args *a, const char *name)
{
	const struct cli_given *g = last(a, name);

	return g ? g->value : NULL;
}
