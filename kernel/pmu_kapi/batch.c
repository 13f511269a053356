// SPDX-License-Identifier: GPL-2.0
/*
 * Enables and disables the counters of a set together. The caller first asks whether one of them
 * has to look for room: then it enables each by itself.
 */
#include <kunit/visibility.h>
#include <linux/perf_local_core.h>
#include <linux/timekeeping.h>

#include "share.h"

/* Returns true if perf core can enable and disable the counter together with its set's others. */
static bool pmuk_counter_can_batch(const struct pmuk_counter *c)
{
	return c && !(c->attr.flags & PMUK_INHERIT) && !c->writes_aux && !pmuk_counter_is_gone(c);
}

/*
 * Fills @events with the counters' own events; or if @hosts, with the events of their hosts that
 * are off. Returns how many there are.
 */
static unsigned int pmuk_batch(struct pmuk_counter *const *counters, unsigned int nr, bool hosts,
			       struct perf_event **events)
{
	unsigned int i, n = 0;

	for (i = 0; i < nr; i++) {
		if (!pmuk_counter_can_batch(counters[i]))
			continue;
		if (!hosts)
			events[n++] = counters[i]->event;
		else if (counters[i]->host &&
			 perf_local_state(counters[i]->hw_event) == PERF_EVENT_STATE_OFF)
			events[n++] = counters[i]->hw_event;
	}
	return n;
}

/* Returns true if the counter has found no room, or was pushed out. */
static bool pmuk_counter_lacks_room(const struct pmuk_counter *c)
{
	return pmuk_rider_is_refused(c) ||
	       perf_local_state(c->hw_event) == PERF_EVENT_STATE_ERROR;
}

/*
 * Returns true if any of the counters has to look for room, as pmuk_counter_enable() lets it do.
 * After the @first time, only a counter that lacks room looks again.
 */
bool pmuk_counters_are_probed(struct pmuk_counter *const *counters, unsigned int nr, bool first)
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		if (counters[i] && pmuk_counter_is_probed(counters[i]) &&
		    (first || pmuk_counter_lacks_room(counters[i])))
			return true;
	}
	return false;
}

/*
 * Keeps the hosts on. Until pmuk_counter_enable() notes that a rider needs its host, the only other
 * rider of that host may be disabled, and would disable the host.
 */
static void pmuk_batch_hold_hosts(struct pmuk_counter *const *counters, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		if (pmuk_counter_can_batch(counters[i]) && counters[i]->host)
			pmuk_host_hold(counters[i]);
	}
}

/*
 * Does what pmuk_event_enable() does before it enables. While a host is off, all its riders are, so
 * it needs no time of its own.
 */
static void pmuk_batch_note_start(struct pmuk_counter *const *counters, unsigned int nr)
{
	u64 now = ktime_get_ns();
	unsigned int i;

	for (i = 0; i < nr; i++) {
		if (counters[i] && perf_local_state(counters[i]->event) == PERF_EVENT_STATE_OFF)
			WRITE_ONCE(counters[i]->since, now);
	}
}

/*
 * Enable the counters of a set by one interrupt of their CPU, and their hosts by another, as far as
 * perf core can. The caller then calls pmuk_counter_enable() for each counter, which enables the
 * others and returns errors.
 */
void pmuk_counters_enable(struct pmuk_counter *const *counters, unsigned int nr)
{
	struct perf_event *events[PMUK_SET_COUNTERS];

	pmuk_batch_hold_hosts(counters, nr);
	pmuk_batch_note_start(counters, nr);
	/* The time of a rider runs from its start only if its host has a register then. */
	perf_events_enable(events, pmuk_batch(counters, nr, true, events));
	perf_events_enable(events, pmuk_batch(counters, nr, false, events));
}
EXPORT_SYMBOL_IF_KUNIT(pmuk_counters_enable);

/* Disables the counters of a set likewise. pmuk_counter_disable() then publishes the values. */
void pmuk_counters_disable(struct pmuk_counter *const *counters, unsigned int nr)
{
	struct perf_event *events[PMUK_SET_COUNTERS];

	perf_events_disable(events, pmuk_batch(counters, nr, false, events));
}
