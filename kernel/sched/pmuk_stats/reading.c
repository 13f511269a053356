// SPDX-License-Identifier: GPL-2.0
/*
 * Readings of all tasks and all cgroups, see struct pmuk_sched_reading. The callers hold ->on_lock:
 * so there is a single reading at a time, and the hash tables exist. The copies are charged to the
 * memory cgroup of the reader.
 */
#include <linux/bsearch.h>
#include <linux/lockdep.h>
#include <linux/moduleparam.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/string.h>

#include "stats.h"

module_param_named(stretch, pmuk_sched.stretch, uint, 0444);
MODULE_PARM_DESC(stretch, "Most tasks, processes or cgroups handled with interrupts off");
module_param_named(stretch_ns, pmuk_sched.stretch_ns, uint, 0444);
MODULE_PARM_DESC(stretch_ns, "Longest time, in nanoseconds, with interrupts off");

/* Handles a chain of a table, with ->lock held. Returns the number of entries in the chain. */
typedef unsigned int (*pmuk_sched_chain_t)(struct pmuk_sched_reading *r, u32 i);

/* Walks a stretch of the chains in [*@next, @nr). Returns whether there is more to walk. */
static bool pmuk_sched_walk_stretch(struct pmuk_sched_reading *r, u32 *next, u32 nr,
				    pmuk_sched_chain_t chain) __must_hold(&pmuk_sched.lock)
{
	unsigned int seen = 0, chains = 0;
	u64 began = local_clock();

	while (*next < nr && chains++ < PMUK_SCHED_STRETCH_CHAINS && seen < PMUK_SCHED_STRETCH)
		seen += chain(r, (*next)++);
	pmuk_sched_note_stretch(seen, began);
	return *next < nr && !r->full;
}

/* Walks the chains of tasks: ->next says to others how far the walk has come. */
static void pmuk_sched_walk_tasks(struct pmuk_sched_reading *r, pmuk_sched_chain_t chain)
{
	bool more = true;

	while (more) {
		scoped_guard(spinlock_irqsave, &pmuk_sched.lock)
			more = pmuk_sched_walk_stretch(r, &r->next, pmuk_sched.mask + 1, chain);
		cond_resched();
	}
}

/* Walks the @nr chains of groups or cgroups. */
static void pmuk_sched_walk(struct pmuk_sched_reading *r, u32 nr, pmuk_sched_chain_t chain)
{
	bool more = !r->full;
	u32 next = 0;

	while (more) {
		scoped_guard(spinlock_irqsave, &pmuk_sched.lock)
			more = pmuk_sched_walk_stretch(r, &next, nr, chain);
		cond_resched();
	}
}

static unsigned int pmuk_sched_move_tasks(struct pmuk_sched_reading *r, u32 i)
	__must_hold(&pmuk_sched.lock)
{
	const struct pmuk_sched_task *t = rcu_dereference_protected(pmuk_sched.chains[i], true);
	unsigned int seen = 0;

	for (; t; t = rcu_dereference_protected(t->next, true), seen++)
		pmuk_sched_cgroup_move(pmuk_sched_task_of(t));
	return seen;
}

/* Completes the moves that pmuk_sched_cgroup_attach() has left. */
void pmuk_sched_move_rest(struct pmuk_sched *s) __must_hold(&s->on_lock)
{
	struct pmuk_sched_reading r = {};
	bool move_pending;

	scoped_guard(spinlock_irqsave, &s->lock) {
		move_pending = s->move_pending;
		s->move_pending = false;
	}
	if (move_pending)
		pmuk_sched_walk_tasks(&r, pmuk_sched_move_tasks);
}

static void pmuk_sched_reading_begin(struct pmuk_sched_reading *r)
{
	guard(spinlock_irqsave)(&pmuk_sched.lock);
	r->next = 0;
	r->full = false;
	r->nr_events = pmuk_sched.nr;
	r->exited = pmuk_sched.exited;
	pmuk_sched.serial++;
	pmuk_sched.reading = r;
}

/* ---- tasks ---- */

static u64 pmuk_sched_cgroup_full_id(u32 id) __must_hold(&pmuk_sched.lock)
{
	const struct pmuk_sched_cgroup *g = pmuk_sched_cgroup_find(id);

	return g ? g->full_id : id;
}

