/* SPDX-License-Identifier: MIT */
/* The program of test_grown.c meets a library whose structs have grown. */
#include "test_grown.c"
