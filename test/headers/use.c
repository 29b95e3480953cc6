/* SPDX-License-Identifier: MIT */
/* Every macro of the installed headers, used: compiled as each standard by test-headers.py. */
#include <kymo/types.h>

int main(void)
{
	return 0;
}
