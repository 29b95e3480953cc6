/* SPDX-License-Identifier: MIT */
/* Makes sessions from the profiles that LTTng's `lttng save` writes (XML). */
#ifndef CLI_LTTNG_PROFILE_H
#define CLI_LTTNG_PROFILE_H

#include "cli/cli.h"
#include "cli/xml.h"

/*
 * Returns the first <session> of a profile, or NULL; xml_next() returns the others. root: what
 * xml_parse returned.
 */
const struct xml *lttng_profile_first(const struct xml *root);
/*
 * Makes the session under this name, and starts it if it was started. If a part is refused, removes
 * the session again. Returns CLI_OK, or another exit code after a report.
 */
int lttng_profile_load(
	struct cli *cli, struct kymo_ctl *ctl, const struct xml *session, const char *name);

#endif
