// SPDX-License-Identifier: GPL-2.0
/*
 * A simulated PMU lets tests check that counts are exact.
 *
 * The PMU behaves as hardware and drivers do: a register of limited width that wraps, an overflow
 * flag, an interrupt that adds the register's events to the count and reloads the register, and
 * counters that freeze while perf core reprograms the PMU. Events happen when a test calls for
 * them, and the PMU has its own account of them.
 *
 * A register and its run bit are one word, so an NMI that stops a counter in the middle of an event
 * stops it for that event, too. All state belongs to one CPU, and is accessed there only, with
 * interrupts off.
 */
#define pr_fmt(fmt) "pmuk_sim: " fmt

#include <linux/bitops.h>
#include <linux/cleanup.h>
#include <linux/cpumask.h>
#include <linux/export.h>
#include <linux/hrtimer.h>
#include <linux/irqflags.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/perf_local_core.h>
#include <linux/pmu_kapi.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <asm/local64.h>

#include "pmuk_packets.h"
#include "pmuk_sim.h"

/* In pmuk_sim_counter::reg, this bit above the widest register says that the counter runs. */
#define SIM_RUN		BIT_ULL(63)

/* An event with this perf_event_attr::config2 never fits. */
#define SIM_MISFIT	U64_MAX

struct pmuk_sim_counter {
	struct perf_event *event;
	local64_t reg;
};

/* Holds the tracing part of the PMU. */
struct pmuk_sim_trace {
	struct perf_event *event;		/* the tracing event, or NULL */
	bool runs;				/* the event is started */
	struct pmuk_packets_out out;
	struct pmuk_aux_handle handle;
};

struct pmuk_sim_cpu {
	struct pmuk_sim_trace trace;
	struct pmuk_sim_counter counters[PMUK_SIM_COUNTERS];
	unsigned int stolen;			/* written by IPI */
	bool frozen;				/* no counter counts until the PMU is enabled */
	unsigned long overflowed;		/* bit per counter */
	local64_t counted[PMUK_SIM_EVENTS];	/* read from anywhere */
};

struct pmuk_sim {
	struct pmu pmu;
	struct pmuk_sim_config config;		/* const after create */
	u64 mask;				/* const after create */
	bool unplugged;				/* test thread */
	atomic_t nr_events;
	const struct pmuk_sim_hook *hook;	/* written by the test's thread */
	struct pmuk_sim_cpu __percpu *cpus;
};

static struct pmuk_sim *to_sim(struct pmu *pmu)
{
	return container_of(pmu, struct pmuk_sim, pmu);
}

static struct pmuk_sim_cpu *sim_this_cpu(const struct pmuk_sim *sim)
{
	return this_cpu_ptr(sim->cpus);
}

static struct pmuk_sim_counter *sim_counter(struct perf_event *event)
{
	return &sim_this_cpu(to_sim(event->pmu))->counters[event->hw.idx];
}

static void sim_hook(struct pmuk_sim *sim, enum pmuk_sim_point point)
{
	const struct pmuk_sim_hook *hook = READ_ONCE(sim->hook);

	if (hook)
		hook->fn(sim, point, hook->data);
}

/* Adds the register's new events to the event's count, as drivers do. */
static void sim_update(struct perf_event *event)
{
	struct pmuk_sim *sim = to_sim(event->pmu);
	struct hw_perf_event *hwc = &event->hw;
	u64 prev, raw, delta;

	sim_hook(sim, PMUK_SIM_ENTERED);
	do {
		prev = local64_read(&hwc->prev_count);
		sim_hook(sim, PMUK_SIM_READ_PREV);
		raw = local64_read(&sim_counter(event)->reg) & sim->mask;
		sim_hook(sim, PMUK_SIM_READ_REG);
	} while (local64_cmpxchg(&hwc->prev_count, prev, raw) != prev);

	sim_hook(sim, PMUK_SIM_MOVED_PREV);
	delta = (raw - prev) & sim->mask;
	local64_add(delta, &event->count);
	sim_hook(sim, PMUK_SIM_COUNTED);
	local64_sub(delta, &hwc->period_left);
	sim_hook(sim, PMUK_SIM_DONE);
}