static void pmuk_sched_copy_task(struct pmuk_sched_reading *r, const struct pmuk_sched_task *t,
				 const struct pmuk_sched_totals *totals)
	__must_hold(&pmuk_sched.lock)
{
	struct pmuk_sched_task_copy *copy = &r->tasks[r->nr++];
	const struct task_struct *p = pmuk_sched_task_of(t);

	*copy = (struct pmuk_sched_task_copy){
		.pid	= READ_ONCE(p->pid),
		.tgid	= p->tgid,
		.cgroup	= pmuk_sched_cgroup_full_id(t->cgroup),
		.totals	= *totals,
	};
	/* The task may be changing its name. Then the copy mixes old and new, as in /proc. */
	data_race(memcpy(copy->comm, p->comm, sizeof(copy->comm)));
	copy->comm[sizeof(copy->comm) - 1] = '\0';
}

/*
 * A task that has been reaped has no pid any more, and another task may already have that pid. RCU,
 * or a BPF program, may keep the entry for long. So the entry counts as one of an exited task, and
 * there is no copy of it.
 */
static void pmuk_sched_read_task(struct pmuk_sched_reading *r, const struct pmuk_sched_task *t)
	__must_hold(&pmuk_sched.lock)
{
	const struct task_struct *p = pmuk_sched_task_of(t);
	bool alive = data_race(pid_alive(p));	/* a task that dies now may still have its line */
	struct pmuk_sched_totals totals = {};
	struct pmuk_sched_group *g;

	pmuk_sched_add_task(&totals, t);
	if (alive)
		pmuk_sched_copy_task(r, t, &totals);
	if (test_bit(PMUK_SCHED_GROUPED_BIT, &t->key)) {
		g = pmuk_sched_group_find(p);
		pmuk_sched_touch_group(g);
		pmuk_sched_add(&g->sum, &totals);
		g->shown |= alive;
	} else if (!alive) {
		pmuk_sched_add(&r->exited, &totals);
	}
}

static unsigned int pmuk_sched_copy_tasks(struct pmuk_sched_reading *r, u32 i)
	__must_hold(&pmuk_sched.lock)
{
	const struct pmuk_sched_task *t = rcu_dereference_protected(pmuk_sched.chains[i], true);
	unsigned int seen = 0;

	for (; t && !r->full; t = rcu_dereference_protected(t->next, true), seen++) {
		r->full = r->nr == r->room;
		if (!r->full)
			pmuk_sched_read_task(r, t);
	}
	return seen;
}

static bool pmuk_sched_group_is_alive(const struct pmuk_sched_group *g)
	__must_hold(&pmuk_sched.lock)
{
	return g->threads && data_race(g->signal->nr_threads);	/* the latest exit may be missed */
}

/*
 * A process whose threads have all been reaped counts as exited, as a task does. But if one of them
 * has a line, from before that, the process has its line, too.
 */
static void pmuk_sched_copy_group(struct pmuk_sched_reading *r, struct pmuk_sched_group *g)
	__must_hold(&pmuk_sched.lock)
{
	r->full = r->nr_groups == r->room_groups;
	if (r->full)
		return;
	pmuk_sched_touch_group(g);
	if (g->shown || pmuk_sched_group_is_alive(g))
		r->groups[r->nr_groups++] = *g;
	else
		pmuk_sched_add(&r->exited, &g->sum);
	g->copied = true;
}

static unsigned int pmuk_sched_copy_groups(struct pmuk_sched_reading *r, u32 i)
	__must_hold(&pmuk_sched.lock)
{
	struct pmuk_sched_group *g = pmuk_sched.groups[i];
	unsigned int seen = 0;

	for (; g && !r->full; g = g->next, seen++)
		pmuk_sched_copy_group(r, g);
	return seen;
}

static int pmuk_sched_cmp_tasks(const void *a, const void *b)
{
	const struct pmuk_sched_task_copy *t = a, *u = b;

	return (int)t->pid - (int)u->pid;
}

static int pmuk_sched_cmp_groups(const void *a, const void *b)
{
	const struct pmuk_sched_group *g = a, *h = b;

	return (int)g->tgid - (int)h->tgid;
}

/* ---- cgroups ---- */

static unsigned int pmuk_sched_sum_tasks(struct pmuk_sched_reading *r, u32 i)
	__must_hold(&pmuk_sched.lock)
{
	const struct pmuk_sched_task *t = rcu_dereference_protected(pmuk_sched.chains[i], true);
	struct pmuk_sched_cgroup *g;
	unsigned int seen = 0;

	for (; t; t = rcu_dereference_protected(t->next, true), seen++) {
		g = pmuk_sched_cgroup_find(t->cgroup);
		if (!g)
			continue;
		pmuk_sched_touch_cgroup(g);
		pmuk_sched_add_task(&g->own, t);
	}
	return seen;
}

