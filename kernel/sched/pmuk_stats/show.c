// SPDX-License-Identifier: GPL-2.0
/*
 * /proc/pmuk_sched: the totals as text. The first line has the version of the format. The fields
 * are described in Documentation/admin-guide/pmuk-sched-stats.rst.
 *
 * Before a reader gets the tasks or cgroups, all busy CPUs but isolated ones account their running
 * slices.
 */
#include <linux/bsearch.h>
#include <linux/capability.h>
#include <linux/cpu.h>
#include <linux/kernel_stat.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/string_choices.h>
#include <linux/string_helpers.h>
#include <linux/timekeeping.h>

#include "stats.h"

static struct proc_dir_entry *pmuk_sched_dir;

/* ---- the head of all files ---- */

static size_t pmuk_sched_table_size(const struct pmuk_sched *s)
{
	return (s->mask + 1) * sizeof(*s->chains);
}

static void pmuk_sched_show_events(struct seq_file *m, const struct pmuk_sched *s)
	__must_hold(&s->on_lock)
{
	bool missing = false;
	unsigned int i;

	seq_puts(m, "events");
	for (i = 0; i < s->nr; i++)
		seq_printf(m, " %s", s->requested[s->order[i]].name);
	seq_puts(m, "\nmissing");
	for (i = 0; i < s->nr_requested; i++) {
		if (!s->requested[i].missing)
			continue;
		seq_printf(m, " %s:%d", s->requested[i].name, s->requested[i].missing);
		missing = true;
	}
	seq_puts(m, missing ? "\n" : " none\n");
}

/* Returns false if accounting is off: then the file ends here. */
static bool pmuk_sched_show_head(struct seq_file *m, struct pmuk_sched *s) __must_hold(&s->on_lock)
{
	unsigned int nr_tasks;
	u64 unknown;

	seq_printf(m, "pmuk_sched 2\nstate %s\n", str_on_off(s->on));
	if (!s->on)
		return false;
	scoped_guard(spinlock_irqsave, &s->lock) {
		nr_tasks = s->nr_tasks;
		unknown = s->unknown;
	}
	seq_printf(m, "timestamp %llu\nsince %llu\n", ktime_get_ns(), s->since);
	pmuk_sched_show_events(m, s);
	seq_printf(m, "memory %zu %zu %zu %u\n", kmalloc_size_roundup(pmuk_sched_task_size()),
		   sizeof(struct pmuk_sched_cpu), pmuk_sched_table_size(s), nr_tasks);
	seq_printf(m, "unattributed %llu\n",
		   pmuk_sched_sum_of(&pmuk_sched_cpus.strays) + unknown);
	return true;
}

static void pmuk_sched_show_counts(struct seq_file *m, const u64 *counts, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		seq_printf(m, " %llu", READ_ONCE(counts[i]));
}

/* Shows the fields that the documentation calls T. */
static void pmuk_sched_show_totals(struct seq_file *m, const struct pmuk_sched_totals *sum,
				   unsigned int nr)
{
	unsigned int i;

	seq_printf(m, " %llu", sum->run);
	if (IS_ENABLED(CONFIG_SCHED_INFO))
		seq_printf(m, " %llu", sum->wait);
	else
		seq_puts(m, " -");
	for (i = 0; i < PMUK_SCHED_TASK_REASONS; i++)
		seq_printf(m, " %llu", pmuk_sched_departures(sum->reasons[i]));
	seq_printf(m, " %d", !sum->invalid);
	pmuk_sched_show_counts(m, sum->counts, nr);
}

/* ---- cpus ---- */

/* The totals of a CPU's tasks, and those of its idle task, copied at the same moment. */
struct pmuk_sched_cpu_job {
	struct pmuk_sched_cpu *c;
	struct pmuk_sched_totals tasks, idle;
};

/* If an isolated CPU switches during each of this many copies, the last copy is shown. */
#define PMUK_SCHED_COPY_TRIES	10

