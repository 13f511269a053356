/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The header instruments the sources of kernel/pmu_kapi and kernel/events that are included after
 * this header. They call step() before each access to what an interrupt may change, and stepped()
 * after a READ_ONCE(). They read registers by steps_arch_read(). steps.masked tells them whether
 * interrupts are off, and steps.nmi whether they run in NMI. Their functions get other names, and
 * are not exported.
 */
#ifndef _PMUK_STEPS_H
#define _PMUK_STEPS_H

/* Keeps each asm/perf_arch.h out. What follows takes its place. */
#define _ASM_GENERIC_PERF_ARCH_H
#define _ASM_X86_PERF_ARCH_H
#define __ASM_PERF_ARCH_H
#define _PMUK_COMPAT_ASM_PERF_ARCH_H
#define perf_arch_mask(event)		((void)(event), 0ULL)
#define perf_arch_read(event)		steps_arch_read(event)
#define perf_arch_read_on(event, raw)	((*(raw) = steps_arch_read(event)), true)
#define perf_arch_read_at(event, place)	((void)(event), steps_read_reg((place)->idx))
#define perf_arch_changed(was, now)	((was) ^ READ_ONCE(now))
#define perf_arch_count_changed(was, now)	((was) ^ local64_read(&(now)))
#define perf_arch_stops_after_nmi()	false
#define perf_arch_page_wants_start()	false
#define perf_arch_nmis()		READ_ONCE(steps.irqs)
#ifndef CONFIG_X86
#define perf_arch_irqs()		((const unsigned long *)&steps.irqs)
#endif
#define perf_arch_read_all	perf_arch_read_all

#define _LINUX_PERF_LOCAL_CORE_H
#define _PMUK_COMPAT_LINUX_PERF_LOCAL_CORE_H
#define perf_ctx_offset(ctx)		((void)(ctx), 0ULL)
#define perf_ctx_time(ctx)		((void)(ctx), 0ULL)
#define perf_ctx_guest_time(ctx)	((void)(ctx), 0ULL)
#define perf_pmu_disabled(pmu)		(*((void)(pmu), &steps.pmu_disabled))

#define perf_local_serve			steps_local_serve
#define perf_local_served			steps_local_served
#define perf_local_is_foreign_nmi		steps_local_is_foreign_nmi
#define perf_local_is_out_of_reach		steps_local_is_out_of_reach
#define perf_local_count			steps_local_count
#define perf_local_now				steps_local_now
#define perf_local_stamp			steps_local_stamp
#define perf_local_times			steps_local_times
#define perf_local_last_value			steps_local_last_value
#define perf_local_stop				steps_local_stop
#define perf_local_start			steps_local_start
#define perf_local_unthrottle			steps_local_unthrottle
#define perf_local_never_throttle		steps_local_never_throttle
#define perf_local_refresh_page			steps_local_refresh_page
#define perf_local_stops_after_nmi		steps_local_stops_after_nmi
#define perf_local_take_overflow		steps_local_take_overflow

#define pmuk_hw_mask				steps_hw_mask
#define pmuk_hw_bar				steps_hw_bar
#define pmuk_hw_is_on				steps_hw_is_on
#define pmuk_fields_fill			steps_fields_fill
#define pmuk_current_cgroup			steps_current_cgroup
#define pmuk_hw_is_out_of_reach			steps_hw_is_out_of_reach
#define pmuk_hw_is_software			steps_hw_is_software
#define pmuk_hw_is_clock			steps_hw_is_clock
#define pmuk_hw_counts_up			steps_hw_counts_up
#define pmuk_hw_adapts				steps_hw_adapts
#define pmuk_hw_is_overdue			steps_hw_is_overdue
#define pmuk_hw_times				steps_hw_times
#define pmuk_hw_ran_of_host			steps_hw_ran_of_host
#define pmuk_hw_never_throttle			steps_hw_never_throttle
#define pmuk_hw_refresh_page			steps_hw_refresh_page
#define pmuk_hw_takes_period			steps_hw_takes_period
#define pmuk_hw_begin_period			steps_hw_begin_period
#define pmuk_hw_has_overflowed			steps_hw_has_overflowed
#define pmuk_hw_stops_after_nmi			steps_hw_stops_after_nmi

