/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel, as kernel/pmu_kapi/{local,pause,hw}.c and kernel/events/local.c need it, for user
 * space: one CPU, one event, and a PMU whose driver does the same as those of x86 and arm64. All
 * that changes is in @cpu, so that it can be saved and restored.
 */
#ifndef _TEST_PERF_CORE_H
#define _TEST_PERF_CORE_H

#include <asm/local64.h>
#include <errno.h>
#include <linux/atomic.h>
#include <linux/bits.h>
#include <linux/compiler.h>
#include <linux/kconfig.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/types.h>
#include <uapi/linux/perf_event.h>

#define noinline
#define lockdep_assert_irqs_disabled()	((void)0)
#define __percpu
#define DEFINE_FREE(name, type, free)
#define UUID_INIT(...)		{ }
#define container_of(p, type, field)	((type *)((char *)(p) - offsetof(type, field)))
#define IS_ERR_OR_NULL(p)	(!(p))

#define NSEC_PER_SEC		1000000000L
#define U64_MAX			(~0ULL)
#define ULONG_MAX		(~0UL)

#define refcount_t		int
#define seqcount_latch_t	int
#define wait_queue_head_t	int
#define poll_table		int
struct test_uuid { u8 b[16]; };
#define uuid_t			struct test_uuid
struct kref { int n; };
struct rnd_state { int n; };
struct irq_work { void (*func)(struct irq_work *work); };
struct work_struct { int n; };
struct mutex { int n; };
#define __guarded_by(lock)
struct completion;
struct file;
struct module;
struct pt_regs { int user; };
struct task_struct { int nr_cpus_allowed; };
struct perf_event;

static inline u64 DIV_ROUND_UP(u64 n, u64 by)
{
	return (n + by - 1) / by;
}

static inline u64 round_up(u64 n, u64 to)
{
	return DIV_ROUND_UP(n, to) * to;
}

static inline u32 prandom_u32_state(struct rnd_state *rnd)
{
	return 0;
}

#define xchg(p, new)		__atomic_exchange_n(p, new, __ATOMIC_SEQ_CST)
#define try_cmpxchg(p, old, new) \
	__atomic_compare_exchange_n(p, old, new, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)

/* ---- perf core ---- */

struct perf_sample_data {
	u64 sample_flags;
	u64 period;
	u64 addr;
	u64 time;
	union perf_sample_weight weight;
};

static inline void perf_sample_data_init(struct perf_sample_data *data, u64 addr, u64 period)
{
	*data = (struct perf_sample_data){ .addr = addr, .period = period };
}

#define user_mode(regs)			((regs)->user)
#define user_stack_pointer(regs)	((void)(regs), 0UL)
#define pmuk_sample_ip(event, regs)	((void)(event), (void)(regs), 0ULL)
#define pmuk_sample_misc(event, regs)	((void)(event), (void)(regs), 0)

#define PERF_HES_STOPPED	1
#define PERF_HES_UPTODATE	2
#define PERF_EF_RELOAD		2
#define PERF_EF_UPDATE		4

enum perf_event_state {
	PERF_EVENT_STATE_EXIT = -3, PERF_EVENT_STATE_INACTIVE = 0, PERF_EVENT_STATE_ACTIVE
};

enum { perf_invalid_context = -1, perf_hw_context };

#define PERF_PMU_CAP_NO_INTERRUPT	1

struct pmu {
	int task_ctx_nr;
	int capabilities;
	void (*pmu_enable)(struct pmu *pmu);
	void (*pmu_disable)(struct pmu *pmu);
	void (*start)(struct perf_event *event, int flags);
	void (*stop)(struct perf_event *event, int flags);
	void (*read)(struct perf_event *event);
	int (*check_period)(struct perf_event *event, u64 period);
};

struct perf_event_context;

struct hw_perf_event {
	struct task_struct *target;
	int state;
	u64 interrupts;
	u64 sample_period;
	u64 last_period;
	local64_t prev_count;
	local64_t period_left;
};

