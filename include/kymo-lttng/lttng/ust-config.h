/* SPDX-License-Identifier: MIT */
#pragma GCC system_header
/* Programs look whether it is there. */
