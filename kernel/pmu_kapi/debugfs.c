// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/kernel/debug/pmuk: which contexts are live, what became of their records, what the contexts
 * cost, and how much room is left on each CPU's PMU. The files are for people; their format is no
 * ABI.
 */
#include <linux/capability.h>
#include <linux/debugfs.h>
#include <linux/init.h>
#include <linux/jump_label.h>
#include <linux/lockdep.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "buffer.h"
#include "context.h"
#include "contexts.h"
#include "cost.h"
#include "debugfs.h"
#include "instance.h"
#include "registry.h"
#include "reserve.h"

static struct dentry *pmuk_dir;

static const char *const pmuk_targets[] = {
	[PMUK_TARGET_CPU] = "cpu",
	[PMUK_TARGET_CPUS] = "cpus",
	[PMUK_TARGET_TASK] = "task",
	[PMUK_TARGET_TREE] = "tree",
};

static const char *pmuk_rank_name(enum pmuk_rank rank)
{
	switch (rank) {
	case PMUK_RANK_BACKGROUND:	return "background";
	case PMUK_RANK_CRITICAL:	return "critical";
	default:			return "normal";
	}
}

static void pmuk_show_buffer(struct seq_file *m, struct pmuk_buffer *b)
{
	struct pmuk_buffer_stat stat;
	unsigned int pages;

	scoped_guard(mutex, &b->lock)
		pages = b->data.nr;
	pmuk_buffer_get_stat(b, &stat);
	seq_printf(m, "  buffer cpu %d pages %u head %llu tail %llu consumed %llu", b->cpu, pages,
		   stat.head, stat.tail, stat.consumed);
	seq_printf(m, " lost %llu discarded %llu overwritten %llu wakeups %llu\n", stat.lost,
		   stat.discarded, stat.overwritten, stat.wakeups);
}

static void pmuk_show_aux(struct seq_file *m, struct pmuk_buffer *b)
{
	struct pmuk_aux_stat stat;

	if (pmuk_aux_get_stat(b, &stat))
		return;
	seq_printf(m, "  aux cpu %d pages %u head %llu tail %llu truncated %llu", b->cpu,
		   b->aux->pages.nr, stat.head, stat.tail, stat.truncated);
	seq_printf(m, " truncations %llu full %llu nested %llu discarded %llu wakeups %llu\n",
		   stat.truncations, stat.full, stat.nested, stat.discarded, stat.wakeups);
}

static void pmuk_show_inst(struct seq_file *m, struct pmuk_inst *inst)
{
	guard(mutex)(&inst->lock);
	seq_printf(m, "  instance cpu %d %s set %d%s overflows %llu overflow_ns %llu", inst->cpu,
		   inst->live ? "live" : "offline", inst->active ? inst->active->set->id : -1,
		   atomic_read(&inst->masked) ? " masked" : "", atomic64_read(&inst->overflows),
		   atomic64_read(&inst->cost_ns));
	seq_printf(m, " limited %llu reads %llu", atomic64_read(&inst->limited),
		   atomic64_read(&inst->reads));
	if (pmuk_format_is_perf(inst->ctx->format))
		seq_printf(m, " records %llu", pmuk_inst_records(inst));
	seq_printf(m, " switches %llu switch_ns %llu switch_max_ns %llu late_max_ns %llu\n",
		   inst->switches, inst->switch_ns, inst->switch_max_ns, inst->late_max_ns);
}

static void pmuk_show_context(struct seq_file *m, struct pmuk_context *ctx) __must_hold(&ctx->lock)
{
	struct pmuk_set *set;
	unsigned long id, counters = 0;
	unsigned int cpu;

	xa_for_each(&ctx->sets, id, set)
		counters += hweight32(set->defined);
	seq_printf(m, "context %llu name %s%s rank %s format %s", ctx->id, ctx->name,
		   pmuk_context_is_exported(ctx) ? " exported" : "", pmuk_rank_name(ctx->rank),
		   ctx->format->name);
	seq_printf(m, " target %s %s sets %u counters %lu messages %llu",
		   ctx->loaded ? pmuk_targets[ctx->target] : "none",
		   ctx->running ? "running" : "stopped", ctx->nr_sets, counters,
		   atomic64_read(&ctx->mail.posted));
	if (ctx->limit_ns)
		seq_printf(m, " limit_ns %llu", ctx->limit_ns);
	if (ctx->task)
		seq_printf(m, " task %d", task_pid_nr(ctx->task));
	seq_putc(m, '\n');
	for (cpu = 0; cpu < nr_cpu_ids; cpu++) {
		if (ctx->insts[cpu])
			pmuk_show_inst(m, ctx->insts[cpu]);
		if (!ctx->buffers[cpu])
			continue;
		pmuk_show_buffer(m, ctx->buffers[cpu]);
		pmuk_show_aux(m, ctx->buffers[cpu]);
	}
}

static void *pmuk_contexts_start(struct seq_file *m, loff_t *pos)
{
	return pmuk_view_from(*pos);
}

static void *pmuk_contexts_next(struct seq_file *m, void *ctx, loff_t *pos)
{
	*pos = ((struct pmuk_context *)ctx)->id + 1;
	pmuk_unview(ctx);
	return pmuk_view_from(*pos);
}

static void pmuk_contexts_stop(struct seq_file *m, void *ctx)
{
	if (ctx)
		pmuk_unview(ctx);
}

