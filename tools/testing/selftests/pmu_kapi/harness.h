/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A test may take longer than kselftest allows by default, since a loaded machine is slow. A stuck
 * test still ends.
 */
#ifndef _PMUK_SELFTEST_HARNESS_H
#define _PMUK_SELFTEST_HARNESS_H

#include "../kselftest_harness.h"

#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	500

#endif