static void pmuk_sched_copy_cgroup(struct pmuk_sched_reading *r, struct pmuk_sched_cgroup *g,
				   bool gone) __must_hold(&pmuk_sched.lock)
{
	const char *path = NULL;

	if (r->nr_lines < r->room_lines)
		path = pmuk_sched_copy_path(r, g->path);
	r->full = !path;
	if (r->full)
		return;
	pmuk_sched_touch_cgroup(g);
	r->lines[r->nr_lines++] = (struct pmuk_sched_line){
		.id	= g->full_id,
		.parent	= g->parent ? g->parent->full_id : g->parent_id,
		.own	= g->own,
		.tree	= g->tree,
		.gone	= gone,
		.path	= path,
	};
	g->copied = true;
}

static unsigned int pmuk_sched_copy_cgroups(struct pmuk_sched_reading *r, u32 i)
	__must_hold(&pmuk_sched.lock)
{
	struct pmuk_sched_cgroup *g = pmuk_sched.cgroups[i];
	unsigned int seen = 0;

	for (; g && !r->full; g = g->next, seen++)
		pmuk_sched_copy_cgroup(r, g, false);
	return seen;
}

static int pmuk_sched_cmp_lines(const void *a, const void *b)
{
	const struct pmuk_sched_line *l = a, *m = b;

	return l->id < m->id ? -1 : l->id > m->id;
}

static void pmuk_sched_find_parents(struct pmuk_sched_reading *r)
{
	struct pmuk_sched_line *line;

	for (line = r->lines; line < r->lines + r->nr_lines; line++) {
		const struct pmuk_sched_line key = { .id = line->parent };

		line->parent_line = !line->parent ? NULL :
				    bsearch(&key, r->lines, r->nr_lines, sizeof(*line),
					    pmuk_sched_cmp_lines);
		if (line->parent_line)
			line->parent_line->pending++;
		pmuk_sched_add(&line->tree, &line->own);
	}
}

/* Adds @line to its parent, and goes on with a parent that waits for no other child. */
static void pmuk_sched_add_to_parents(struct pmuk_sched_line *line)
{
	struct pmuk_sched_line *parent_line;

	while ((parent_line = line->parent_line)) {
		line->parent_line = NULL;
		pmuk_sched_add(&parent_line->tree, &line->tree);
		if (--parent_line->pending)
			return;
		line = parent_line;
	}
}

static void pmuk_sched_sum_trees(struct pmuk_sched_reading *r)
{
	struct pmuk_sched_line *line;

	pmuk_sched_find_parents(r);
	for (line = r->lines; line < r->lines + r->nr_lines; line++) {
		if (!line->pending)
			pmuk_sched_add_to_parents(line);
	}
}

/* ---- the end ---- */

/*
 * Copies and frees a stretch of the groups and cgroups that ended during the reading. Returns true
 * when none is left, which ends the reading.
 */
static bool pmuk_sched_free_dead(struct pmuk_sched_reading *r) __must_hold(&pmuk_sched.lock)
{
	struct pmuk_sched_cgroup *c;
	struct pmuk_sched_group *g;
	u64 began = local_clock();
	unsigned int i;

	for (i = 0; i < PMUK_SCHED_STRETCH && (g = r->dead_groups); i++) {
		r->dead_groups = g->next;
		if (r->groups && !r->full && !g->copied)
			pmuk_sched_copy_group(r, g);
		kfree(g);
	}
	for (; i < PMUK_SCHED_STRETCH && (c = r->dead_cgroups); i++) {
		r->dead_cgroups = c->next;
		if (r->lines && !r->full && !c->copied)
			pmuk_sched_copy_cgroup(r, c, true);
		kfree(c);
	}
	pmuk_sched_note_stretch(i, began);
	if (r->dead_groups || r->dead_cgroups)
		return false;
	pmuk_sched.reading = NULL;
	return true;
}

static void pmuk_sched_reading_end(struct pmuk_sched_reading *r)
{
	bool over = false;

	while (!over) {
		scoped_guard(spinlock_irqsave, &pmuk_sched.lock)
			over = pmuk_sched_free_dead(r);
		cond_resched();
	}
}

/* Frees the copies of a reading. The reading has ended, so @r belongs to its file alone. */
void pmuk_sched_reading_free(struct pmuk_sched_reading *r)
{
	kvfree(r->tasks);
	kvfree(r->groups);
	kvfree(r->lines);
	kvfree(r->paths);
	*r = (struct pmuk_sched_reading){};
}