static void pmuk_sched_cpu_read(struct pmuk_sched_cpu_job *job)
{
	pmuk_sched_cpu_totals(job->c, &job->tasks);
	job->idle = (struct pmuk_sched_totals){};
	pmuk_sched_add_task(&job->idle, pmuk_sched_idle(job->c));
	if (READ_ONCE(job->c->task) == pmuk_sched_idle(job->c))
		job->idle.run += pmuk_sched_idle_so_far(job->c);
}

/*
 * Copies the sums of an idle or isolated CPU without interrupting that CPU, which may switch
 * meanwhile. Returns false if it has switched, or if it does not account.
 *
 * A switch in the fast path stores ->start first, then ->base, and ->task last. There is no barrier
 * between these stores, as each switch would pay for it. A copy that overlaps such a switch sees
 * one of these three fields change, unless the whole copy fits between two of the stores. The
 * switch takes a fraction of the copy's time, so its CPU must have stopped there, as when a
 * hypervisor takes that CPU. Then the copy lacks a part of that slice, and the next reading has it.
 */
static bool pmuk_sched_copy_quiet(struct pmuk_sched_cpu_job *job)
{
	struct pmuk_sched_cpu *c = job->c;
	/* pairs with pmuk_sched_on_switch() */
	struct pmuk_sched_task *t = smp_load_acquire(&c->task);
	u64 start = READ_ONCE(c->start), base = READ_ONCE(c->base[0]);

	smp_rmb();	/* the sums are read after these two, and before both are read again */
	pmuk_sched_cpu_read(job);
	smp_rmb();	/* pairs with pmuk_sched_update_begin() */
	return t && READ_ONCE(c->task) == t && READ_ONCE(c->start) == start &&
	       READ_ONCE(c->base[0]) == base;
}

static bool pmuk_sched_copy_isolated(struct pmuk_sched_cpu_job *job)
{
	unsigned int tries = PMUK_SCHED_COPY_TRIES;

	while (tries-- && !pmuk_sched_copy_quiet(job))
		cpu_relax();
	return true;
}

/* Runs in an interrupt on the CPU to be read, and so between two switches. */
static void pmuk_sched_cpu_here(void *data)
{
	pmuk_sched_sync(NULL);
	pmuk_sched_cpu_read(data);
}

/*
 * The idle time by ticks may exceed the time that the next switch accounts. As totals must never
 * shrink, show the larger value until the real one has caught up.
 */
static void pmuk_sched_only_grow(struct pmuk_sched_cpu_job *job) __must_hold(&pmuk_sched.on_lock)
{
	job->c->idle_reported = max(job->c->idle_reported, job->idle.run);
	job->idle.run = job->c->idle_reported;
}

static void pmuk_sched_copy_cpu(struct pmuk_sched_cpu_job *job, int cpu)
{
	guard(cpus_read_lock)();
	if (cpu_online(cpu)) {
		if (pmuk_sched_is_isolated(cpu) ? pmuk_sched_copy_isolated(job) :
						  pmuk_sched_is_idle(cpu) &&
						  pmuk_sched_copy_quiet(job))
			return;
		/* The CPU is busy, or has just become busy: interrupt it. */
		if (!smp_call_function_single(cpu, pmuk_sched_cpu_here, job, true))
			return;
	}
	pmuk_sched_cpu_read(job);	/* an offline CPU does not switch */
}

static void pmuk_sched_show_cpu(struct seq_file *m, int cpu) __must_hold(&pmuk_sched.on_lock)
{
	struct pmuk_sched_cpu_job job = { .c = per_cpu_ptr(&pmuk_sched_cpus, cpu) };
	const u64 *stat = kcpustat_cpu(cpu).cpustat;

	pmuk_sched_copy_cpu(&job, cpu);
	pmuk_sched_only_grow(&job);
	seq_printf(m, "cpu %d", cpu);
	pmuk_sched_show_totals(m, &job.tasks, pmuk_sched.nr);
	seq_printf(m, "\nidle %d %llu %llu", cpu, job.idle.run,
		   job.idle.reasons[PMUK_SCHED_VOLUNTARY]);
	pmuk_sched_show_counts(m, job.idle.counts, pmuk_sched.nr);
	seq_printf(m, "\nirq %d %llu %llu\nleft %d", cpu,
		   READ_ONCE(stat[CPUTIME_IRQ]), READ_ONCE(stat[CPUTIME_SOFTIRQ]), cpu);
	pmuk_sched_show_counts(m, job.c->other_reasons, PMUK_SCHED_CPU_REASONS);
	seq_putc(m, '\n');
}

