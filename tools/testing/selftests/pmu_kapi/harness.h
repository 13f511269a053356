/* SPDX-License-Identifier: GPL-2.0 */
/*
 * kselftest's harness, in which a test may take long: on a machine under load it is slow, and not
 * wrong. What is stuck ends nevertheless.
 */
#ifndef _PMUK_SELFTEST_HARNESS_H
#define _PMUK_SELFTEST_HARNESS_H

#include "../kselftest_harness.h"

#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	500

#endif