/*
 * Loads the register so that it wraps at the end of the period. Returns whether the last one has
 * ended.
 */
static bool sim_set_period(struct perf_event *event)
{
	struct pmuk_sim *sim = to_sim(event->pmu);
	struct pmuk_sim_counter *counter = sim_counter(event);
	struct hw_perf_event *hwc = &event->hw;
	s64 left = local64_read(&hwc->period_left);
	s64 period = hwc->sample_period;
	bool ended = sim->config.interval ? !left : left <= 0;

	if (ended) {
		left = left <= -period ? period : left + period;
		local64_set(&hwc->period_left, left);
		hwc->last_period = period;
	}
	/* SPE writes period_left into PMSICR as it is. A negative one is a very long interval. */
	if (sim->config.interval)
		left &= sim->mask;
	left = min_t(s64, left, sim->mask >> 1);
	local64_set(&hwc->prev_count, (u64)-left);
	sim_hook(sim, PMUK_SIM_RELOADING);
	local64_set(&counter->reg, (local64_read(&counter->reg) & SIM_RUN) |
				   ((u64)-left & sim->mask));
	perf_event_update_userpage(event);
	return ended;
}

/* ---- trace: the AUX area is opened while the event runs, as hardware would write it ---- */

static bool sim_is_traced(const struct perf_event *event)
{
	return event->attr.config1 & PMUK_SIM_TRACE;
}

static void sim_trace_begin(struct pmuk_sim_trace *trace)
{
	pmuk_aux_output_begin(&trace->handle, pmuk_event_buffer(trace->event));
}

static void sim_trace_start(struct perf_event *event)
{
	struct pmuk_sim_trace *trace = &sim_this_cpu(to_sim(event->pmu))->trace;

	trace->event = event;
	trace->runs = true;
	trace->out.left = 0;
	sim_trace_begin(trace);
}

static void sim_trace_stop(struct perf_event *event)
{
	struct pmuk_sim_trace *trace = &sim_this_cpu(to_sim(event->pmu))->trace;

	trace->runs = false;
	pmuk_aux_output_end(&trace->handle, 0);
	trace->event = NULL;
}

/* Publishes the written bytes, as an interrupt of real hardware would, and begins the next part. */
static u64 sim_trace(struct pmuk_sim_trace *trace, u64 branches)
{
	u64 left = branches, size = 0;

	if (!pmuk_get_aux(&trace->handle))
		sim_trace_begin(trace);
	if (pmuk_get_aux(&trace->handle)) {
		size = pmuk_packets_write(&trace->out, trace->handle.data, trace->handle.size,
					  &left);
	} else {
		trace->out.number += left;
		trace->out.left = 0;
	}
	pmuk_aux_output_end(&trace->handle, size);
	if (left)
		pmuk_aux_output_lose(pmuk_event_buffer(trace->event), left * sizeof(u64));
	sim_trace_begin(trace);
	return branches - left;
}

/**
 * pmuk_sim_write_trace() - let branches happen on this CPU
 * @sim: the PMU
 * @branches: number of branches
 *
 * If an event with PMUK_SIM_TRACE runs on this CPU, it writes the branches to its AUX area, see
 * pmuk_packets.h. Branches without room are truncated, and reported as lost.
 *
 * Context: Any, NMI too; does not nest.
 * Return: The number of branches that were written; 0 without such an event.
 */
u64 pmuk_sim_write_trace(struct pmuk_sim *sim, u64 branches)
{
	struct pmuk_sim_trace *trace;

	guard(irqsave)();
	trace = &sim_this_cpu(sim)->trace;
	return trace->runs ? sim_trace(trace, branches) : 0;
}
EXPORT_SYMBOL_GPL(pmuk_sim_write_trace);

/* ---- counters ---- */

/* An NMI between the two accesses may count, start or stop. */
static void sim_run(struct pmuk_sim_counter *counter, u64 run)
{
	u64 old;

	do {
		old = local64_read(&counter->reg);
	} while (local64_cmpxchg(&counter->reg, old, (old & ~SIM_RUN) | run) != old);
}

