// SPDX-License-Identifier: GPL-2.0
/*
 * What cgroups have had: see struct pmuk_sched_cgroup. All is under ->lock.
 */
#include <linux/cgroup.h>
#include <linux/hash.h>
#include <linux/limits.h>
#include <linux/sched/clock.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "stats.h"

static struct pmuk_sched_cgroup **pmuk_sched_cgroup_link(u32 id)
{
	struct pmuk_sched_cgroup **link = &pmuk_sched.cgroups[hash_32(id, PMUK_SCHED_CGROUP_BITS)];

	while (*link && (*link)->id != id)
		link = &(*link)->next;
	return link;
}

struct pmuk_sched_cgroup *pmuk_sched_cgroup_find(u32 id)
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

/* The nearest one above that is known; the root is. NULL for the root itself. */
static struct pmuk_sched_cgroup *pmuk_sched_cgroup_above(struct cgroup *cgrp)
{
	struct pmuk_sched_cgroup *g = NULL;

	while (!g && (cgrp = cgroup_parent(cgrp)))
		g = pmuk_sched_cgroup_find(pmuk_sched_cgroup_id(cgrp));
	return g;
}

/* It may have been made before those above it were known. */
static void pmuk_sched_cgroup_put_below(struct pmuk_sched_cgroup *g,
					struct pmuk_sched_cgroup *parent)
{
	if (g->parent == parent)
		return;
	parent->refs++;
	if (g->parent)
		g->parent->refs--;	/* not the last one: it is not removed before us */
	g->parent = parent;
}

static struct pmuk_sched_cgroup *pmuk_sched_cgroup_add(u64 id, const char *path)
{
	struct pmuk_sched_cgroup **link = pmuk_sched_cgroup_link(id);
	struct pmuk_sched_cgroup *g = kzalloc(struct_size(g, path, strlen(path) + 1), GFP_NOWAIT);

	if (!g) {
		WRITE_ONCE(pmuk_sched.unknown, pmuk_sched.unknown + 1);
		return NULL;
	}
	memcpy(g->path, path, strlen(path) + 1);
	g->full_id = id;
	g->id = id;
	g->refs = 1;
	pmuk_sched.nr_cgroups++;
	*link = g;
	return g;
}

static void pmuk_sched_cgroup_make(struct cgroup *cgrp, const char *path)
{
	struct pmuk_sched_cgroup *parent = pmuk_sched_cgroup_above(cgrp);
	struct pmuk_sched_cgroup *g = pmuk_sched_cgroup_find(pmuk_sched_cgroup_id(cgrp));

	if (!g)
		g = pmuk_sched_cgroup_add(cgroup_id(cgrp), path);
	if (g && parent)
		pmuk_sched_cgroup_put_below(g, parent);
}

/* Those that were there before. Their paths do not change. */
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
		if (css->flags & CSS_ONLINE)	/* or its rmdir may have been told already */
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

/* In RCU's care. One that is not known counts for the nearest above it. */
static struct pmuk_sched_cgroup *pmuk_sched_cgroup_of(struct task_struct *p)
{
	struct cgroup *cgrp = task_dfl_cgroup(p);

	return pmuk_sched_cgroup_find(pmuk_sched_cgroup_id(cgrp)) ?:
	       pmuk_sched_cgroup_above(cgrp);
}

/* The id of the cgroup that a new task is in. */
u32 pmuk_sched_cgroup_join(struct task_struct *p)
{
	struct pmuk_sched_cgroup *g = pmuk_sched_cgroup_of(p);

	if (!g)
		return 0;
	g->refs++;
	return g->id;
}

#else

static struct pmuk_sched_cgroup *pmuk_sched_cgroup_of(struct task_struct *p)
{
	return NULL;
}

u32 pmuk_sched_cgroup_join(struct task_struct *p)
{
	return 0;
}

void pmuk_sched_cgroups_seed(void)
{
}

#endif /* CONFIG_CGROUPS */

