/* SPDX-License-Identifier: MIT */
#include "proto/consumer.h"

KY_CONS_MESSAGES(KY_MSG_DEFINE)
