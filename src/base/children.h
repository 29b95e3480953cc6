/* SPDX-License-Identifier: MIT */
#ifndef BASE_CHILDREN_H
#define BASE_CHILDREN_H

/*
 * The process that starts a program may ignore SIGCHLD, and the program inherits that. Then the
 * kernel reports neither the end of a child nor its status. Called first in main: ends that.
 */
void ky_heed_children(void);
/* In a new process, before it runs a command of the user: ignores SIGCHLD again, if it was so. */
void ky_ignore_children_again(void);

#endif
