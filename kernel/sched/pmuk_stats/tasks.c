// SPDX-License-Identifier: GPL-2.0
/*
 * The entries of tasks. An entry lives from the task's fork until sched_process_free, which comes
 * after its last switch. Then the totals of the entry are added to the process if that has a group,
 * else to those of all exited tasks. The totals of a group follow when its last thread has gone.
 */
#include <linux/hash.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/switch_hook.h>
#include <linux/slab.h>

#include "stats.h"

size_t pmuk_sched_task_size(void)
{
	return sizeof(struct pmuk_sched_task) + pmuk_sched.nr * sizeof(u64);
}

/*
 * Returns the number of chains: one for each 256 KiB of memory, 1024 to 65536 in all. A busy
 * machine has about as many tasks.
 */
static u32 pmuk_sched_chains(void)
{
	u64 nr = (u64)totalram_pages() * PAGE_SIZE / SZ_256K;

	return roundup_pow_of_two(clamp_t(u64, nr, 1024, 65536));
}

int pmuk_sched_tasks_init(void)
{
	struct pmuk_sched *s = &pmuk_sched;
	struct pmuk_sched_group **groups;
	u32 nr = pmuk_sched_chains();

	s->chains = kvcalloc(nr, sizeof(*s->chains), GFP_KERNEL);
	groups = kcalloc(PMUK_SCHED_GROUP_CHAINS, sizeof(*groups), GFP_KERNEL);
	if (!s->chains || !groups) {
		kvfree(s->chains);
		kfree(groups);
		return -ENOMEM;
	}
	guard(spinlock_irqsave)(&s->lock);
	s->groups = groups;
	s->mask = nr - 1;
	s->nr_tasks = 0;
	s->shown = false;
	s->unknown = 0;
	s->move_pending = false;
	s->stretch = 0;
	s->stretch_ns = 0;
	s->nr_groups = 0;
	s->exited = (struct pmuk_sched_totals){};
	return 0;
}

/* Frees all entries: no probe is registered or still running, and no task points to its entry. */
void pmuk_sched_tasks_exit(void)
{
	struct pmuk_sched *s = &pmuk_sched;
	/* No other code uses the tables. */
	struct pmuk_sched_group **groups = context_unsafe(s->groups);
	unsigned int i;

	for (i = 0; i <= s->mask; i++) {
		struct pmuk_sched_task *t = rcu_dereference_protected(s->chains[i], true), *next;

		for (; t; t = next) {
			next = rcu_dereference_protected(t->next, true);
			kfree(t);
		}
	}
	for (i = 0; i < PMUK_SCHED_GROUP_CHAINS; i++) {
		struct pmuk_sched_group *g = groups[i], *next;

		for (; g; g = next) {
			next = g->next;
			kfree(g);
		}
	}
	kvfree(s->chains);
	kfree(groups);
}

/* ---- thread groups ---- */

/* The signal_struct identifies a process: all its threads share it, and keep it. */
static struct pmuk_sched_group **pmuk_sched_group_link(const struct task_struct *p)
	__must_hold(&pmuk_sched.lock)
{
	struct pmuk_sched_group **link =
		&pmuk_sched.groups[hash_ptr(p->signal, PMUK_SCHED_GROUP_BITS)];

	while (*link && (*link)->signal != p->signal)
		link = &(*link)->next;
	return link;
}

struct pmuk_sched_group *pmuk_sched_group_find(const struct task_struct *p)
	__must_hold(&pmuk_sched.lock)
{
	return *pmuk_sched_group_link(p);
}

/* A process gets a group with its second thread. Then the leader joins the group, too. */
static void pmuk_sched_group_add_leader(struct pmuk_sched_group *g, struct task_struct *p)
	__must_hold(&pmuk_sched.lock)
{
	struct pmuk_sched_task *leader = pmuk_sched_find(p->group_leader);

	if (!leader)
		return;
	set_bit(PMUK_SCHED_GROUPED_BIT, &leader->key);
	g->threads++;
	pmuk_sched_touch_group(g);
	if (pmuk_sched.reading && !pmuk_sched_is_ahead(p->group_leader)) {
		pmuk_sched_add_task(&g->sum, leader);
		g->shown = true;
	}
}