/* The register has counted on while the event was off the PMU. */
static void sim_start_silently(struct perf_event *event)
{
	u64 reg = (local64_read(&event->hw.prev_count) + 1000) & to_sim(event->pmu)->mask;

	local64_set(&event->hw.prev_count, reg);
	local64_set(&sim_counter(event)->reg, reg | SIM_RUN);
}

static void sim_start(struct perf_event *event, int flags)
{
	if (to_sim(event->pmu)->config.silent) {
		sim_start_silently(event);
		return;
	}
	event->hw.state = 0;
	if ((flags & PERF_EF_RELOAD) || !to_sim(event->pmu)->config.keeps)
		sim_set_period(event);
	sim_run(sim_counter(event), SIM_RUN);
	if (sim_is_traced(event))
		sim_trace_start(event);
}

static void sim_stop(struct perf_event *event, int flags)
{
	struct pmuk_sim_cpu *cpu = sim_this_cpu(to_sim(event->pmu));

	if (event->hw.state & PERF_HES_STOPPED)
		return;
	if (to_sim(event->pmu)->config.silent) {
		sim_update(event);
		return;
	}

	if (sim_is_traced(event))
		sim_trace_stop(event);
	sim_run(sim_counter(event), 0);
	sim_update(event);
	clear_bit(event->hw.idx, &cpu->overflowed);
	event->hw.state |= PERF_HES_STOPPED | PERF_HES_UPTODATE;
}

/* Returns a free counter that is not stolen, or -1. */
static int sim_find_counter(const struct pmuk_sim *sim)
{
	const struct pmuk_sim_cpu *cpu = sim_this_cpu(sim);
	unsigned int i, left = cpu->stolen;
	int idx = -1;

	for (i = 0; i < sim->config.nr_counters; i++) {
		if (cpu->counters[i].event)
			continue;
		if (!left)
			idx = i;
		else
			left--;
	}
	return idx;
}

static int sim_add(struct perf_event *event, int flags)
{
	struct pmuk_sim *sim = to_sim(event->pmu);
	struct pmuk_sim_counter *counter;
	int idx = sim_find_counter(sim);

	if (idx < 0 || event->attr.config2 == SIM_MISFIT)
		return -EAGAIN;
	if (sim_is_traced(event) && sim_this_cpu(sim)->trace.event)
		return -EBUSY;

	event->hw.idx = idx;
	if (!sim->config.silent)
		event->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
	counter = sim_counter(event);
	counter->event = event;
	local64_set(&counter->reg, 0);
	if (flags & PERF_EF_START)
		sim_start(event, PERF_EF_RELOAD);
	return 0;
}

static void sim_del(struct perf_event *event, int flags)
{
	sim_stop(event, PERF_EF_UPDATE);
	sim_counter(event)->event = NULL;
	event->hw.idx = -1;
	perf_event_update_userpage(event);
}

static void sim_read(struct perf_event *event)
{
	sim_update(event);
}

static void sim_event_destroy(struct perf_event *event)
{
	atomic_dec(&to_sim(event->pmu)->nr_events);
}

static bool sim_has_cpu(const struct pmuk_sim *sim, int cpu)
{
	return !sim->config.cpus || cpumask_test_cpu(cpu, sim->config.cpus);
}

/* Keeps a task's events off the PMU on CPUs of another kind. */
static bool sim_filter(struct pmu *pmu, int cpu)
{
	return !sim_has_cpu(to_sim(pmu), cpu);
}

static int sim_event_init(struct perf_event *event)
{
	struct pmuk_sim *sim = to_sim(event->pmu);
	struct hw_perf_event *hwc = &event->hw;
	int ret = 0;

	if (event->attr.type != event->pmu->type || event->attr.config >= PMUK_SIM_EVENTS)
		return -ENOENT;
	if (event->cpu != -1 && !sim_has_cpu(sim, event->cpu))
		return -ENOENT;
	if (has_branch_stack(event) && !sim->config.fill)
		return -EOPNOTSUPP;
	if (sim->config.event_init)
		ret = sim->config.event_init(&event->attr, sim->config.data);
	if (ret)
		return ret;

	hwc->idx = -1;
	if (sim->config.uncore)
		event->cpu = cpumask_first(cpu_online_mask);
	/*
	 * A register without a period wraps, too, and its events must be added to the count before
	 * that.
	 */
	if (!is_sampling_event(event)) {
		hwc->sample_period = sim->mask >> 1;
		hwc->last_period = hwc->sample_period;
		local64_set(&hwc->period_left, hwc->sample_period);
	}
	atomic_inc(&sim->nr_events);
	event->destroy = sim_event_destroy;
	return 0;
}