#define pmuk_check_own			steps_check_own
#define pmuk_not_less			steps_not_less
#define pmuk_publish_local		steps_publish_local
#define __pmuk_counter_read_local	steps_read_local_slow
#define pmuk_counter_read_local		steps_read_local
#define pmuk_read_is_barred		steps_read_is_barred
#define pmuk_read_fast			steps_read_fast
#define pmuk_counter_snapshot		steps_snapshot
#define pmuk_counter_pause		steps_pause
#define pmuk_counter_resume		steps_resume
#define pmuk_counter_set_period		steps_set_period
#define pmuk_overflow			steps_overflow
#define pmuk_publish			steps_publish
#define pmuk_publish_again		steps_publish_again
#define pmuk_settle_irq_work		steps_settle_irq_work
#define pmuk_counters_read_local	steps_counters_read_local
#define pmuk_counter_rearm		steps_rearm
#define pmuk_counter_take_pending	steps_take_pending
#define pmuk_counter_late_sample	steps_late_sample

int steps_check_own(const struct pmuk_counter *c);
u64 steps_not_less(struct pmuk_counter *c, u64 count);
void steps_publish_local(struct pmuk_counter *c, u64 count);
int steps_read_local_slow(struct pmuk_counter *c, u64 *count);
int steps_snapshot(struct pmuk_counter *c, struct pmuk_value *value);
int steps_pause(struct pmuk_counter *c);
int steps_resume(struct pmuk_counter *c);
int steps_set_period(struct pmuk_counter *c, u64 period);
void steps_overflow(struct perf_event *event, struct perf_sample_data *data, struct pt_regs *regs);
bool steps_publish(struct pmuk_counter *c, const struct pmuk_value *value);
void steps_publish_again(struct pmuk_counter *c);
void steps_settle_irq_work(struct irq_work *irq_work);
int steps_counters_read_local(struct pmuk_counter *const *counters, u64 *counts, unsigned int n);
void steps_rearm(struct pmuk_counter *c, u64 period);
bool steps_take_pending(struct pmuk_counter *c);
void steps_late_sample(struct pmuk_counter *c, struct pmuk_sample *sample);

/* The tests have no buffers, and the functions for buffers are not exported. */
#define pmuk_page_publish		steps_page_write
#define pmuk_page_restore		steps_page_write

static inline void steps_page_write(struct pmuk_counter *c, const struct pmuk_value *value) { }

#undef EXPORT_SYMBOL_GPL
#define EXPORT_SYMBOL_GPL(symbol)
#undef pr_fmt
#undef local_irq_save
#define local_irq_save(flags)		((flags) = steps.masked, steps.masked = true)
#undef local_irq_restore
#define local_irq_restore(flags)	(steps.masked = (flags))
#undef in_nmi
#define in_nmi()			(steps.nmi)
#undef lockdep_assert_irqs_disabled
#define lockdep_assert_irqs_disabled()	WARN_ON_ONCE(!steps.masked)
#define irq_work_queue(work)		((void)(work))	/* the tests run no irq_work */
#undef READ_ONCE
#define READ_ONCE(x)							\
({									\
	step();								\
	__auto_type __seen = __READ_ONCE(x);				\
	stepped();							\
	__seen;								\
})
#undef local64_read
#define local64_read(l)			({ step(); local_read(&(l)->a); })
#undef data_race
/* The instrumented sources say why these accesses may race. */
#define data_race(x)			({ step(); (x); })
#undef perf_local_peek
#define perf_local_peek(field)		READ_ONCE(field)

/* x86 has these two: tags tell whether the driver has moved a counter. */
struct perf_arch_place {
	u64 tag;
	int idx;
};

static inline struct perf_arch_place perf_arch_where(const struct perf_event *event)
{
	return (struct perf_arch_place){ READ_ONCE(event->hw.last_tag), READ_ONCE(event->hw.idx) };
}

static inline u64 perf_arch_is_moved(const struct perf_event *event,
				     const struct perf_arch_place *place)
{
	return (place->tag ^ READ_ONCE(event->hw.last_tag)) |
	       (place->idx ^ READ_ONCE(event->hw.idx));
}

static inline bool perf_arch_read_all(const struct perf_event *const *events, unsigned int n,
				      u64 *raw)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		raw[i] = steps_arch_read(events[i]);
	return true;
}

#endif /* _PMUK_STEPS_H */
