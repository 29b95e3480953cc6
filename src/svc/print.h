/* SPDX-License-Identifier: MIT */
/* The output of --help and --version, of all daemons. */
#ifndef SVC_PRINT_H
#define SVC_PRINT_H

/* Prints the text on stdout, and ends the process: with a message if stdout is full. */
void __attribute__((noreturn)) ky_print_and_exit(const char *text);

#endif