/*
 * perf core's entry for interrupts is not exported, so a modular build has no throttling. With
 * throttling, perf core stops the event itself.
 */
static void sim_report(struct perf_event *event, struct perf_sample_data *data,
		       struct pt_regs *regs)
{
#ifdef MODULE
	perf_overflow_handler_t handler = READ_ONCE(event->overflow_handler);

	if (is_sampling_event(event))
		handler(event, data, regs);
#else
	perf_event_overflow(event, data, regs);
#endif
}

static void sim_overflow(struct perf_event *event, struct pt_regs *regs)
{
	const struct pmuk_sim_config *config = &to_sim(event->pmu)->config;
	struct perf_sample_data data;

	sim_update(event);
	perf_sample_data_init(&data, config->addr, event->hw.last_period);
	if (config->weight) {
		data.weight.full = config->weight;
		data.sample_flags |= PERF_SAMPLE_WEIGHT;
	}
	if (config->raw) {
		data.raw = (struct perf_raw_record *)config->raw;
		data.sample_flags |= PERF_SAMPLE_RAW;
	}
	if (config->regs)
		*regs = *config->regs;
#ifdef CONFIG_X86
	if (config->exact)
		regs->flags |= PERF_EFLAGS_EXACT;
#endif
	if (config->fill)
		config->fill(event, &data, config->data);
	if (sim_set_period(event))
		sim_report(event, &data, regs);
}

/* The counters are frozen while the interrupt is served, as on hardware. */
static noinline void sim_handle_interrupt(struct pmuk_sim_cpu *cpu)
{
	struct pt_regs regs = {};
	unsigned int i;

	perf_fetch_caller_regs(&regs);
	cpu->frozen = true;
	for (i = 0; i < PMUK_SIM_COUNTERS; i++) {
		if (test_and_clear_bit(i, &cpu->overflowed) && cpu->counters[i].event)
			sim_overflow(cpu->counters[i].event, &regs);
	}
	cpu->frozen = false;
}

static void sim_disable(struct pmu *pmu)
{
	sim_this_cpu(to_sim(pmu))->frozen = true;
}

static void sim_enable(struct pmu *pmu)
{
	struct pmuk_sim_cpu *cpu = sim_this_cpu(to_sim(pmu));

	cpu->frozen = false;
	if (cpu->overflowed)
		sim_handle_interrupt(cpu);
}

/*
 * All events happen in the kernel, some of them in its idle task. On a PMU that skids, all happen
 * in user space.
 */
static bool sim_filtered(const struct perf_event *event)
{
	const struct pmuk_sim_config *config = &to_sim(event->pmu)->config;

	return (config->skids ? event->attr.exclude_user : event->attr.exclude_kernel) ||
	       (event->attr.exclude_idle && is_idle_task(current));
}

/*
 * Lets up to @n events happen to a counter, and no more than fit before it wraps. Returns how many
 * have happened.
 */
static u64 sim_step(const struct pmuk_sim *sim, struct pmuk_sim_cpu *cpu,
		    unsigned int idx, u64 config, u64 n)
{
	struct pmuk_sim_counter *counter = &cpu->counters[idx];
	u64 old, reg, step;

	do {
		old = local64_read(&counter->reg);
		if (cpu->frozen || !counter->event || !(old & SIM_RUN) ||
		    counter->event->attr.config != config || sim_filtered(counter->event))
			return 0;
		reg = old & sim->mask;
		step = min(n, sim->mask + 1 - reg);
		reg = (reg + step) & sim->mask;
	} while (local64_cmpxchg(&counter->reg, old, reg | SIM_RUN) != old);

	local64_add(step, &cpu->counted[config]);
	if (!reg)
		set_bit(idx, &cpu->overflowed);
	return step;
}

