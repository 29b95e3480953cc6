/* SPDX-License-Identifier: MIT */
#include "nested.c"
