/* SPDX-License-Identifier: MIT */
/* leaks [lose]: ends while global variables point to its memory; with "lose", one does not. */
#include <stdlib.h>

static void *volatile kept;

int main(int argc, char **argv)
{
	setenv("LEAKS", "memory that the C library points to", 1);
	kept = malloc(100);
	if (argc > 1)
		kept = NULL;
	return 0;
}
