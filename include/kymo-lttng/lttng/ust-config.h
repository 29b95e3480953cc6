/* SPDX-License-Identifier: MIT */
/* Programs look whether it is there. */
