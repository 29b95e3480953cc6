/* SPDX-License-Identifier: MIT */
#ifndef BASE_STANDARD_FILES_H
#define BASE_STANDARD_FILES_H

/*
 * Opens those of the descriptors 0 to 2 that the program was started without, so that no socket or
 * file of ours gets such a number: what we print would go there, or a redirection would close it.
 * Nothing can be written to them. Programs that we start get them closed, as we did.
 */
void ky_occupy_standard_files(void);

#endif
