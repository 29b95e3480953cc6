/* SPDX-License-Identifier: MIT */
#ifndef BASE_STANDARD_FILES_H
#define BASE_STANDARD_FILES_H

/*
 * Opens those of the descriptors 0 to 2 that the program was started without, so that no socket or
 * file of ours gets such a number: what we print would go there, or a redirection would close it.
 * Nothing can be written to them. Programs that we start get them closed, as we did.
 */
void ky_occupy_standard_files(void);

/*
 * Returns which file of the system is missing that a daemon needs, and stores what to do; NULL if
 * none is. Programs and consumers get memory that is opened again in /proc, to be read only. All
 * processes that a daemon starts get /dev/null in place of a terminal.
 */
const char *ky_missing_file(const char **ret_advice);

#endif
