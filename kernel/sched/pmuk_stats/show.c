// SPDX-License-Identifier: GPL-2.0
/*
 * /proc/pmuk_sched: what has been accounted, as text; one value per field, the first line has
 * the version. Documentation/admin-guide/pmuk-sched-stats.rst has the fields.
 *
 * Who reads tasks or cgroups first has each CPU account for the task that it runs. Then all is
 * copied under the lock, so that what is on its way from a task to its process or cgroup is in
 * one of them.
 */
#include <linux/bsearch.h>
#include <linux/capability.h>
#include <linux/cpu.h>
#include <linux/kernel_stat.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/sort.h>
#include <linux/string_choices.h>
#include <linux/string_helpers.h>
#include <linux/timekeeping.h>

#include "stats.h"

static struct proc_dir_entry *pmuk_sched_dir;

/* ---- what all files begin with; ->on_lock is held in what follows ---- */

static size_t pmuk_sched_table_size(const struct pmuk_sched *s)
{
	return (s->mask + 1) * sizeof(*s->chains);
}

static void pmuk_sched_show_events(struct seq_file *m, const struct pmuk_sched *s)
{
	bool missing = false;
	unsigned int i;

	seq_puts(m, "events");
	for (i = 0; i < s->nr; i++)
		seq_printf(m, " %s", s->asked[s->order[i]].name);
	seq_puts(m, "\nmissing");
	for (i = 0; i < s->nr_asked; i++) {
		if (!s->asked[i].missing)
			continue;
		seq_printf(m, " %s:%d", s->asked[i].name, s->asked[i].missing);
		missing = true;
	}
	seq_puts(m, missing ? "\n" : " none\n");
}

/* Whether there is more to say. */
static bool pmuk_sched_show_head(struct seq_file *m, struct pmuk_sched *s)
{
	seq_printf(m, "pmuk_sched 1\nstate %s\n", str_on_off(s->on));
	if (!s->on)
		return false;
	seq_printf(m, "timestamp %llu\nsince %llu\n", ktime_get_ns(), s->since);
	pmuk_sched_show_events(m, s);
	seq_printf(m, "memory %zu %zu %zu %u\n", pmuk_sched_task_size(),
		   sizeof(struct pmuk_sched_cpu), pmuk_sched_table_size(s),
		   READ_ONCE(s->nr_tasks));
	seq_printf(m, "unattributed %llu\n", pmuk_sched_nr_strays() + READ_ONCE(s->unknown));
	return true;
}

static void pmuk_sched_show_counts(struct seq_file *m, const u64 *counts)
{
	unsigned int i;

	for (i = 0; i < pmuk_sched.nr; i++)
		seq_printf(m, " %llu", READ_ONCE(counts[i]));
}

/* The fields of totals. */
static void pmuk_sched_show_totals(struct seq_file *m, const struct pmuk_sched_totals *sum)
{
	unsigned int i;

	seq_printf(m, " %llu", sum->run);
	if (IS_ENABLED(CONFIG_SCHED_INFO))
		seq_printf(m, " %llu", sum->wait);
	else
		seq_puts(m, " -");
	for (i = 0; i < PMUK_SCHED_HOWS; i++)
		seq_printf(m, " %llu", sum->left[i]);
	seq_printf(m, " %d", !sum->invalid);
	pmuk_sched_show_counts(m, sum->counts);
}

/* ---- cpus ---- */

/* What a CPU's tasks and its idle task have had, at one moment. */
struct pmuk_sched_cpu_job {
	struct pmuk_sched_cpu *c;
	struct pmuk_sched_totals tasks, idle;
};

static void pmuk_sched_cpu_copy(struct pmuk_sched_cpu_job *job)
{
	pmuk_sched_cpu_totals(job->c, &job->tasks);
	pmuk_sched_add_task(&job->idle, pmuk_sched_idle(job->c));
}

/* On that CPU, between two switches. */
static void pmuk_sched_cpu_here(void *data)
{
	pmuk_sched_look(NULL);
	pmuk_sched_cpu_copy(data);
}