static int pmuk_sched_show_cpus(struct seq_file *m, void *v)
{
	int cpu;

	guard(mutex)(&pmuk_sched.on_lock);
	if (!pmuk_sched_show_head(m, &pmuk_sched))
		return 0;
	for_each_possible_cpu(cpu)
		pmuk_sched_show_cpu(m, cpu);
	return 0;
}

/* ---- tasks and cgroups: a reading, which is shown piece by piece ---- */

struct pmuk_sched_text {
	struct pmuk_sched_reading r;
	bool on;
	int (*read)(struct pmuk_sched_reading *r);
	int (*show)(struct seq_file *m, struct pmuk_sched_text *text, loff_t i);
	loff_t (*nr)(const struct pmuk_sched_text *text);
};

/* Shows a name up to the end of the line. */
static void pmuk_sched_show_name(struct seq_file *m, const char *name)
{
	seq_putc(m, ' ');
	seq_escape_str(m, name, ESCAPE_OCTAL, "\n\\");
	seq_putc(m, '\n');
}

static void pmuk_sched_show_task(struct seq_file *m, const struct pmuk_sched_reading *r,
				 const struct pmuk_sched_task_copy *t)
{
	seq_printf(m, "task %u %u %llu", t->pid, t->tgid, t->cgroup);
	pmuk_sched_show_totals(m, &t->totals, r->nr_events);
	pmuk_sched_show_name(m, t->comm);
}

static int pmuk_sched_cmp_leader(const void *tgid, const void *task)
{
	return (int)*(const u32 *)tgid - (int)((const struct pmuk_sched_task_copy *)task)->pid;
}

/* A process has the name of its leader, whose task_struct stays as long as there are threads. */
static void pmuk_sched_show_group(struct seq_file *m, const struct pmuk_sched_reading *r,
				  const struct pmuk_sched_group *g)
{
	const struct pmuk_sched_task_copy *leader =
		bsearch(&g->tgid, r->tasks, r->nr, sizeof(*r->tasks), pmuk_sched_cmp_leader);

	seq_printf(m, "group %u %u %llu", g->tgid, g->threads, leader ? leader->cgroup : 0);
	pmuk_sched_show_totals(m, &g->sum, r->nr_events);
	pmuk_sched_show_name(m, leader ? leader->comm : "-");
}

static int pmuk_sched_show_one_task(struct seq_file *m, struct pmuk_sched_text *text, loff_t i)
{
	const struct pmuk_sched_reading *r = &text->r;

	if (i < r->nr) {
		pmuk_sched_show_task(m, r, &r->tasks[i]);
	} else if (i < r->nr + r->nr_groups) {
		pmuk_sched_show_group(m, r, &r->groups[i - r->nr]);
	} else {
		seq_puts(m, "exited");
		/* The reading has ended, so @r belongs to the file. */
		context_unsafe(pmuk_sched_show_totals(m, &r->exited, r->nr_events));
		seq_puts(m, "\nstray");
		pmuk_sched_show_totals(m, &r->strays, r->nr_events);
		seq_putc(m, '\n');
	}
	return 0;
}

static loff_t pmuk_sched_nr_task_lines(const struct pmuk_sched_text *text)
{
	return (loff_t)text->r.nr + text->r.nr_groups + 1;
}