static u64 sim_happen(struct pmuk_sim *sim, u64 config, u64 n, bool interrupt)
{
	struct pmuk_sim_cpu *cpu;
	u64 step, left, counted = 0;
	unsigned int i;

	if (config >= PMUK_SIM_EVENTS)
		return 0;

	guard(irqsave)();
	cpu = sim_this_cpu(sim);
	for (i = 0; i < sim->config.nr_counters; i++) {
		for (left = n; left; left -= step) {
			step = sim_step(sim, cpu, i, config, left);
			if (!step)
				break;
			counted += step;
			if (interrupt && cpu->overflowed)
				sim_handle_interrupt(cpu);
		}
	}
	return counted;
}

/**
 * pmuk_sim_count() - let events happen on this CPU
 * @sim: the PMU
 * @config: number of the event
 * @n: number of times that the event happens
 *
 * Each counter of this CPU that counts @config counts @n. A counter that wraps overflows at once,
 * in the caller's context with interrupts off. It then counts the rest, unless the overflow has
 * stopped it.
 *
 * Context: Any, NMI too.
 * Return: The sum of what all counters have counted. It is 0 if no counter counts @config, or if
 * the PMU is being reprogrammed or serves an interrupt.
 */
u64 pmuk_sim_count(struct pmuk_sim *sim, u64 config, u64 n)
{
	return sim_happen(sim, config, n, true);
}
EXPORT_SYMBOL_GPL(pmuk_sim_count);

/**
 * pmuk_sim_advance() - let events happen on this CPU, and no interrupt yet
 * @sim: the PMU
 * @config: number of the event
 * @n: number of times that the event happens. If @n does not fit the register, a wrap is lost, as
 *	on hardware
 *
 * Does what pmuk_sim_count() does, but a counter that wraps counts on from 0 until
 * pmuk_sim_interrupt(), as hardware does until its interrupt is served.
 *
 * Context: Any, NMI too.
 * Return: The sum of what all counters have counted.
 */
u64 pmuk_sim_advance(struct pmuk_sim *sim, u64 config, u64 n)
{
	return sim_happen(sim, config, n, false);
}
EXPORT_SYMBOL_GPL(pmuk_sim_advance);

/**
 * pmuk_sim_interrupt() - serve the overflows that are pending on this CPU
 * @sim: the PMU
 *
 * While the PMU is being reprogrammed, this does nothing. The overflows are served at the end of
 * the reprogramming.
 *
 * Context: Any, NMI too.
 */
void pmuk_sim_interrupt(struct pmuk_sim *sim)
{
	struct pmuk_sim_cpu *cpu;

	guard(irqsave)();
	cpu = sim_this_cpu(sim);
	if (cpu->overflowed && !cpu->frozen)
		sim_handle_interrupt(cpu);
}
EXPORT_SYMBOL_GPL(pmuk_sim_interrupt);

struct sim_remote {
	struct pmuk_sim *sim;
	u64 config;
	u64 n;
	u64 counted;
};

static void sim_count_here(void *data)
{
	struct sim_remote *remote = data;

	remote->counted = pmuk_sim_count(remote->sim, remote->config, remote->n);
}

/**
 * pmuk_sim_count_on() - let events happen on a CPU
 * @sim: the PMU
 * @cpu: the CPU, which is interrupted unless it is this one
 * @config: number of the event
 * @n: number of times that the event happens
 *
 * Context: Task, interrupts on.
 * Return: What pmuk_sim_count() returns on @cpu; 0 if @cpu is offline.
 */
u64 pmuk_sim_count_on(struct pmuk_sim *sim, int cpu, u64 config, u64 n)
{
	struct sim_remote remote = { .sim = sim, .config = config, .n = n };

	smp_call_function_single(cpu, sim_count_here, &remote, true);
	return remote.counted;
}
EXPORT_SYMBOL_GPL(pmuk_sim_count_on);

/**
 * pmuk_sim_counted() - get what a PMU has counted since it was created
 * @sim: the PMU
 * @config: number of the event
 *
 * The PMU has its own account, apart from perf's, which sums up all counters of all CPUs. It is
 * exact while nothing is being counted.
 *
 * Context: Any.
 * Return: The number of events.
 */
