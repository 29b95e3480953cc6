/* SPDX-License-Identifier: MIT */
#include "cli/kernel-access.h"

#include <unistd.h>

#include "base/util.h"
#include "kernel/pid-ns.h"

struct cli_kernel_access cli_kernel_access(void)
{
	static const char *const places[] = {
		"/sys/kernel/tracing/events", "/sys/kernel/debug/tracing/events"};

	if (!ky_is_in_initial_pid_ns())
		return (struct cli_kernel_access){.why = "processes have other numbers here",
			.advice =
				"run the daemon in the initial PID namespace (in a container: --pid=host)"};
	if (geteuid())
		return (struct cli_kernel_access){.why = "this user is not root",
			.advice = "root's daemon records the kernel: 'sudo kymo ...'"};
	for (size_t i = 0; i < KY_ARRAY_SIZE(places); i++)
		if (!access(places[i], R_OK | X_OK))
			return (struct cli_kernel_access){.place = places[i]};
	return (struct cli_kernel_access){.why = "tracefs is not mounted",
		.advice =
			"mount -t tracefs tracefs /sys/kernel/tracing (in a container: --privileged)"};
}
