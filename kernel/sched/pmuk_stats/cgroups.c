// SPDX-License-Identifier: GPL-2.0
/* The totals of cgroups, see struct pmuk_sched_cgroup. */
#include <linux/cgroup.h>
#include <linux/limits.h>
#include <linux/sched/clock.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "stats.h"

static struct pmuk_sched_cgroup **pmuk_sched_cgroup_link(u32 id) __must_hold(&pmuk_sched.lock)
{
	struct pmuk_sched_cgroup **link = &pmuk_sched.cgroups[pmuk_sched_cgroup_chain(id)];

	while (*link && (*link)->id != id)
		link = &(*link)->next;
	return link;
}

struct pmuk_sched_cgroup *pmuk_sched_cgroup_find(u32 id) __must_hold(&pmuk_sched.lock)
{
	return *pmuk_sched_cgroup_link(id);
}

#ifdef CONFIG_CGROUPS

static u32 pmuk_sched_cgroup_id(struct cgroup *cgrp)
{
	return cgroup_id(cgrp);
}

static struct cgroup *pmuk_sched_cgroup_root(void)
{
	return &cgrp_dfl_root.cgrp;
}

/* Returns the nearest ancestor that has an entry, or NULL, as for the root. */
static struct pmuk_sched_cgroup *pmuk_sched_cgroup_ancestor(struct cgroup *cgrp)
	__must_hold(&pmuk_sched.lock)
{
	struct pmuk_sched_cgroup *g = NULL;

	while (!g && (cgrp = cgroup_parent(cgrp)))
		g = pmuk_sched_cgroup_find(pmuk_sched_cgroup_id(cgrp));
	return g;
}

/*
 * If a mkdir comes during pmuk_sched_cgroups_seed(), the new cgroup may get its entry before its
 * parent has one, and is then entered below a more distant ancestor. The seed comes to the new
 * cgroup later, and corrects the parent.
 */
static void pmuk_sched_cgroup_set_parent(struct pmuk_sched_cgroup *g,
					 struct pmuk_sched_cgroup *parent)
	__must_hold(&pmuk_sched.lock)
{
	if (g->parent == parent)
		return;
	parent->refs++;
	if (g->parent)
		g->parent->refs--;	/* rmdir of the parent comes later, and drops the last */
	g->parent = parent;
}

static struct pmuk_sched_cgroup *pmuk_sched_cgroup_add(u64 id, const char *path)
	__must_hold(&pmuk_sched.lock)
{
	struct pmuk_sched_cgroup **link = pmuk_sched_cgroup_link(id);
	size_t size = strlen(path) + 1;
	struct pmuk_sched_cgroup *g = kzalloc(struct_size(g, path, size), GFP_NOWAIT);

	if (!g) {
		WRITE_ONCE(pmuk_sched.unknown, pmuk_sched.unknown + 1);
		return NULL;
	}
	memcpy(g->path, path, size);
	g->full_id = id;
	g->id = id;
	g->refs = 1;
	pmuk_sched.nr_cgroups++;
	pmuk_sched.path_bytes += size;
	*link = g;
	return g;
}

static void pmuk_sched_cgroup_make(struct cgroup *cgrp, const char *path)
	__must_hold(&pmuk_sched.lock)
{
	struct pmuk_sched_cgroup *parent = pmuk_sched_cgroup_ancestor(cgrp);
	struct pmuk_sched_cgroup *g = pmuk_sched_cgroup_find(pmuk_sched_cgroup_id(cgrp));

	if (!g)
		g = pmuk_sched_cgroup_add(cgroup_id(cgrp), path);
	if (g && parent)
		pmuk_sched_cgroup_set_parent(g, parent);
}

/* Makes entries for the cgroups that exist at the start. The path of a cgroup never changes. */
void pmuk_sched_cgroups_seed(void)
{
	struct cgroup_subsys_state *css;
	char *path = kmalloc(PATH_MAX, GFP_KERNEL);

	if (!path)
		return;
	rcu_read_lock();
	css_for_each_descendant_pre(css, &pmuk_sched_cgroup_root()->self) {
		struct cgroup *cgrp = container_of(css, struct cgroup, self);

		if (cgroup_path(cgrp, path, PATH_MAX) < 0)
			continue;
		guard(spinlock_irqsave)(&pmuk_sched.lock);
		if (css->flags & CSS_ONLINE)	/* if not, the probe of rmdir may have run */
			pmuk_sched_cgroup_make(cgrp, path);
	}
	rcu_read_unlock();
	kfree(path);
}