u64 pmuk_sim_counted(const struct pmuk_sim *sim, u64 config)
{
	u64 sum = 0;
	int cpu;

	if (config >= PMUK_SIM_EVENTS)
		return 0;
	for_each_possible_cpu(cpu)
		sum += local64_read(&per_cpu_ptr(sim->cpus, cpu)->counted[config]);
	return sum;
}
EXPORT_SYMBOL_GPL(pmuk_sim_counted);

static void sim_steal_here(void *data)
{
	struct sim_remote *remote = data;

	sim_this_cpu(remote->sim)->stolen = remote->n;
}

/* A pinned event, even one that does not fit, makes perf core reschedule the CPU. */
static int sim_resched(struct pmuk_sim *sim, int cpu)
{
	struct perf_event_attr attr = {
		.type = sim->pmu.type,
		.size = sizeof(attr),
		.config2 = SIM_MISFIT,
		.pinned = 1,
	};
	struct perf_event *event;

	event = perf_event_create_kernel_counter(&attr, cpu, NULL, NULL, NULL);
	if (IS_ERR(event))
		return PTR_ERR(event);
	perf_event_release_kernel(event);
	return 0;
}

/**
 * pmuk_sim_steal() - take counters away, as another user of the PMU would
 * @sim: the PMU
 * @cpu: the CPU whose counters are taken
 * @n: number of counters that perf cannot use from now on
 *
 * perf core reschedules the events of @cpu into the counters that are left.
 *
 * Context: May sleep.
 * Return: 0; -errno if @cpu is offline or there is no memory.
 */
int pmuk_sim_steal(struct pmuk_sim *sim, int cpu, unsigned int n)
{
	struct sim_remote remote = { .sim = sim, .n = n };
	int ret = smp_call_function_single(cpu, sim_steal_here, &remote, true);

	return ret ?: sim_resched(sim, cpu);
}
EXPORT_SYMBOL_GPL(pmuk_sim_steal);

/**
 * pmuk_sim_set_hook() - call a function in the middle of the driver
 * @sim: the PMU
 * @hook: the function; must stay until it is replaced and no call is under way; NULL: none
 *
 * Context: Any.
 */
void pmuk_sim_set_hook(struct pmuk_sim *sim, const struct pmuk_sim_hook *hook)
{
	/* Release: sim_hook() sees the content of @hook when it sees the pointer. */
	smp_store_release(&sim->hook, hook);
}
EXPORT_SYMBOL_GPL(pmuk_sim_set_hook);

/**
 * pmuk_sim_nr_events() - count the perf events of a PMU
 * @sim: the PMU
 *
 * Context: Any.
 * Return: The number of perf events that exist, whether they count or not.
 */
int pmuk_sim_nr_events(const struct pmuk_sim *sim)
{
	return atomic_read(&sim->nr_events);
}
EXPORT_SYMBOL_GPL(pmuk_sim_nr_events);

/**
 * pmuk_sim_type() - get a PMU's type
 * @sim: the PMU
 *
 * Context: Any.
 * Return: The value for perf_event_attr::type.
 */
u32 pmuk_sim_type(const struct pmuk_sim *sim)
{
	return sim->pmu.type;
}
EXPORT_SYMBOL_GPL(pmuk_sim_type);

static bool sim_config_valid(const struct pmuk_sim_config *config)
{
	return config->name && config->nr_counters &&
	       config->nr_counters <= PMUK_SIM_COUNTERS &&
	       config->width >= 8 && config->width <= 62;
}

/* PMUs in PCI devices count for no task. SPE's events are in the context of software events. */
static int sim_task_context(const struct pmuk_sim_config *config)
{
	if (config->uncore)
		return perf_invalid_context;
	return config->interval ? perf_sw_context : perf_hw_context;
}