int pmuk_sched_cgroups_init(void)
{
	pmuk_sched.cgroups = kcalloc(PMUK_SCHED_CGROUP_CHAINS, sizeof(*pmuk_sched.cgroups),
				     GFP_KERNEL);
	pmuk_sched.nr_cgroups = 0;
	return pmuk_sched.cgroups ? 0 : -ENOMEM;
}

void pmuk_sched_cgroups_exit(void)
{
	struct pmuk_sched_cgroup *g, *next;
	unsigned int i;

	for (i = 0; i < PMUK_SCHED_CGROUP_CHAINS; i++) {
		for (g = pmuk_sched.cgroups[i]; g; g = next) {
			next = g->next;
			kfree(g);
		}
	}
	kfree(pmuk_sched.cgroups);
}

/* Some of its tasks may have been read already: those above are to have them. */
static void pmuk_sched_cgroup_end(struct pmuk_sched_cgroup *g)
{
	struct pmuk_sched_reading *r = pmuk_sched.reading;

	if (!r) {
		kfree(g);
		return;
	}
	g->parent_id = g->parent ? g->parent->full_id : 0;
	g->parent = NULL;	/* it may end, too */
	g->next = r->dead_cgroups;
	r->dead_cgroups = g;
}

/* The last one to refer to a removed one hands its sums, and its own reference, upwards. */
static void pmuk_sched_cgroup_put(struct pmuk_sched_cgroup *g)
{
	while (g && !--g->refs) {
		struct pmuk_sched_cgroup *parent = g->parent;

		pmuk_sched_touch_cgroup(g);
		if (parent) {
			pmuk_sched_touch_cgroup(parent);
			pmuk_sched_add(&parent->below, &g->ended);
			pmuk_sched_add(&parent->below, &g->below);
		}
		*pmuk_sched_cgroup_link(g->id) = g->next;
		pmuk_sched.nr_cgroups--;
		pmuk_sched_cgroup_end(g);
		g = parent;
	}
}

void pmuk_sched_cgroup_leave(const struct pmuk_sched_task *t)
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

static void pmuk_sched_take(struct pmuk_sched_totals *sum, const struct pmuk_sched_totals *other)
{
	unsigned int i;

	sum->run -= other->run;
	sum->wait -= other->wait;
	for (i = 0; i < PMUK_SCHED_HOWS; i++)
		sum->left[i] -= other->left[i];
	for (i = 0; i < PMUK_SCHED_EVENTS; i++)
		sum->counts[i] -= other->counts[i];
	sum->invalid |= other->invalid;
}

/* What it has had so far stays where it was: one copy of that, as its CPU may be adding to it. */
void pmuk_sched_cgroup_move(struct task_struct *p)
{
	struct pmuk_sched_cgroup *from, *to = pmuk_sched_cgroup_of(p);
	struct pmuk_sched_task *t = pmuk_sched_find(p);
	struct pmuk_sched_totals had = {};

	if (!t || !to || t->cgroup == to->id)
		return;
	from = pmuk_sched_cgroup_find(t->cgroup);
	pmuk_sched_touch_cgroup(to);
	pmuk_sched_add_task(&had, t);
	pmuk_sched_take(&to->ended, &had);
	if (pmuk_sched_is_ahead(p))
		pmuk_sched_take(&to->own, &had);
	to->refs++;
	WRITE_ONCE(t->cgroup, to->id);
	if (from) {
		pmuk_sched_touch_cgroup(from);
		pmuk_sched_add(&from->ended, &had);
		if (pmuk_sched_is_ahead(p))
			pmuk_sched_add(&from->own, &had);
		pmuk_sched_cgroup_put(from);
	}
}

/*
 * The probe of cgroup_attach_task, when all have been moved. It is called with interrupts off: of a
 * process that has more threads than are looked at in a row, the others follow in a moment, or when
 * somebody reads.
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
			pmuk_sched.unmoved = true;
			queue_work(system_dfl_wq, &pmuk_sched.move);
			break;
		}
		pmuk_sched_cgroup_move(p);
		seen++;
	}
	pmuk_sched_note_stretch(seen, began);
}

/* The probe of cgroup_rmdir. Tasks that are dying may still be in it. */
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
