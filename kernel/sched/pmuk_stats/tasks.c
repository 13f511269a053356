// SPDX-License-Identifier: GPL-2.0
/*
 * Which tasks there are. A task is known from its fork until its task_struct is freed, which
 * is after its last switch; what it has had is then part of its process, and in the end of
 * what has exited.
 */
#include <linux/hash.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "stats.h"

size_t pmuk_sched_task_size(void)
{
	return sizeof(struct pmuk_sched_task) + pmuk_sched.nr * sizeof(u64);
}

/* A chain for each 256 KiB of memory, 1024 to 65536: about one for each task of a busy machine. */
static u32 pmuk_sched_chains(void)
{
	u64 nr = (u64)totalram_pages() * PAGE_SIZE / SZ_256K;

	return roundup_pow_of_two(clamp_t(u64, nr, 1024, 65536));
}

int pmuk_sched_tasks_init(void)
{
	struct pmuk_sched *s = &pmuk_sched;
	u32 nr = pmuk_sched_chains();

	s->chains = kvcalloc(nr, sizeof(*s->chains), GFP_KERNEL);
	s->groups = kcalloc(PMUK_SCHED_GROUP_CHAINS, sizeof(*s->groups), GFP_KERNEL);
	if (!s->chains || !s->groups) {
		kvfree(s->chains);
		kfree(s->groups);
		return -ENOMEM;
	}
	s->mask = nr - 1;
	s->nr_tasks = 0;
	s->unknown = 0;
	s->unmoved = false;
	s->stretch = 0;
	s->stretch_ns = 0;
	s->nr_groups = 0;
	s->exited = (struct pmuk_sched_totals){};
	return 0;
}

/* No tracepoint knows of us any more, and none is under way. */
void pmuk_sched_tasks_exit(void)
{
	struct pmuk_sched *s = &pmuk_sched;
	unsigned int i;

	for (i = 0; i <= s->mask; i++) {
		struct pmuk_sched_task *t = rcu_dereference_protected(s->chains[i], true), *next;

		for (; t; t = next) {
			next = rcu_dereference_protected(t->next, true);
			kfree(t);
		}
	}
	for (i = 0; i < PMUK_SCHED_GROUP_CHAINS; i++) {
		struct pmuk_sched_group *g = s->groups[i], *next;

		for (; g; g = next) {
			next = g->next;
			kfree(g);
		}
	}
	kvfree(s->chains);
	kfree(s->groups);
}

/* ---- thread groups; ->lock is held ---- */

/* By what its tasks share, which is no other's while any of them is there. */
static struct pmuk_sched_group **pmuk_sched_group_link(const struct task_struct *p)
{
	struct pmuk_sched_group **link =
		&pmuk_sched.groups[hash_ptr(p->signal, PMUK_SCHED_GROUP_BITS)];

	while (*link && (*link)->signal != p->signal)
		link = &(*link)->next;
	return link;
}

struct pmuk_sched_group *pmuk_sched_group_find(const struct task_struct *p)
{
	return *pmuk_sched_group_link(p);
}

/* The leader is in it from the second thread on. */
static void pmuk_sched_group_lead(struct pmuk_sched_group *g, struct task_struct *p)
{
	struct pmuk_sched_task *leader = pmuk_sched_find(p->group_leader);

	if (!leader)
		return;
	set_bit(PMUK_SCHED_GROUPED_BIT, &leader->key);
	g->threads++;
	pmuk_sched_touch_group(g);
	if (pmuk_sched.reading && !pmuk_sched_is_ahead(p->group_leader))
		pmuk_sched_add_task(&g->sum, leader);
}

static struct pmuk_sched_group *pmuk_sched_group_add(struct pmuk_sched_group **link,
						     struct task_struct *p)
{
	struct pmuk_sched_group *g = kzalloc(sizeof(*g), GFP_NOWAIT);

	if (!g) {
		WRITE_ONCE(pmuk_sched.unknown, pmuk_sched.unknown + 1);
		return NULL;
	}
	g->signal = p->signal;
	g->tgid = p->tgid;
	pmuk_sched.nr_groups++;
	*link = g;
	pmuk_sched_group_lead(g, p);
	return g;
}

static struct pmuk_sched_group *pmuk_sched_group_make(struct task_struct *p)
{
	struct pmuk_sched_group **link = pmuk_sched_group_link(p);

	return *link ?: pmuk_sched_group_add(link, p);
}

