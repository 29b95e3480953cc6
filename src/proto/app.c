/* SPDX-License-Identifier: MIT */
#include "proto/app.h"

KY_APP_MESSAGES(KY_MSG_DEFINE)