static void sim_init(struct pmuk_sim *sim, const struct pmuk_sim_config *config)
{
	sim->config = *config;
	sim->mask = GENMASK_ULL(config->width - 1, 0);
	sim->pmu = (struct pmu) {
		.module			= THIS_MODULE,
		.task_ctx_nr		= sim_task_context(config),
		.capabilities		= config->capabilities,
		.hrtimer_interval_ms	= config->mux_ms,
		.pmu_enable		= sim_enable,
		.pmu_disable		= sim_disable,
		.event_init		= sim_event_init,
		.add			= sim_add,
		.del			= sim_del,
		.start			= sim_start,
		.stop			= sim_stop,
		.read			= sim_read,
		.filter			= config->cpus ? sim_filter : NULL,
	};
}

/**
 * pmuk_sim_create() - make a PMU and register it with perf
 * @config: description of the PMU; copied
 *
 * Context: May sleep.
 * Return: The PMU; an ERR_PTR() of -EINVAL if @config is impossible, of -ENOMEM, or of the error of
 * perf_pmu_register().
 */
struct pmuk_sim *pmuk_sim_create(const struct pmuk_sim_config *config)
{
	struct pmuk_sim *sim;
	int ret = -ENOMEM;

	if (!sim_config_valid(config))
		return ERR_PTR(-EINVAL);

	sim = kzalloc_node(sizeof(*sim), GFP_KERNEL, NUMA_NO_NODE);
	if (!sim)
		return ERR_PTR(-ENOMEM);

	sim_init(sim, config);
	sim->cpus = alloc_percpu(struct pmuk_sim_cpu);
	if (sim->cpus)
		ret = perf_pmu_register(&sim->pmu, config->name, -1);
	if (!ret)
		return sim;
	free_percpu(sim->cpus);
	kfree(sim);
	return ERR_PTR(ret);
}
EXPORT_SYMBOL_GPL(pmuk_sim_create);

/*
 * perf core frees a PMU's timers with the PMU, and does not cancel them. A timer that rotates
 * counters stays queued for a while after the last counter has gone.
 */
static void sim_cancel_rotation(struct pmuk_sim *sim)
{
	struct perf_cpu_pmu_context *cpc;
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		cpc = perf_pmu_contexts(&sim->pmu, cpu);
		if (cpc)
			hrtimer_cancel(&cpc->hrtimer);
	}
}

static void sim_unregister(struct pmuk_sim *sim)
{
	if (sim->unplugged)
		return;
	sim_cancel_rotation(sim);
	perf_pmu_unregister(&sim->pmu);
	sim->unplugged = true;
}

/**
 * pmuk_sim_unplug() - unregister a PMU while it has events
 * @sim: the PMU
 *
 * The caller has to call pmuk_sim_destroy() after this.
 *
 * Context: May sleep.
 * Return: 0; -EOPNOTSUPP on kernels whose perf core does not take events off a PMU that is
 * unregistered. There perf_pmu_unregister() returns nothing.
 */
int pmuk_sim_unplug(struct pmuk_sim *sim)
{
	if (!__builtin_types_compatible_p(typeof(perf_pmu_unregister), int (struct pmu *)))
		return -EOPNOTSUPP;
	sim_unregister(sim);
	return 0;
}
EXPORT_SYMBOL_GPL(pmuk_sim_unplug);

/**
 * pmuk_sim_migrate() - move a CPU's events to another one
 * @sim: the PMU
 * @from: the CPU of the events
 * @to: their new CPU
 *
 * Drivers of PMUs that are one for the machine or for a socket, such as hisi_ptt and arm-cmn, do
 * this when @from goes offline.
 *
 * Context: May sleep.
 */
void pmuk_sim_migrate(struct pmuk_sim *sim, int from, int to)
{
	perf_pmu_migrate_context(&sim->pmu, from, to);
}
EXPORT_SYMBOL_GPL(pmuk_sim_migrate);

/**
 * pmuk_sim_destroy() - unregister a PMU and free it
 * @sim: the PMU, or ERR_PTR(), or NULL
 *
 * Context: May sleep.
 */
void pmuk_sim_destroy(struct pmuk_sim *sim)
{
	if (IS_ERR_OR_NULL(sim))
		return;
	sim_unregister(sim);
	free_percpu(sim->cpus);
	kfree(sim);
}
EXPORT_SYMBOL_GPL(pmuk_sim_destroy);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Simulated PMU for testing pmuk");
