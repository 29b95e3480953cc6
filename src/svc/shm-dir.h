/* SPDX-License-Identifier: MIT */
/*
 * The directory of a session whose buffers are files (`kymo create --shm-path`): what is in it, for the session daemon,
 * which makes it, and for the consumer that recovers a trace from it when all have died (docs/recovery.md).
 *
 *   DIR/buffers/N      the rings of set N (abi/ring.h)
 *   DIR/metadata/UUID  the metadata log of a trace, called by its UUID
 *   DIR/positions/N    "consumed" of set N (abi/resume.h)
 *   DIR/memory         struct ky_resume_session; locked (flock) as long as a daemon or a consumer has the session
 *   DIR/session        messages to a consumer: INIT, then RING_SET of each set, one message behind the other
 *
 * Whoever copies the directory while it is in use copies buffers first: what describes their records is older than these, so it
 * is in the copy too. By name, and in the order in which they were made, buffers are the first.
 */
#ifndef SVC_SHM_DIR_H
#define SVC_SHM_DIR_H

#include "base/util.h"

#define KY_SHM_NAME_MAX	  64 /* with the NUL */
#define KY_SHM_MEMORY	  "memory"
#define KY_SHM_SESSION	  "session"
#define KY_SHM_ORDERS_MAX (64u << 20) /* bytes of DIR/session */

/* Names of files below the directory. */
void ky_shm_buffers(char name[KY_SHM_NAME_MAX], uint32_t set);
void ky_shm_positions(char name[KY_SHM_NAME_MAX], uint32_t set);
void ky_shm_metadata(char name[KY_SHM_NAME_MAX], uint64_t uuid_hi, uint64_t uuid_lo);

/*
 * Makes the directory (mode 0700), or takes an empty one of this user's, and what is always in it. -ENOTEMPTY, -EPERM (another
 * user's, or all may write to it), -EOPNOTSUPP (its file system copies on write: room that was reserved would not do), the system's.
 */
int ky_shm_dir_make(const char *path, int *ret_fd);
/* Opens one that is there. */
int ky_shm_dir_open(const char *path, int *ret_fd);
/* How many sets' buffers are in it, or -errno. */
int ky_shm_count_buffers(int dir);
/* Opens a regular file in it, without following links; flags: O_RDONLY or O_RDWR. The descriptor, or -errno. */
int ky_shm_open(int dir, const char *name, int flags);
/* Removes all that a session keeps in it; what else is in it stays. */
void ky_shm_dir_empty(int fd);
/* And itself. fd stays the caller's. */
void ky_shm_dir_remove(const char *path, int fd);

#endif
