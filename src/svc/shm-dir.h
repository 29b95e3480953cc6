/* SPDX-License-Identifier: MIT */
/*
 * The directory of a session whose buffers are files (`kymo create --shm-path`). The session daemon
 * makes it. If all daemons have died, a consumer recovers the trace from it (docs/recovery.md).
 *
 *   DIR/buffers/N      the rings of set N (abi/ring.h)
 *   DIR/metadata/UUID  the metadata log of a trace, called by its UUID
 *   DIR/positions/N    "consumed" of set N (abi/resume.h)
 *   DIR/memory         struct ky_resume_session; locked (flock) while a daemon or consumer uses it
 *   DIR/session        messages to a consumer: INIT, then RING_SET of each set, without gaps
 *
 * To copy the directory while it is in use, copy the buffers first. The descriptions of their
 * records are older than the records, so the copy has them too. The buffers come first by name, and
 * they are made first.
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
 * Makes the directory (mode 0700), or takes over an empty one of this user, and adds its fixed
 * contents. Returns 0 and the descriptor, or -ENOTEMPTY; -EPERM if another user owns it or all may
 * write to it; -EOPNOTSUPP if its file system copies on write, because reserved room would not
 * suffice there; or the system's error.
 */
int ky_shm_dir_make(const char *path, int *ret_fd);
/* Opens one that is there. */
int ky_shm_dir_open(const char *path, int *ret_fd);
/* Returns the number of sets whose buffers are in the directory, or -errno. */
int ky_shm_count_buffers(int dir);
/*
 * Opens a regular file in the directory, without following links. flags is O_RDONLY or O_RDWR.
 * Returns the descriptor, or -errno.
 */
int ky_shm_open(int dir, const char *name, int flags);
/* Removes all that a session keeps in it; what else is in it stays. */
void ky_shm_dir_empty(int fd);
/* And itself. fd stays the caller's. */
void ky_shm_dir_remove(const char *path, int fd);

#endif