static void pmuk_sched_show_line(struct seq_file *m, const struct pmuk_sched_reading *r,
				 const char *what, const struct pmuk_sched_line *line,
				 const struct pmuk_sched_totals *sum)
{
	seq_printf(m, "%s %llu %llu", what, line->id, line->parent);
	pmuk_sched_show_totals(m, sum, r->nr_events);
	pmuk_sched_show_name(m, line->path);
}

static int pmuk_sched_show_one_cgroup(struct seq_file *m, struct pmuk_sched_text *text, loff_t i)
{
	const struct pmuk_sched_line *line = &text->r.lines[i];

	if (line->gone)
		return 0;
	pmuk_sched_show_line(m, &text->r, "cgroup", line, &line->own);
	pmuk_sched_show_line(m, &text->r, "subtree", line, &line->tree);
	return 0;
}

static loff_t pmuk_sched_nr_cgroup_lines(const struct pmuk_sched_text *text)
{
	return text->r.nr_lines;
}

/* Shows the head, and makes the reading that the following lines show. */
static int pmuk_sched_begin_text(struct seq_file *m, struct pmuk_sched_text *text)
{
	guard(mutex)(&pmuk_sched.on_lock);
	pmuk_sched_reading_free(&text->r);
	text->on = pmuk_sched_show_head(m, &pmuk_sched);
	if (!text->on)
		return 0;
	pmuk_sched_move_rest(&pmuk_sched);
	pmuk_sched_sync_all();
	return text->read(&text->r);
}

/* Position 0 is the head, position i + 1 is line i of the reading. */
static void *pmuk_sched_text_start(struct seq_file *m, loff_t *pos)
{
	struct pmuk_sched_text *text = m->private;

	return !*pos || (text->on && *pos <= text->nr(text)) ? pos : NULL;
}

static void *pmuk_sched_text_next(struct seq_file *m, void *v, loff_t *pos)
{
	++*pos;
	return pmuk_sched_text_start(m, pos);
}

static void pmuk_sched_text_stop(struct seq_file *m, void *v)
{
}

static int pmuk_sched_text_show(struct seq_file *m, void *v)
{
	struct pmuk_sched_text *text = m->private;
	loff_t pos = *(loff_t *)v;

	return pos ? text->show(m, text, pos - 1) : pmuk_sched_begin_text(m, text);
}

static const struct seq_operations pmuk_sched_text_ops = {
	.start	= pmuk_sched_text_start,
	.next	= pmuk_sched_text_next,
	.stop	= pmuk_sched_text_stop,
	.show	= pmuk_sched_text_show,
};

static int pmuk_sched_text_open(struct file *file, const struct pmuk_sched_text *what)
{
	struct pmuk_sched_text *text;

	if (!perfmon_capable())
		return -EACCES;
	text = __seq_open_private(file, &pmuk_sched_text_ops, sizeof(*text));
	if (!text)
		return -ENOMEM;
	*text = *what;
	return 0;
}

static int pmuk_sched_open_tasks(struct inode *inode, struct file *file)
{
	return pmuk_sched_text_open(file, &(const struct pmuk_sched_text){
		.read = pmuk_sched_read_tasks,
		.show = pmuk_sched_show_one_task,
		.nr = pmuk_sched_nr_task_lines,
	});
}

static int pmuk_sched_open_cgroups(struct inode *inode, struct file *file)
{
	return pmuk_sched_text_open(file, &(const struct pmuk_sched_text){
		.read = pmuk_sched_read_cgroups,
		.show = pmuk_sched_show_one_cgroup,
		.nr = pmuk_sched_nr_cgroup_lines,
	});
}

static int pmuk_sched_text_release(struct inode *inode, struct file *file)
{
	struct pmuk_sched_text *text = ((struct seq_file *)file->private_data)->private;

	pmuk_sched_reading_free(&text->r);
	return seq_release_private(inode, file);
}

/* ---- histograms ---- */

