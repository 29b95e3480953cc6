/* SPDX-License-Identifier: MIT */
#include "ring/wait.h"

#include "base/clock.h"
#include "base/system-call.h"

#define NAP_MIN_NS 50000u
#define NAP_MAX_NS 4000000u

static __thread KY_THREAD_TLS uint32_t forbidden;

void ky_wait_forbid(void)
{
	forbidden++;
}

void ky_wait_allow(void)
{
	forbidden--;
}

bool ky_wait_allowed(uint64_t timeout_ns)
{
	return timeout_ns && !forbidden;
}

/*
 * Sleeps. Does not use nanosleep(), which is a cancellation point. Returns false if seccomp forbids
 * it.
 */
static bool sleep_ns(uint64_t ns)
{
	/* struct timespec as the kernel defines it for this call */
	const long t[2] = {0, (long)ns};
	int saved = errno;
	bool slept = ky_raw_call(SYS_nanosleep, t, NULL) == 0 || errno == EINTR;

	errno = saved;
	return slept;
}

enum ky_waited ky_wait_nap(struct ky_ring_wait *w, uint64_t timeout_ns)
{
	uint64_t now, passed, nap;

	if (!ky_wait_allowed(timeout_ns))
		return KY_WAIT_OVER;
	now = ky_clock_read(KY_CLOCK_MONOTONIC);
	if (!w->nap_ns)
		*w = (struct ky_ring_wait){
			.begin_ns = now, .nap_ns = NAP_MIN_NS, .pid = ky_process_number()};
	passed = now - w->begin_ns;
	if (passed >= timeout_ns)
		return KY_WAIT_OVER;
	nap = KY_MIN(w->nap_ns, timeout_ns - passed);
	w->nap_ns = KY_MIN(2 * w->nap_ns, NAP_MAX_NS);
	if (!sleep_ns(nap))
		return KY_WAIT_OVER;
	return ky_process_number() == w->pid ? KY_WAIT_AGAIN : KY_WAIT_FORKED;
}