static bool pmuk_sched_cgroup_is_v2(struct cgroup *cgrp)
{
	return cgrp->root == &cgrp_dfl_root;
}

/* The probe of cgroup_mkdir. */
void pmuk_sched_cgroup_mkdir(void *data, struct cgroup *cgrp, const char *path)
{
	if (!pmuk_sched_cgroup_is_v2(cgrp))
		return;
	guard(spinlock_irqsave)(&pmuk_sched.lock);
	pmuk_sched_cgroup_make(cgrp, path);
}

/*
 * A cgroup that got no memory for an entry counts as part of its nearest ancestor. ->lock keeps
 * preemption off, so RCU keeps the cgroup of @p.
 */
static struct pmuk_sched_cgroup *pmuk_sched_cgroup_of(struct task_struct *p)
	__must_hold(&pmuk_sched.lock)
{
	struct cgroup *cgrp = task_dfl_cgroup(p);

	return pmuk_sched_cgroup_find(pmuk_sched_cgroup_id(cgrp)) ?:
	       pmuk_sched_cgroup_ancestor(cgrp);
}

/* Takes a reference on the cgroup of a new task. Returns its id, or 0 if there is no entry. */
u32 pmuk_sched_cgroup_join(struct task_struct *p) __must_hold(&pmuk_sched.lock)
{
	struct pmuk_sched_cgroup *g = pmuk_sched_cgroup_of(p);

	if (!g)
		return 0;
	g->refs++;
	return g->id;
}

#else

static struct pmuk_sched_cgroup *pmuk_sched_cgroup_of(struct task_struct *p)
	__must_hold(&pmuk_sched.lock)
{
	return NULL;
}

u32 pmuk_sched_cgroup_join(struct task_struct *p) __must_hold(&pmuk_sched.lock)
{
	return 0;
}

void pmuk_sched_cgroups_seed(void)
{
}

#endif /* CONFIG_CGROUPS */

int pmuk_sched_cgroups_init(void)
{
	struct pmuk_sched_cgroup **cgroups = kvcalloc(PMUK_SCHED_CGROUP_CHAINS, sizeof(*cgroups),
						      GFP_KERNEL);

	if (!cgroups)
		return -ENOMEM;
	guard(spinlock_irqsave)(&pmuk_sched.lock);
	pmuk_sched.cgroups = cgroups;
	pmuk_sched.nr_cgroups = 0;
	pmuk_sched.path_bytes = 0;
	return 0;
}

void pmuk_sched_cgroups_exit(void)
{
	/* No probe is registered or still running, so nobody else uses the table. */
	struct pmuk_sched_cgroup **cgroups = context_unsafe(pmuk_sched.cgroups);
	struct pmuk_sched_cgroup *g, *next;
	unsigned int i;

	for (i = 0; i < PMUK_SCHED_CGROUP_CHAINS; i++) {
		for (g = cgroups[i]; g; g = next) {
			next = g->next;
			kfree(g);
		}
	}
	kvfree(cgroups);
}

/*
 * A reading may have added some tasks to the sums of @g, and has yet to add these sums to the
 * ancestors of @g. So keep @g until the reading has copied it.
 */
static void pmuk_sched_cgroup_end(struct pmuk_sched_cgroup *g) __must_hold(&pmuk_sched.lock)
{
	struct pmuk_sched_reading *r = pmuk_sched.reading;

	if (!r) {
		kfree(g);
		return;
	}
	g->parent_id = g->parent ? g->parent->full_id : 0;
	g->parent = NULL;	/* the parent may end before the reading does */
	g->next = r->dead_cgroups;
	r->dead_cgroups = g;
}

/*
 * Drops a reference. A cgroup that has lost its last reference adds its totals to its parent's, and
 * drops the reference that it holds on the parent.
 */
static void pmuk_sched_cgroup_put(struct pmuk_sched_cgroup *g) __must_hold(&pmuk_sched.lock)
{
	while (g && !--g->refs) {
		struct pmuk_sched_cgroup *parent = g->parent;

		pmuk_sched_touch_cgroup(g);
		if (parent) {
			pmuk_sched_touch_cgroup(parent);
			pmuk_sched_add(&parent->removed, &g->ended);
			pmuk_sched_add(&parent->removed, &g->removed);
		}
		*pmuk_sched_cgroup_link(g->id) = g->next;
		pmuk_sched.nr_cgroups--;
		pmuk_sched.path_bytes -= strlen(g->path) + 1;
		pmuk_sched_cgroup_end(g);
		g = parent;
	}
}

