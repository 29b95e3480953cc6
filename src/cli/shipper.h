/* SPDX-License-Identifier: MIT */
/* Sends a trace to another host: the work of `kymo ship`, also behind `kymo create --set-url`. */
#ifndef CLI_SHIPPER_H
#define CLI_SHIPPER_H

#include <limits.h>

#include "cli/route.h"
#include "cli/shipping.h"

#define CLI_OPTION_SPOOL                                                                                \
	{                                                                                               \
		"spool", 0, "SIZE",                                                                     \
			"free the disk space of data that has arrived; keep at most SIZE of other data" \
	}

#define CLI_OPTION_SHIP_RATE                                                                       \
	{                                                                                          \
		"ship-rate", 0, "SIZE", "send at most SIZE bytes a second (at least 1K)"           \
	}

struct shipper {
	const char *url; /* borrowed */
	struct route route;
	uint64_t spool_max;		     /* 0: the trace is no spool */
	uint64_t rate;			     /* bytes a second; 0: no limit */
	bool once;			     /* send what is there, and do not wait for the end */
	int trace;			     /* -1 before shipper_open() */
	char path[PATH_MAX], name[PATH_MAX]; /* of the trace; of the directory at the other end */
	struct shipping_note note;
};

/* Takes a URL, and --spool if the command line has it. Returns a code, after a report. */
int shipper_init(struct cli *cli, struct shipper *s, const char *url);
void shipper_deinit(struct shipper *s);

/* Opens the trace. name: of the directory at the other end; NULL: that of the trace. */
int shipper_open(struct cli *cli, struct shipper *s, const char *trace, const char *name);

/* Sends until the recording has ended and all is there. Then reports; returns a code. */
int shipper_run(struct cli *cli, struct shipper *s);
/* Does so in another process, without a terminal: `kymo status` says how far it is. */
int shipper_detach(struct cli *cli, struct shipper *s);

#endif