/*
 * If its tables prove too small, a reading begins again, at most this many times. A table also
 * needs room for what ends during the reading, so there is more room at each try.
 */
#define PMUK_SCHED_READING_TRIES	8

/* A reader in a full memory cgroup gets -ENOMEM, and no task there is killed for a reading. */
#define PMUK_SCHED_GFP		(GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL)

static void *pmuk_sched_alloc(unsigned int *room, unsigned int nr, unsigned int tries, size_t size)
{
	*room = nr * 5 / 4 + (64U << tries);
	return kvcalloc(*room, size, PMUK_SCHED_GFP);
}

static void pmuk_sched_add_strays(struct pmuk_sched_reading *r)
{
	int cpu;

	for_each_possible_cpu(cpu)
		pmuk_sched_add_task(&r->strays,
				    pmuk_sched_stray(per_cpu_ptr(&pmuk_sched_cpus, cpu)));
}

static int pmuk_sched_try_tasks(struct pmuk_sched_reading *r, unsigned int tries)
{
	/* If there are more tasks when they are copied, the reading begins again. */
	unsigned int nr = context_unsafe(READ_ONCE(pmuk_sched.nr_tasks));
	/* If there are more groups when they are copied, the reading begins again, too. */
	unsigned int nr_groups = context_unsafe(READ_ONCE(pmuk_sched.nr_groups));

	r->tasks = pmuk_sched_alloc(&r->room, nr, tries, sizeof(*r->tasks));
	r->groups = pmuk_sched_alloc(&r->room_groups, nr_groups, tries, sizeof(*r->groups));
	if (!r->tasks || !r->groups)
		return -ENOMEM;
	pmuk_sched_reading_begin(r);
	pmuk_sched_walk_tasks(r, pmuk_sched_copy_tasks);
	pmuk_sched_walk(r, PMUK_SCHED_GROUP_CHAINS, pmuk_sched_copy_groups);
	pmuk_sched_reading_end(r);
	if (r->full)
		return -EAGAIN;
	pmuk_sched_add_strays(r);
	sort(r->tasks, r->nr, sizeof(*r->tasks), pmuk_sched_cmp_tasks, NULL);
	sort(r->groups, r->nr_groups, sizeof(*r->groups), pmuk_sched_cmp_groups, NULL);
	return 0;
}

static int pmuk_sched_try_cgroups(struct pmuk_sched_reading *r, unsigned int tries)
{
	unsigned int nr;
	size_t bytes;

	/* If there are more cgroups when they are copied, the reading begins again. */
	scoped_guard(spinlock_irqsave, &pmuk_sched.lock) {
		nr = pmuk_sched.nr_cgroups;
		bytes = pmuk_sched.path_bytes;
	}
	r->lines = pmuk_sched_alloc(&r->room_lines, nr, tries, sizeof(*r->lines));
	r->room_paths = bytes + bytes / 4 + (SZ_4K << tries);
	r->paths = kvmalloc(r->room_paths, PMUK_SCHED_GFP);
	if (!r->lines || !r->paths)
		return -ENOMEM;
	pmuk_sched_reading_begin(r);
	pmuk_sched_walk_tasks(r, pmuk_sched_sum_tasks);
	pmuk_sched_walk(r, PMUK_SCHED_CGROUP_CHAINS, pmuk_sched_copy_cgroups);
	pmuk_sched_reading_end(r);
	if (r->full)
		return -EAGAIN;
	sort(r->lines, r->nr_lines, sizeof(*r->lines), pmuk_sched_cmp_lines, NULL);
	pmuk_sched_sum_trees(r);
	return 0;
}

static int pmuk_sched_read(struct pmuk_sched_reading *r,
			   int (*try)(struct pmuk_sched_reading *r, unsigned int tries))
{
	unsigned int tries;
	int ret = -EAGAIN;

	lockdep_assert_held(&pmuk_sched.on_lock);
	for (tries = 0; tries < PMUK_SCHED_READING_TRIES && ret == -EAGAIN; tries++) {
		pmuk_sched_reading_free(r);
		ret = try(r, tries);
	}
	return ret;
}

/* Returns 0, -ENOMEM, or -EAGAIN if the tables were too small each time. */
int pmuk_sched_read_tasks(struct pmuk_sched_reading *r) __must_hold(&pmuk_sched.on_lock)
{
	return pmuk_sched_read(r, pmuk_sched_try_tasks);
}

int pmuk_sched_read_cgroups(struct pmuk_sched_reading *r) __must_hold(&pmuk_sched.on_lock)
{
	return pmuk_sched_read(r, pmuk_sched_try_cgroups);
}
