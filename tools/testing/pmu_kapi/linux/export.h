/* SPDX-License-Identifier: GPL-2.0 */
/* EXPORT_SYMBOL_GPL() is in the Makefile. */
