/* SPDX-License-Identifier: MIT */
#pragma GCC system_header
/* Programs check that it exists. */
