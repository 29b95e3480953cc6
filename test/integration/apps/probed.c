/* SPDX-License-Identifier: MIT */
/*
 * probed N: a program for probes of the kernel. For each byte on its standard input: calls
 * probed_function(i) N times, and gets N times to its SDT probe probed:step, whose arguments are i
 * and -i. Prints how often the probe's semaphore was not 0 there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* As <sys/sdt.h> of SystemTap, which may not be installed. */
__attribute__((section(".probes"), used)) volatile unsigned short probed_step_semaphore;

#define PROBE(a, b)                                                                                \
	__asm__ volatile("990: nop\n"                                                              \
			 ".pushsection .note.stapsdt,\"?\",\"note\"\n"                             \
			 ".balign 4\n"                                                             \
			 ".4byte 992f-991f, 994f-993f, 3\n"                                        \
			 "991: .asciz \"stapsdt\"\n"                                               \
			 "992: .balign 4\n"                                                        \
			 "993: .8byte 990b\n"                                                      \
			 ".8byte _.stapsdt.base\n"                                                 \
			 ".8byte probed_step_semaphore\n"                                          \
			 ".asciz \"probed\"\n"                                                     \
			 ".asciz \"step\"\n"                                                       \
			 ".asciz \"8@%0 -8@%1\"\n"                                                 \
			 "994: .balign 4\n"                                                        \
			 ".popsection\n"                                                           \
			 ".ifndef _.stapsdt.base\n"                                                \
			 ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"   \
			 ".weak _.stapsdt.base\n"                                                  \
			 ".hidden _.stapsdt.base\n"                                                \
			 "_.stapsdt.base: .space 1\n"                                              \
			 ".size _.stapsdt.base, 1\n"                                               \
			 ".popsection\n"                                                           \
			 ".endif\n" ::"r"((unsigned long)(a)),                                     \
		"r"((long)(b)))

__attribute__((noinline)) int probed_function(int n);

int probed_function(int n)
{
	__asm__ volatile("" ::: "memory");
	return n + 1;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1, n_on;
	char c;

	while (read(0, &c, 1) == 1) {
		n_on = 0;
		for (int i = 0; i < n; i++) {
			probed_function(i);
			n_on += probed_step_semaphore != 0;
			PROBE(i, -i);
		}
		printf("%d\n", n_on);
		fflush(stdout);
	}
	return 0;
}