static void pmuk_sched_show_cpu(struct seq_file *m, int cpu)
{
	struct pmuk_sched_cpu_job job = { .c = per_cpu_ptr(&pmuk_sched_cpus, cpu) };
	const u64 *stat = kcpustat_cpu(cpu).cpustat;

	scoped_guard(cpus_read_lock) {
		if (smp_call_function_single(cpu, pmuk_sched_cpu_here, &job, true))
			pmuk_sched_cpu_copy(&job);	/* offline: nothing is switched */
	}
	seq_printf(m, "cpu %d", cpu);
	pmuk_sched_show_totals(m, &job.tasks);
	seq_printf(m, "\nidle %d %llu %llu", cpu, job.idle.run,
		   job.idle.left[PMUK_SCHED_VOLUNTARY] + job.idle.left[PMUK_SCHED_SAME] +
		   job.idle.left[PMUK_SCHED_OTHER]);
	pmuk_sched_show_counts(m, job.idle.counts);
	seq_printf(m, "\nirq %d %llu %llu\n", cpu,
		   READ_ONCE(stat[CPUTIME_IRQ]), READ_ONCE(stat[CPUTIME_SOFTIRQ]));
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

/* ---- tasks ---- */

/* A task, as one reading has found it: with its name, as it may be gone when it is shown. */
struct pmuk_sched_known {
	u32 pid, tgid;
	u32 cgroup;
	char comm[TASK_COMM_LEN];
	struct pmuk_sched_totals had;
};

/* What one reading has copied. */
struct pmuk_sched_copy {
	struct pmuk_sched_totals exited;
	struct pmuk_sched_totals strays;
	unsigned int room, nr;
	unsigned int room_groups, nr_groups;
	struct pmuk_sched_group *groups;
	struct pmuk_sched_known *tasks;
};

/* ->lock is held, from here … */
static void pmuk_sched_copy_one(struct pmuk_sched_copy *copy, const struct pmuk_sched_task *t)
{
	struct pmuk_sched_known *known = &copy->tasks[copy->nr++];
	const struct task_struct *p = pmuk_sched_task_of(t);

	*known = (struct pmuk_sched_known){
		.pid	= READ_ONCE(p->pid),
		.tgid	= p->tgid,
		.cgroup	= t->cgroup,
	};
	/* It may be changing its name: then it is some of both, as in /proc. */
	data_race(memcpy(known->comm, p->comm, sizeof(known->comm)));
	known->comm[sizeof(known->comm) - 1] = '\0';
	pmuk_sched_add_task(&known->had, t);
	if (test_bit(PMUK_SCHED_GROUPED_BIT, &t->key))
		pmuk_sched_add(&pmuk_sched_group_find(p)->sum, &known->had);
}

static bool pmuk_sched_copy_begin_groups(struct pmuk_sched_copy *copy)
{
	struct pmuk_sched_group *g;
	unsigned int i;

	for (i = 0; i < PMUK_SCHED_GROUP_CHAINS; i++) {
		for (g = pmuk_sched.groups[i]; g; g = g->next) {
			g->sum = g->ended;
			copy->nr_groups++;
		}
	}
	return copy->nr_groups <= copy->room_groups;
}

static void pmuk_sched_copy_groups(struct pmuk_sched_copy *copy)
{
	const struct pmuk_sched_group *g;
	unsigned int i, nr = 0;

	for (i = 0; i < PMUK_SCHED_GROUP_CHAINS; i++) {
		for (g = pmuk_sched.groups[i]; g; g = g->next)
			copy->groups[nr++] = *g;
	}
}

static void pmuk_sched_copy_tasks(struct pmuk_sched_copy *copy)
{
	const struct pmuk_sched_task *t;
	u32 i;

	for (i = 0; i <= pmuk_sched.mask; i++) {
		t = rcu_dereference_protected(pmuk_sched.chains[i], true);
		for (; t; t = rcu_dereference_protected(t->next, true))
			pmuk_sched_copy_one(copy, t);
	}
}

/* … to here. False: there are more by now. */
static bool pmuk_sched_copy_all(struct pmuk_sched_copy *copy)
{
	int cpu;

	copy->nr = 0;
	copy->nr_groups = 0;
	if (!pmuk_sched_copy_begin_groups(copy) || pmuk_sched.nr_tasks > copy->room)
		return false;
	pmuk_sched_copy_tasks(copy);
	pmuk_sched_copy_groups(copy);
	copy->exited = pmuk_sched.exited;
	copy->strays = (struct pmuk_sched_totals){};
	for_each_possible_cpu(cpu)
		pmuk_sched_add_task(&copy->strays,
				    pmuk_sched_stray(per_cpu_ptr(&pmuk_sched_cpus, cpu)));
	return true;
}

static void pmuk_sched_copy_free(struct pmuk_sched_copy *copy)
{
	kvfree(copy->tasks);
	kvfree(copy->groups);
}

static int pmuk_sched_copy_alloc(struct pmuk_sched_copy *copy)
{
	copy->room = READ_ONCE(pmuk_sched.nr_tasks) * 5 / 4 + 64;
	copy->room_groups = copy->nr_groups * 5 / 4 + 64;
	copy->tasks = kvcalloc(copy->room, sizeof(*copy->tasks), GFP_KERNEL);
	copy->groups = kvcalloc(copy->room_groups, sizeof(*copy->groups), GFP_KERNEL);
	if (copy->tasks && copy->groups)
		return 0;
	pmuk_sched_copy_free(copy);
	return -ENOMEM;
}

/* So often there may be many more tasks than a moment before. */
#define PMUK_SCHED_COPY_TRIES	8

static int pmuk_sched_copy(struct pmuk_sched_copy *copy)
{
	unsigned int tries;
	bool done;
	int ret;

	for (tries = 0; tries < PMUK_SCHED_COPY_TRIES; tries++) {
		ret = pmuk_sched_copy_alloc(copy);
		if (ret)
			return ret;
		scoped_guard(spinlock_irqsave, &pmuk_sched.lock)
			done = pmuk_sched_copy_all(copy);
		if (done)
			return 0;
		pmuk_sched_copy_free(copy);
	}
	return -EAGAIN;
}

static int pmuk_sched_cmp_tasks(const void *a, const void *b)
{
	const struct pmuk_sched_known *t = a, *u = b;

	return (int)t->pid - (int)u->pid;
}

static int pmuk_sched_cmp_groups(const void *a, const void *b)
{
	const struct pmuk_sched_group *g = a, *h = b;

	return (int)g->tgid - (int)h->tgid;
}

static u64 pmuk_sched_cgroup_full_id(u32 id)
{
	const struct pmuk_sched_cgroup *g;

	guard(spinlock_irqsave)(&pmuk_sched.lock);
	g = pmuk_sched_cgroup_find(id);
	return g ? g->full_id : id;
}

/* The rest of the line. */
static void pmuk_sched_show_comm(struct seq_file *m, const char *comm)
{
	seq_putc(m, ' ');
	seq_escape_str(m, comm, ESCAPE_OCTAL, "\n\\");
	seq_putc(m, '\n');
}

static void pmuk_sched_show_task(struct seq_file *m, const struct pmuk_sched_known *t)
{
	seq_printf(m, "task %u %u %llu", t->pid, t->tgid, pmuk_sched_cgroup_full_id(t->cgroup));
	pmuk_sched_show_totals(m, &t->had);
	pmuk_sched_show_comm(m, t->comm);
}

static int pmuk_sched_cmp_leader(const void *tgid, const void *task)
{
	return (int)*(const u32 *)tgid - (int)((const struct pmuk_sched_known *)task)->pid;
}

/* Its leader stays for as long as it has threads, and gives it its name. */
static void pmuk_sched_show_group(struct seq_file *m, const struct pmuk_sched_copy *copy,
				  const struct pmuk_sched_group *g)
{
	const struct pmuk_sched_known *leader =
		bsearch(&g->tgid, copy->tasks, copy->nr, sizeof(*copy->tasks),
			pmuk_sched_cmp_leader);

	seq_printf(m, "group %u %u %llu", g->tgid, g->threads,
		   leader ? pmuk_sched_cgroup_full_id(leader->cgroup) : 0);
	pmuk_sched_show_totals(m, &g->sum);
	pmuk_sched_show_comm(m, leader ? leader->comm : "-");
}

static void pmuk_sched_show_copy(struct seq_file *m, struct pmuk_sched_copy *copy)
{
	unsigned int i;

	sort(copy->tasks, copy->nr, sizeof(*copy->tasks), pmuk_sched_cmp_tasks, NULL);
	sort(copy->groups, copy->nr_groups, sizeof(*copy->groups), pmuk_sched_cmp_groups, NULL);
	for (i = 0; i < copy->nr; i++)
		pmuk_sched_show_task(m, &copy->tasks[i]);
	for (i = 0; i < copy->nr_groups; i++)
		pmuk_sched_show_group(m, copy, &copy->groups[i]);
	seq_puts(m, "exited");
	pmuk_sched_show_totals(m, &copy->exited);
	seq_puts(m, "\nstray");
	pmuk_sched_show_totals(m, &copy->strays);
	seq_putc(m, '\n');
}

static int pmuk_sched_show_tasks(struct seq_file *m, void *v)
{
	struct pmuk_sched_copy copy = {};
	int ret;

	guard(mutex)(&pmuk_sched.on_lock);
	if (!pmuk_sched_show_head(m, &pmuk_sched))
		return 0;
	on_each_cpu(pmuk_sched_look, NULL, true);
	ret = pmuk_sched_copy(&copy);
	if (ret)
		return ret;
	pmuk_sched_show_copy(m, &copy);
	pmuk_sched_copy_free(&copy);
	return 0;
}

/* ---- cgroups ---- */

/* One line of each file of a cgroup; what is in it and what is below it. */
struct pmuk_sched_line {
	u64 id, parent;
	struct pmuk_sched_totals own, tree;
	char *path;
};

struct pmuk_sched_lines {
	struct pmuk_sched_line *lines;
	unsigned int nr, room;
};

/* Each of all cgroups; ->lock is held, as in what follows. */
static void pmuk_sched_each_cgroup(void (*fn)(struct pmuk_sched_cgroup *g, void *data), void *data)
{
	struct pmuk_sched_cgroup *g;
	unsigned int i;

	for (i = 0; i < PMUK_SCHED_CGROUP_CHAINS; i++) {
		for (g = pmuk_sched.cgroups[i]; g; g = g->next)
			fn(g, data);
	}
}

static void pmuk_sched_count_cgroup(struct pmuk_sched_cgroup *g, void *data)
{
	++*(unsigned int *)data;
}

static unsigned int pmuk_sched_nr_cgroups(void)
{
	unsigned int nr = 0;

	pmuk_sched_each_cgroup(pmuk_sched_count_cgroup, &nr);
	return nr;
}

static void pmuk_sched_begin_cgroup(struct pmuk_sched_cgroup *g, void *data)
{
	g->own = g->ended;
	g->tree = g->below;
}

static void pmuk_sched_sum_own(void)
{
	const struct pmuk_sched_task *t;
	struct pmuk_sched_cgroup *g;
	u32 i;

	for (i = 0; i <= pmuk_sched.mask; i++) {
		t = rcu_dereference_protected(pmuk_sched.chains[i], true);
		for (; t; t = rcu_dereference_protected(t->next, true)) {
			g = pmuk_sched_cgroup_find(t->cgroup);
			if (g)
				pmuk_sched_add_task(&g->own, t);
		}
	}
}

/* To all above, what it has had itself, and what those have had that were below. */
static void pmuk_sched_sum_cgroup(struct pmuk_sched_cgroup *g, void *data)
{
	struct pmuk_sched_totals all = g->below;
	struct pmuk_sched_cgroup *above;

	pmuk_sched_add(&g->tree, &g->own);
	pmuk_sched_add(&all, &g->own);
	for (above = g->parent; above; above = above->parent)
		pmuk_sched_add(&above->tree, &all);
}

static void pmuk_sched_copy_cgroup(struct pmuk_sched_cgroup *g, void *data)
{
	struct pmuk_sched_lines *copy = data;

	copy->lines[copy->nr++] = (struct pmuk_sched_line){
		.id	= g->full_id,
		.parent	= g->parent ? g->parent->full_id : 0,
		.own	= g->own,
		.tree	= g->tree,
		.path	= kstrdup(g->path, GFP_NOWAIT),
	};
}

/* -EAGAIN: there are more by now than there is room for. */
static int pmuk_sched_copy_cgroups(struct pmuk_sched_lines *copy)
{
	guard(spinlock_irqsave)(&pmuk_sched.lock);
	if (pmuk_sched_nr_cgroups() > copy->room)
		return -EAGAIN;
	pmuk_sched_each_cgroup(pmuk_sched_begin_cgroup, NULL);
	pmuk_sched_sum_own();
	pmuk_sched_each_cgroup(pmuk_sched_sum_cgroup, NULL);
	pmuk_sched_each_cgroup(pmuk_sched_copy_cgroup, copy);
	return 0;
}

static int pmuk_sched_cmp_lines(const void *a, const void *b)
{
	const struct pmuk_sched_line *l = a, *r = b;

	return l->id < r->id ? -1 : l->id > r->id;
}

static void pmuk_sched_show_line(struct seq_file *m, const char *what,
				 const struct pmuk_sched_line *line,
				 const struct pmuk_sched_totals *sum)
{
	seq_printf(m, "%s %llu %llu", what, line->id, line->parent);
	pmuk_sched_show_totals(m, sum);
	seq_putc(m, ' ');
	seq_escape_str(m, line->path ?: "-", ESCAPE_OCTAL, "\n\\");
	seq_putc(m, '\n');
}

static void pmuk_sched_show_lines(struct seq_file *m, struct pmuk_sched_lines *copy)
{
	struct pmuk_sched_line *line;

	sort(copy->lines, copy->nr, sizeof(*copy->lines), pmuk_sched_cmp_lines, NULL);
	for (line = copy->lines; line < copy->lines + copy->nr; line++) {
		pmuk_sched_show_line(m, "cgroup", line, &line->own);
		pmuk_sched_show_line(m, "subtree", line, &line->tree);
		kfree(line->path);
	}
}

static int pmuk_sched_try_cgroups(struct seq_file *m)
{
	struct pmuk_sched_lines copy = {};
	int ret;

	scoped_guard(spinlock_irqsave, &pmuk_sched.lock)
		copy.room = pmuk_sched_nr_cgroups() * 5 / 4 + 8;
	copy.lines = kvcalloc(copy.room, sizeof(*copy.lines), GFP_KERNEL);
	if (!copy.lines)
		return -ENOMEM;
	ret = pmuk_sched_copy_cgroups(&copy);
	if (!ret)
		pmuk_sched_show_lines(m, &copy);
	kvfree(copy.lines);
	return ret;
}

static int pmuk_sched_show_cgroups(struct seq_file *m, void *v)
{
	unsigned int tries;
	int ret = 0;

	guard(mutex)(&pmuk_sched.on_lock);
	if (!pmuk_sched_show_head(m, &pmuk_sched))
		return 0;
	on_each_cpu(pmuk_sched_look, NULL, true);
	for (tries = 0; tries < PMUK_SCHED_COPY_TRIES; tries++) {
		ret = pmuk_sched_try_cgroups(m);
		if (ret != -EAGAIN)
			break;
	}
	return ret;
}

/* ---- histograms ---- */

/* The last of the @nr that are shown has all that is more. */
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

static void pmuk_sched_show_slices(struct seq_file *m, int cpu, const struct pmuk_sched_cpu *c)
{
	u64 sum[PMUK_SCHED_BUCKETS] = {};
	unsigned int i, how;

	for (how = 0; how < PMUK_SCHED_HOWS; how++) {
		for (i = 0; i < PMUK_SCHED_BUCKETS; i++)
			sum[i] += READ_ONCE(c->slices[how][i]);
	}
	pmuk_sched_show_buckets(m, "slice", cpu, sum, PMUK_SCHED_TIMES);
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
			pmuk_sched_show_buckets(m, "wait", cpu, c->waits, PMUK_SCHED_TIMES);
		pmuk_sched_show_slices(m, cpu, c);
		if (pmuk_sched.ipc)
			pmuk_sched_show_buckets(m, "ipc", cpu, c->ipcs, PMUK_SCHED_IPCS);
	}
	return 0;
}

/* ---- files ---- */

/* What others do is not for everybody. */
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

PMUK_SCHED_FILE(cpus, PAGE_SIZE + num_possible_cpus() * 320);
PMUK_SCHED_FILE(tasks, PAGE_SIZE + READ_ONCE(pmuk_sched.nr_tasks) * 160);
PMUK_SCHED_FILE(cgroups, 4 * PAGE_SIZE);
PMUK_SCHED_FILE(hist, PAGE_SIZE + num_possible_cpus() * 1024);

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