void pmuk_sched_cgroup_leave(const struct pmuk_sched_task *t) __must_hold(&pmuk_sched.lock)
{
	struct pmuk_sched_cgroup *g = pmuk_sched_cgroup_find(t->cgroup);

	if (!g)
		return;
	pmuk_sched_touch_cgroup(g);
	pmuk_sched_add_task(&g->ended, t);
	if (pmuk_sched_is_ahead(pmuk_sched_task_of(t)))
		pmuk_sched_add_task(&g->own, t);
	pmuk_sched_cgroup_put(g);
}

static void pmuk_sched_sub(struct pmuk_sched_totals *sum, const struct pmuk_sched_totals *other)
{
	unsigned int i;

	sum->run -= other->run;
	sum->wait -= other->wait;
	for (i = 0; i < PMUK_SCHED_TASK_REASONS; i++)
		sum->reasons[i] -= other->reasons[i];
	for (i = 0; i < PMUK_SCHED_EVENTS; i++)
		sum->counts[i] -= other->counts[i];
	sum->invalid |= other->invalid;
}

/*
 * Moves a task to the cgroup in which it is now. The old cgroup keeps the task's totals so far: a
 * copy of them is added to the old cgroup, and the same copy is subtracted from the new one, as the
 * task's CPU may add to the task's totals meanwhile.
 */
void pmuk_sched_cgroup_move(struct task_struct *p) __must_hold(&pmuk_sched.lock)
{
	struct pmuk_sched_cgroup *from, *to = pmuk_sched_cgroup_of(p);
	struct pmuk_sched_task *t = pmuk_sched_find(p);
	struct pmuk_sched_totals totals = {};

	if (!t || !to || t->cgroup == to->id)
		return;
	from = pmuk_sched_cgroup_find(t->cgroup);
	pmuk_sched_touch_cgroup(to);
	pmuk_sched_add_task(&totals, t);
	pmuk_sched_sub(&to->ended, &totals);
	if (pmuk_sched_is_ahead(p))
		pmuk_sched_sub(&to->own, &totals);
	to->refs++;
	WRITE_ONCE(t->cgroup, to->id);
	if (from) {
		pmuk_sched_touch_cgroup(from);
		pmuk_sched_add(&from->ended, &totals);
		if (pmuk_sched_is_ahead(p))
			pmuk_sched_add(&from->own, &totals);
		pmuk_sched_cgroup_put(from);
	}
}

/*
 * This probe of cgroup_attach_task runs after all threads have been moved. The tracepoint has
 * interrupts off, so only the first threads of a large process are handled here. A work item, or
 * the next reader, handles the others.
 */
void pmuk_sched_cgroup_attach(void *data, struct cgroup *dst, const char *path,
			      struct task_struct *leader, bool threadgroup)
{
	unsigned int seen = 0;
	struct task_struct *p;
	u64 began;

	guard(spinlock_irqsave)(&pmuk_sched.lock);
	began = local_clock();
	if (!threadgroup) {
		pmuk_sched_cgroup_move(leader);
		return;
	}
	for_each_thread(leader, p) {
		if (seen == PMUK_SCHED_STRETCH) {
			pmuk_sched.move_pending = true;
			queue_work(system_dfl_wq, &pmuk_sched.move);
			break;
		}
		pmuk_sched_cgroup_move(p);
		seen++;
	}
	pmuk_sched_note_stretch(seen, began);
}

/* The probe of cgroup_rmdir. Dying tasks may still be in the cgroup, and keep its entry. */
void pmuk_sched_cgroup_rmdir(void *data, struct cgroup *cgrp, const char *path)
{
#ifdef CONFIG_CGROUPS
	struct pmuk_sched_cgroup *g;

	if (!pmuk_sched_cgroup_is_v2(cgrp))
		return;
	guard(spinlock_irqsave)(&pmuk_sched.lock);
	g = pmuk_sched_cgroup_find(pmuk_sched_cgroup_id(cgrp));
	if (g && g->full_id == cgroup_id(cgrp))
		pmuk_sched_cgroup_put(g);
#endif
}
