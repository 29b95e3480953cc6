/* SPDX-License-Identifier: MIT */
#include "base/children.h"

#include <signal.h>
#include <stdbool.h>

static bool were_ignored;

void ky_heed_children(void)
{
	were_ignored = signal(SIGCHLD, SIG_DFL) == SIG_IGN;
}

void ky_ignore_children_again(void)
{
	if (were_ignored)
		signal(SIGCHLD, SIG_IGN);
}
