/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Periods that adapt, so that overflows come at a wanted frequency. A period that took longer than
 * wanted makes a later one shorter, and the other way round. The logarithm of the factor is
 * proportional to the excess: 4 wanted times too long halve the period. If the period stays about
 * the same in the long run, the logarithms add up to 0, and so do the excesses: the average is as
 * wanted, also if events come in bursts. A period that took more than 41 wanted times counts as 41,
 * which divides by 2^10.
 */
#ifndef _PMUK_FREQ_H
#define _PMUK_FREQ_H

#include <linux/bits.h>
#include <linux/math.h>
#include <linux/minmax.h>
#include <linux/time64.h>
#include <linux/types.h>

/* The highest frequency. At this one, a period takes 10 us. */
#define PMUK_FREQ_MAX		100000

/* Products in this file fit in 64 bits up to this period. */
#define PMUK_FREQ_LONGEST	BIT_ULL(48)

/*
 * PMUK_FREQ_STEP units are the wanted time. PMUK_FREQ_DOUBLING units too few double the period, and
 * as many units too many halve it. So a period that took no time makes a later one longer by a
 * quarter of a doubling.
 */
#define PMUK_FREQ_STEP		256
#define PMUK_FREQ_DOUBLING	1024

/* Multiplies @period by 2^x, x being @part / PMUK_FREQ_DOUBLING: 1 + 3/4 x is near enough. */
static inline u64 pmuk_freq_longer(u64 period, u64 part)
{
	return period + DIV_ROUND_UP(period * part * 3, PMUK_FREQ_DOUBLING * 4);
}

/* Divides @period by 2^x likewise. The whole part of x is exact, the rest is within 13 %. */
static inline u64 pmuk_freq_shorter(u64 period, u64 part)
{
	period >>= part / PMUK_FREQ_DOUBLING;
	part %= PMUK_FREQ_DOUBLING;
	return period * PMUK_FREQ_DOUBLING * 4 / (PMUK_FREQ_DOUBLING * 4 + part * 3);
}

/*
 * The last period took @ns, and the driver has already begun a period of @begun events. Returns the
 * period to follow that, for @freq overflows per second. Events of software have no driver: @begun
 * is the last period, and the result follows it.
 */
static inline u64 pmuk_freq_next(u64 begun, u64 ns, u32 freq, u64 shortest)
{
	u64 wanted = NSEC_PER_SEC / freq;
	u64 took = min(ns, 41 * wanted) * PMUK_FREQ_STEP / wanted;
	u64 next;

	if (took <= PMUK_FREQ_STEP)
		next = pmuk_freq_longer(begun, PMUK_FREQ_STEP - took);
	else
		next = pmuk_freq_shorter(begun, took - PMUK_FREQ_STEP);
	return clamp(next, shortest, PMUK_FREQ_LONGEST);
}

#endif /* _PMUK_FREQ_H */
