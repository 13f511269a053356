/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Makes kernel/pmu_kapi/local.c, included after this, call step() before each look
 * at what an interrupt may change, read registers with steps_arch_read(), and know
 * from steps.masked whether interrupts are off, and from steps.nmi whether this is an
 * NMI. Its functions get other names, and are not exported.
 */
#ifndef _PMUK_STEPS_H
#define _PMUK_STEPS_H

#define _PMU_KAPI_ARCH_H
#define pmuk_arch_read(event)		steps_arch_read(event)
struct pmuk_arch_place { };
#define pmuk_arch_place(event)		((void)(event), (struct pmuk_arch_place){ })
#define pmuk_arch_read_at(event, place)	((void)(place), steps_arch_read(event))
#define pmuk_arch_is_moved(event, place)	((void)(event), (void)(place), 0)
#undef pmuk_arch_changed
#define pmuk_arch_changed(was, now)	((was) ^ READ_ONCE(now))
#undef pmuk_arch_count_changed
#define pmuk_arch_count_changed(was, now)	((was) ^ local64_read(&(now)))
#undef pmuk_arch_stops_after_nmi
#define pmuk_arch_stops_after_nmi()	false
#undef pmuk_arch_nmis
#define pmuk_arch_nmis()		0UL
#undef pmuk_ctx_offset
#define pmuk_ctx_offset(ctx)		((void)(ctx), 0ULL)
#undef pmuk_ctx_guest_time
#define pmuk_ctx_guest_time(ctx)	((void)(ctx), 0ULL)
#undef pmuk_pmu_disabled
#define pmuk_pmu_disabled(pmu)		(*((void)(pmu), &steps.pmu_disabled))

#define pmuk_counter_read_local		steps_read_local
#define pmuk_counter_snapshot		steps_snapshot
#define pmuk_counter_pause		steps_pause
#define pmuk_counter_resume		steps_resume
#define pmuk_counter_set_period		steps_set_period
#define pmuk_overflow			steps_overflow
#define pmuk_publish			steps_publish
#define pmuk_next_period		steps_next_period
#define pmuk_settle_irq_work		steps_settle_irq_work
#define pmuk_counters_read_local	steps_counters_read_local
#define pmuk_counter_rearm		steps_rearm
#define pmuk_counter_take_pending	steps_take_pending
#define pmuk_counter_late_sample	steps_late_sample

int steps_read_local(struct pmuk_counter *c, u64 *count);
int steps_snapshot(struct pmuk_counter *c, struct pmuk_value *value);
int steps_pause(struct pmuk_counter *c);
int steps_resume(struct pmuk_counter *c);
int steps_set_period(struct pmuk_counter *c, u64 period);
void steps_overflow(struct perf_event *event, struct perf_sample_data *data, struct pt_regs *regs);
void steps_publish(struct pmuk_counter *c, const struct pmuk_value *value);
u64 steps_next_period(struct pmuk_counter *c);
void steps_settle_irq_work(struct irq_work *irq_work);
int steps_counters_read_local(struct pmuk_counter *const *counters, u64 *counts, unsigned int n);
void steps_rearm(struct pmuk_counter *c, u64 period);
bool steps_take_pending(struct pmuk_counter *c);
void steps_late_sample(struct pmuk_counter *c, struct pmuk_sample *sample);

/* No buffers here, and what is behind them is not exported. */
#define pmuk_format_sample		steps_format_sample
#define pmuk_page_publish		steps_page_publish
#define pmuk_page_refresh		steps_page_refresh

static inline void steps_format_sample(struct pmuk_counter *c, struct pmuk_buffer *b,
				       const struct pmuk_sample *sample,
				       const struct perf_sample_data *data) { }
static inline void steps_page_publish(struct pmuk_counter *c, const struct pmuk_value *value) { }
static inline void steps_page_refresh(struct pmuk_counter *c) { }

#undef EXPORT_SYMBOL_GPL
#define EXPORT_SYMBOL_GPL(symbol)
#undef pr_fmt
#undef local_irq_save
#define local_irq_save(flags)		((flags) = steps.masked, steps.masked = true)
#undef local_irq_restore
#define local_irq_restore(flags)	(steps.masked = (flags))
#undef in_nmi
#define in_nmi()			(steps.nmi)
#define irq_work_queue(work)		((void)(work))	/* interrupts are off for the whole test */
#undef READ_ONCE
#define READ_ONCE(x)			({ step(); __READ_ONCE(x); })
#undef local64_read
#define local64_read(l)			({ step(); local_read(&(l)->a); })

#endif /* _PMUK_STEPS_H */