static int pmuk_contexts_show(struct seq_file *m, void *data)
{
	struct pmuk_context *ctx = data;

	if (mutex_lock_interruptible(&ctx->lock))
		return -EINTR;
	pmuk_show_context(m, ctx);
	mutex_unlock(&ctx->lock);
	return 0;
}

/* The position in the file is a context's id. Ids rise along the list of contexts. */
static const struct seq_operations pmuk_contexts_ops = {
	.start	= pmuk_contexts_start,
	.next	= pmuk_contexts_next,
	.stop	= pmuk_contexts_stop,
	.show	= pmuk_contexts_show,
};

static int pmuk_contexts_open(struct inode *inode, struct file *file)
{
	if (!perfmon_capable())
		return -EACCES;
	return seq_open(file, &pmuk_contexts_ops);
}

static const struct file_operations pmuk_contexts_fops = {
	.owner		= THIS_MODULE,
	.open		= pmuk_contexts_open,
	.read		= seq_read,
	.llseek		= seq_lseek,
	.release	= seq_release,
};

static void pmuk_show_holding(struct seq_file *m, const struct pmuk_context *ctx,
			      struct pmuk_inst *inst)
{
	const char *rank = pmuk_rank_name(ctx->rank);
	unsigned int pinned = 0;
	struct pmuk_slot *slot;

	lockdep_assert_held(&inst->ctx->lock);
	pmuk_reserve_show(m, inst, rank);
	guard(mutex)(&inst->lock);
	if (inst->missed)
		seq_printf(m, "  waits %llu name %s rank %s\n", ctx->id, ctx->name, rank);
	if (!inst->active)
		return;
	pmuk_for_each_slot(slot, inst->active)
		pinned += !!(slot->def->pmc.flags & PMUK_PINNED);
	seq_printf(m, "  context %llu name %s rank %s set %d counters %u pinned %u\n", ctx->id,
		   ctx->name, rank, inst->active->set->id, inst->active->nr, pinned);
}

/*
 * Prints the contexts that count on the CPU now, or wait for room, and how many counters each has.
 */
static int pmuk_show_holders(struct seq_file *m, int cpu)
{
	struct pmuk_context *ctx;
	loff_t id = 0;

	for (ctx = pmuk_view_from(0); ctx; ctx = pmuk_contexts_next(m, ctx, &id)) {
		if (mutex_lock_interruptible(&ctx->lock)) {
			pmuk_unview(ctx);
			return -EINTR;
		}
		if (ctx->insts[cpu] && ctx->insts[cpu]->cpu == cpu)
			pmuk_show_holding(m, ctx, ctx->insts[cpu]);
		mutex_unlock(&ctx->lock);
	}
	return 0;
}

/* Prints how many more private counters of cycles fit on each online CPU, and who counts there. */
static int pmuk_room_show(struct seq_file *m, void *data)
{
	struct pmuk_attr *attrs __free(kfree) = kcalloc(PMUK_SET_COUNTERS, sizeof(*attrs),
							GFP_KERNEL);
	int i, cpu, ret;
	u32 fits;

	if (!attrs)
		return -ENOMEM;
	for (i = 0; i < PMUK_SET_COUNTERS; i++)
		attrs[i] = (struct pmuk_attr){ .type = PERF_TYPE_HARDWARE,
					       .config = PERF_COUNT_HW_CPU_CYCLES,
					       .flags = PMUK_PRIVATE };
	for_each_online_cpu(cpu) {
		/* If its buffer is full, seq_file calls this function with a larger one. */
		if (seq_has_overflowed(m))
			break;
		if (signal_pending(current))
			return -EINTR;
		/* The worker of a trial would disturb an isolated CPU. */
		ret = pmuk_cpu_is_isolated(cpu) ? -EBUSY :
			pmuk_room(attrs, PMUK_SET_COUNTERS, cpu, &fits);
		seq_printf(m, "cpu %d %s %d\n", cpu, ret < 0 ? "errno" : "cycles", abs(ret));
		ret = pmuk_show_holders(m, cpu);
		if (ret)
			return ret;
	}
	return 0;
}

static int pmuk_room_open(struct inode *inode, struct file *file)
{
	if (!perfmon_capable())
		return -EACCES;
	return single_open_size(file, pmuk_room_show, NULL, PAGE_SIZE + 256 * num_online_cpus());
}

static const struct file_operations pmuk_room_fops = {
	.owner		= THIS_MODULE,
	.open		= pmuk_room_open,
	.read		= seq_read,
	.llseek		= seq_lseek,
	.release	= single_release,
};

static int pmuk_measure_get(void *data, u64 *value)
{
	*value = static_key_enabled(&pmuk_measures);
	return 0;
}

static int pmuk_measure_set(void *data, u64 value)
{
	if (!perfmon_capable())
		return -EACCES;
	if (value)
		static_branch_enable(&pmuk_measures);
	else
		static_branch_disable(&pmuk_measures);
	return 0;
}

DEFINE_DEBUGFS_ATTRIBUTE(pmuk_measure_fops, pmuk_measure_get, pmuk_measure_set, "%llu\n");

void __init pmuk_debugfs_init(void)
{
	pmuk_dir = debugfs_create_dir("pmuk", NULL);
	debugfs_create_file("contexts", 0400, pmuk_dir, NULL, &pmuk_contexts_fops);
	debugfs_create_file("room", 0400, pmuk_dir, NULL, &pmuk_room_fops);
	debugfs_create_file("measure", 0600, pmuk_dir, NULL, &pmuk_measure_fops);
}

void pmuk_debugfs_exit(void)
{
	debugfs_remove(pmuk_dir);
}
