/* SPDX-License-Identifier: MIT */
/* The sizes that least.c and least-server.c agree on: those of Kymo's messages, ring and table. */
#pragma once

#define LEAST_HELLO 1127
#define LEAST_REPLY 64
#define LEAST_RING  134262784
#define LEAST_TABLE 262144