struct perf_event {
	struct pmu *pmu;
	struct perf_event_context *ctx;
	struct perf_event_attr attr;
	struct hw_perf_event hw;
	local64_t count;
	int cpu;
	int oncpu;
	int state;
	u64 tstamp;
	u64 total_time_enabled;
	u64 total_time_running;
	void *overflow_handler_context;
};

static inline void perf_event_update_userpage(struct perf_event *event)
{
}

#define local_clock()			0ULL

/* ---- the CPU ---- */

/* The code that runs now: all later levels can interrupt it. */
enum level { TASK, OWN_NMI, FOREIGN_NMI };

extern struct cpu {
	u64 reg;			/* the counter's register */
	bool enabled;			/* the PMU is enabled */
	int pmu_disabled;		/* perf core's pmu_disable_count */
	enum level level;
	bool masked;			/* interrupts are off */
	bool queued;			/* ->settle is queued */
	bool warns;			/* the driver warns if what has overflowed is stopped */
	unsigned long tick;
	unsigned long irqs;		/* how many calls have interrupted others */
	struct perf_event event;
} cpu;

#define jiffies			cpu.tick
#define smp_processor_id()	0
#define raw_smp_processor_id()	0
#define current			((struct task_struct *)NULL)
#define NMI_MASK		0xf0000000U
#define preempt_count()		(in_nmi() ? NMI_MASK : 1U)
#define in_nmi()		(cpu.level != TASK)
#define cpu_relax()		do { } while (0)

#define DEFINE_PER_CPU(type, name)	type name
#define __this_cpu_read(x)	(x)
#define __this_cpu_write(x, value)	((void)((x) = (value)))

#define local_irq_save(flags)	((flags) = cpu.masked, cpu.masked = true)
#define local_irq_restore(flags)	irq_restore(flags)
#define irq_work_queue(work)	((void)(work), (void)(cpu.queued = true))
#define irq_work_is_pending(work)	((void)(work), cpu.queued)
#define guard(name)		guard_##name
#define guard_irqsave()		\
	bool flags __attribute__((cleanup(irq_guard_end))) = cpu.masked; cpu.masked = true

void irq_restore(unsigned long flags);

static inline void irq_guard_end(bool *flags)
{
	irq_restore(*flags);
}

/* ---- asm/perf_arch.h and linux/perf_local_core.h ---- */

#define _LINUX_PERF_LOCAL_CORE_H
#define _LINUX_PERF_LOCAL_STATE_H	/* the tests need no more of it than this: */
#define perf_local_cpu(event)		READ_ONCE((event)->cpu)
#define perf_local_peek(field)		READ_ONCE(field)
#define _LINUX_PMU_KAPI_GROUP_H		/* no test here reads groups */
struct perf_arch_place { };
#define perf_arch_mask(event)		((void)(event), 0ULL)
#define perf_arch_read(event)		((void)(event), READ_ONCE(cpu.reg))
#define perf_arch_read_on(event, raw)	((void)(event), *(raw) = READ_ONCE(cpu.reg), true)
#define perf_arch_where(event)		((void)(event), (struct perf_arch_place){ })
#define perf_arch_read_at(event, place)	((void)(event), (void)(place), READ_ONCE(cpu.reg))
#define perf_arch_is_moved(event, place)	((void)(event), (void)(place), 0)
#define perf_arch_changed(was, now)	((was) ^ READ_ONCE(now))
#define perf_arch_count_changed(was, now)	((was) ^ local64_read(&(now)))
#define perf_arch_stops_after_nmi()	cpu.warns
#define perf_arch_page_wants_start()	false
#define perf_arch_nmis()		cpu.irqs
#ifdef COUNTS_IRQS
#define perf_arch_irqs()		((const unsigned long *)&cpu.irqs)
#endif
#define perf_ctx_offset(ctx)		((void)(ctx), 0ULL)
#define perf_ctx_time(ctx)		((void)(ctx), 0ULL)
#define perf_ctx_guest_time(ctx)	((void)(ctx), 0ULL)
#define perf_pmu_disabled(pmu)		(*((void)(pmu), &cpu.pmu_disabled))

#endif /* _TEST_PERF_CORE_H */
