// SPDX-License-Identifier: GPL-2.0
/// Find users of perf_event_create_kernel_counter(), which pmuk might serve better:
/// with reads, pauses and periods from any context, pinned counters that say when
/// they have lost their place, and records.
//# A report is only a hint. Code that counts on behalf of others, sets breakpoints
//# or opens perf's own events for its users should keep the call.
///
// Confidence: Low
// Options: --no-includes --include-headers
// Keywords: perf_event_create_kernel_counter, pmuk_counter_create

virtual report

@r depends on report@
iterator name scoped_guard;
position p;
@@

perf_event_create_kernel_counter@p(...)

@script:python@
p << r.p;
@@

coccilib.report.print_report(p[0],
    "WARNING opportunity for pmuk_counter_create() in %s()" % p[0].current_element)