static struct pmuk_sched_group *pmuk_sched_group_add(struct pmuk_sched_group **link,
						     struct task_struct *p)
	__must_hold(&pmuk_sched.lock)
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
	pmuk_sched_group_add_leader(g, p);
	return g;
}

static struct pmuk_sched_group *pmuk_sched_group_make(struct task_struct *p)
	__must_hold(&pmuk_sched.lock)
{
	struct pmuk_sched_group **link = pmuk_sched_group_link(p);

	return *link ?: pmuk_sched_group_add(link, p);
}

/* A reading may already have seen some threads of @g: keep @g until the reading has copied it. */
static void pmuk_sched_group_end(struct pmuk_sched_group *g) __must_hold(&pmuk_sched.lock)
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
	__must_hold(&pmuk_sched.lock)
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

/* Switches find the entry by the task's own pointer with the hook, and without it in its chain. */
static void pmuk_sched_show(struct pmuk_sched_task *t, struct task_struct *p)
	__must_hold(&pmuk_sched.lock)
{
	if (pmuk_sched.shown)
		sched_switch_set_data(p, t);
}

static void pmuk_sched_join(struct pmuk_sched_task *t, struct task_struct *p)
	__must_hold(&pmuk_sched.lock)
{
	struct pmuk_sched_task __rcu **chain = &pmuk_sched.chains[pmuk_sched_chain(p)];
	struct pmuk_sched_group *g;

	t->key = (unsigned long)p;
	t->delay = pmuk_sched_first_delay(p);
	g = p->pid == p->tgid ? pmuk_sched_group_find(p) : pmuk_sched_group_make(p);
	if (g) {
		g->threads++;
		t->key |= BIT(PMUK_SCHED_GROUPED_BIT);
	}
	t->cgroup = pmuk_sched_cgroup_join(p);
	WRITE_ONCE(pmuk_sched.nr_tasks, pmuk_sched.nr_tasks + 1);
	RCU_INIT_POINTER(t->next, rcu_dereference_protected(*chain, true));
	rcu_assign_pointer(*chain, t);
	pmuk_sched_show(t, p);
}

/*
 * Makes an entry for @p, which RCU keeps. Without memory for an entry, the slices of @p go to the
 * CPU's stray entry, until pmuk_sched_tasks_seed() is called again. If there is an entry, the seed
 * may have found @p in the middle of its fork, when @p was not in its cgroup yet: so check the
 * cgroup again.
 */
static void pmuk_sched_add_new(struct task_struct *p)
{
	struct pmuk_sched_task *t = kzalloc(pmuk_sched_task_size(), GFP_NOWAIT), *old;

	scoped_guard(spinlock_irqsave, &pmuk_sched.lock) {
		old = pmuk_sched_find(p);
		if (old) {
			pmuk_sched_show(old, p);
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

/*
 * Makes entries for the tasks that exist when accounting begins, and later for those that got no
 * memory then. A task that is found here has not passed sched_process_free yet, as that comes from
 * an RCU callback.
 */
void pmuk_sched_tasks_seed(void)
{
	struct task_struct *g, *p;

	scoped_guard(spinlock_irqsave, &pmuk_sched.lock)
		pmuk_sched.shown = true;
	guard(rcu)();
	for_each_process_thread(g, p) {
		if (pid_alive(p))
			pmuk_sched_add_new(p);
	}
}

/*
 * Clears the pointers of tasks to their entries, and lets nobody set new ones. The probes are still
 * registered: before a task is freed, pmuk_sched_free() takes ->lock and unlinks the task's entry.
 * Therefore, under ->lock, the task of each entry in a chain exists.
 */
void pmuk_sched_tasks_hide(void)
{
	struct pmuk_sched *s = &pmuk_sched;
	struct pmuk_sched_task *t;
	unsigned int i;

	scoped_guard(spinlock_irqsave, &s->lock)
		s->shown = false;
	for (i = 0; i <= s->mask; i++) {
		guard(spinlock_irqsave)(&s->lock);
		for (t = rcu_dereference_protected(s->chains[i], true); t;
		     t = rcu_dereference_protected(t->next, true))
			sched_switch_set_data(pmuk_sched_task_of(t), NULL);
	}
}

static struct pmuk_sched_task *pmuk_sched_unlink(const struct task_struct *p)
	__must_hold(&pmuk_sched.lock)
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
	__must_hold(&pmuk_sched.lock)
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
