/* SPDX-License-Identifier: MIT */
#ifndef BASE_OWN_DIR_H
#define BASE_OWN_DIR_H

/*
 * Stores the absolute path of the directory that has the running program; buf has PATH_MAX bytes.
 * Returns 0 or a negative errno. Without /proc, a program that was started by a relative path calls
 * this before it changes its directory.
 */
int ky_own_dir(char *buf);

#endif