/* Some of its tasks may have been read already: its line is to have them. */
static void pmuk_sched_group_end(struct pmuk_sched_group *g)
{
	struct pmuk_sched_reading *r = pmuk_sched.reading;

	if (!r) {
		kfree(g);
		return;
	}
	g->next = r->dead_groups;
	r->dead_groups = g;
}

static void pmuk_sched_group_leave(const struct pmuk_sched_task *t, const struct task_struct *p)
{
	struct pmuk_sched_group **link = pmuk_sched_group_link(p), *g = *link;

	pmuk_sched_touch_group(g);
	pmuk_sched_add_task(&g->ended, t);
	if (pmuk_sched_is_ahead(p))
		pmuk_sched_add_task(&g->sum, t);
	if (--g->threads)
		return;
	pmuk_sched_add(&pmuk_sched.exited, &g->ended);
	pmuk_sched.nr_groups--;
	*link = g->next;
	pmuk_sched_group_end(g);
}

/* ---- tasks ---- */

static void pmuk_sched_join(struct pmuk_sched_task *t, struct task_struct *p)
{
	struct pmuk_sched_task __rcu **chain = &pmuk_sched.chains[pmuk_sched_chain(p)];
	struct pmuk_sched_group *g;

	t->key = (unsigned long)p;
	t->delay = pmuk_sched_delay(p);
	g = p->pid == p->tgid ? pmuk_sched_group_find(p) : pmuk_sched_group_make(p);
	if (g) {
		g->threads++;
		t->key |= BIT(PMUK_SCHED_GROUPED_BIT);
	}
	t->cgroup = pmuk_sched_cgroup_join(p);
	WRITE_ONCE(pmuk_sched.nr_tasks, pmuk_sched.nr_tasks + 1);
	RCU_INIT_POINTER(t->next, rcu_dereference_protected(*chain, true));
	rcu_assign_pointer(*chain, t);
}

/*
 * In RCU's care. Without memory for it, a task is a stray until there is. Who was found in the
 * middle of its fork was not in its cgroup yet.
 */
static void pmuk_sched_add_new(struct task_struct *p)
{
	struct pmuk_sched_task *t = kzalloc(pmuk_sched_task_size(), GFP_NOWAIT);

	scoped_guard(spinlock_irqsave, &pmuk_sched.lock) {
		if (pmuk_sched_find(p)) {
			pmuk_sched_cgroup_move(p);
		} else if (t) {
			pmuk_sched_join(t, p);
			return;
		}
	}
	kfree(t);
}

/* The probe of task_newtask: the child is in its cgroup, and has not run yet. */
void pmuk_sched_newtask(void *data, struct task_struct *p, u64 clone_flags)
{
	pmuk_sched_add_new(p);
}

/* Those that were there before, and strays. They are freed after this: it is in RCU's care. */
void pmuk_sched_tasks_seed(void)
{
	struct task_struct *g, *p;

	guard(rcu)();
	for_each_process_thread(g, p) {
		if (pid_alive(p))
			pmuk_sched_add_new(p);
	}
}

static struct pmuk_sched_task *pmuk_sched_unlink(const struct task_struct *p)
{
	struct pmuk_sched_task __rcu **link = &pmuk_sched.chains[pmuk_sched_chain(p)];
	struct pmuk_sched_task *t;

	while ((t = rcu_dereference_protected(*link, true))) {
		if (pmuk_sched_task_of(t) == p) {
			RCU_INIT_POINTER(*link, rcu_dereference_protected(t->next, true));
			return t;
		}
		link = &t->next;
	}
	return NULL;
}

static void pmuk_sched_leave(struct pmuk_sched_task *t, const struct task_struct *p)
{
	WRITE_ONCE(pmuk_sched.nr_tasks, pmuk_sched.nr_tasks - 1);
	pmuk_sched_cgroup_leave(t);
	if (test_bit(PMUK_SCHED_GROUPED_BIT, &t->key)) {
		pmuk_sched_group_leave(t, p);
		return;
	}
	pmuk_sched_add_task(&pmuk_sched.exited, t);
	if (pmuk_sched_is_ahead(p))
		pmuk_sched_add_task(&pmuk_sched.reading->exited, t);
}

/* The probe of sched_process_free: the task has had its last switch. */
void pmuk_sched_free(void *data, struct task_struct *p)
{
	struct pmuk_sched_task *t;

	scoped_guard(spinlock_irqsave, &pmuk_sched.lock) {
		t = pmuk_sched_unlink(p);
		if (t)
			pmuk_sched_leave(t, p);
	}
	if (t)
		kfree_rcu(t, rcu);
}