/* Shows @nr buckets. The last includes all higher ones. */
static void pmuk_sched_show_buckets(struct seq_file *m, const char *what, int cpu,
				    const u64 *buckets, unsigned int nr)
{
	u64 last = 0;
	unsigned int i;

	seq_printf(m, "%s %d", what, cpu);
	for (i = 0; i < nr - 1; i++)
		seq_printf(m, " %llu", READ_ONCE(buckets[i]));
	for (; i < PMUK_SCHED_BUCKETS; i++)
		last += READ_ONCE(buckets[i]);
	seq_printf(m, " %llu\n", last);
}

/* Shows the sum of @nr histograms of times. */
static void pmuk_sched_show_times(struct seq_file *m, const char *what, int cpu,
				  const u64 (*times)[PMUK_SCHED_BUCKETS], unsigned int nr)
{
	u64 sum[PMUK_SCHED_BUCKETS] = {};
	unsigned int i;

	while (nr--) {
		for (i = 0; i <= PMUK_SCHED_ZERO; i++)
			sum[i] += READ_ONCE(times[nr][PMUK_SCHED_ZERO - i]);
	}
	pmuk_sched_show_buckets(m, what, cpu, sum, PMUK_SCHED_TIMES);
}

static int pmuk_sched_show_hist(struct seq_file *m, void *v)
{
	const struct pmuk_sched_cpu *c;
	int cpu;

	guard(mutex)(&pmuk_sched.on_lock);
	if (!pmuk_sched_show_head(m, &pmuk_sched))
		return 0;
	for_each_possible_cpu(cpu) {
		c = per_cpu_ptr(&pmuk_sched_cpus, cpu);
		if (IS_ENABLED(CONFIG_SCHED_INFO))
			pmuk_sched_show_times(m, "wait", cpu, &c->waits, 1);
		pmuk_sched_show_times(m, "slice", cpu, c->slices, ARRAY_SIZE(c->slices));
		if (pmuk_sched.ipc)
			pmuk_sched_show_buckets(m, "ipc", cpu, c->ipcs, PMUK_SCHED_IPCS);
	}
	return 0;
}

/* ---- files ---- */

/* Readers need CAP_PERFMON, as these files show the activity of all users. */
#define PMUK_SCHED_FILE(name, room)							\
static int pmuk_sched_open_##name(struct inode *inode, struct file *file)		\
{											\
	return perfmon_capable() ?							\
	       single_open_size(file, pmuk_sched_show_##name, NULL, room) : -EACCES;	\
}											\
											\
static const struct proc_ops pmuk_sched_##name##_ops = {				\
	.proc_open	= pmuk_sched_open_##name,					\
	.proc_read	= seq_read,							\
	.proc_lseek	= seq_lseek,							\
	.proc_release	= single_release,						\
}

PMUK_SCHED_FILE(cpus, PAGE_SIZE + num_possible_cpus() * 640);
PMUK_SCHED_FILE(hist, PAGE_SIZE + num_possible_cpus() * 1024);

#define PMUK_SCHED_TEXT(name)								\
static const struct proc_ops pmuk_sched_##name##_ops = {				\
	.proc_open	= pmuk_sched_open_##name,					\
	.proc_read	= seq_read,							\
	.proc_lseek	= seq_lseek,							\
	.proc_release	= pmuk_sched_text_release,					\
}

PMUK_SCHED_TEXT(tasks);
PMUK_SCHED_TEXT(cgroups);

int pmuk_sched_show_init(void)
{
	struct proc_dir_entry *dir = proc_mkdir("pmuk_sched", NULL);

	if (!dir || !proc_create("cpus", 0444, dir, &pmuk_sched_cpus_ops) ||
	    !proc_create("tasks", 0444, dir, &pmuk_sched_tasks_ops) ||
	    !proc_create("cgroups", 0444, dir, &pmuk_sched_cgroups_ops) ||
	    !proc_create("hist", 0444, dir, &pmuk_sched_hist_ops)) {
		proc_remove(dir);
		return -ENOMEM;
	}
	pmuk_sched_dir = dir;
	return 0;
}

void pmuk_sched_show_exit(void)
{
	proc_remove(pmuk_sched_dir);
}
