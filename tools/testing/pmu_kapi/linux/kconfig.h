/* SPDX-License-Identifier: GPL-2.0 */
/* IS_ENABLED() is in the Makefile, where CONFIG_PMU_KAPI is set. */
