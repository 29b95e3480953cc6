/* SPDX-License-Identifier: MIT */
#include "svc/sigbus.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

static uintptr_t page_size;

/* Puts a page of zeros where the access failed; it is tried again then. */
static void on_sigbus(int signal_number, siginfo_t *info, void *context)
{
	void *page = (void *)((uintptr_t)info->si_addr & ~(page_size - 1));
	int error = errno;

	(void)context;
	if (info->si_code != BUS_ADRERR ||
		mmap(page, page_size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		signal(signal_number, SIG_DFL);
	errno = error;
}

void ky_sigbus_survive(void)
{
	struct sigaction action = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO | SA_RESTART};

	page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
	sigaction(SIGBUS, &action, NULL);
}
