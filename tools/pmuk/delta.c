// SPDX-License-Identifier: GPL-2.0
/*
 * Computes the difference of two readings. A task may be in both readings, new, or new with the
 * PID of a task that has ended. No value is scaled or guessed: unknown values stay NONE.
 */
#include <stdlib.h>
#include <string.h>

#include "pmuk.h"

bool same_counting(const struct reading *before, const struct reading *now)
{
	return before && before->on && before->since == now->since &&
	       before->nr_events == now->nr_events &&
	       !memcmp(before->events, now->events, sizeof(now->events));
}

/*
 * Entries of different kinds may have the same number, so a key has both. The largest numbers are
 * those of cgroups, inode numbers far below 2^60.
 */
static u64 key_of(const struct entry *e)
{
	return (u64)e->kind << 60 | e->id;
}

static void index_entries(struct map *m, const struct reading *r)
{
	size_t i;

	for (i = 0; i < r->nr; i++)
		*map_at(m, key_of(&r->entries[i])) = i;
}

static u64 tgid_of(const struct entry *e)
{
	return e->kind == TASK ? e->parent : e->id;
}

static bool went_down(u64 before, u64 now)
{
	return before != NONE && now != NONE && now < before;
}

/* A task has 32 bits for each of these. When they wrap, sums over tasks drop by 2^32. */
static u64 left_since(u64 before, u64 now)
{
	return now >= before ? now - before : (u32)(now - before);
}

/* Totals only grow. If one has shrunk, the number belongs to another task now. */
static bool continues(const struct entry *before, const struct entry *now)
{
	const struct totals *b = &before->t, *n = &now->t;
	bool down = went_down(b->run, n->run) || went_down(b->wait, n->wait);
	int i;

	for (i = 0; i < NR_LEFT; i++)
		down |= went_down(b->left[i], n->left[i]) &&
			left_since(b->left[i], n->left[i]) > INT32_MAX;
	for (i = 0; i < MAX_EVENTS; i++)
		down |= went_down(b->counts[i], n->counts[i]);
	if (before->kind == TASK && before->parent != tgid_of(now))
		return false;
	return !down;
}

static u64 minus(u64 now, u64 before)
{
	return now == NONE || before == NONE ? NONE : now - before;
}

static struct totals difference(const struct totals *now, const struct totals *before)
{
	struct totals d = *now;
	int i;

	d.run = minus(now->run, before->run);
	d.wait = minus(now->wait, before->wait);
	for (i = 0; i < NR_LEFT; i++)
		d.left[i] = left_since(before->left[i], now->left[i]);
	for (i = 0; i < MAX_EVENTS; i++)
		d.counts[i] = minus(now->counts[i], before->counts[i]);
	return d;
}

static u64 plus(u64 a, u64 b)
{
	return a == NONE || b == NONE ? NONE : a + b;
}

void totals_add(struct totals *sum, const struct totals *t)
{
	int i;

	sum->run = plus(sum->run, t->run);
	sum->wait = plus(sum->wait, t->wait);
	for (i = 0; i < NR_LEFT; i++)
		sum->left[i] = plus(sum->left[i], t->left[i]);
	for (i = 0; i < MAX_EVENTS; i++)
		sum->counts[i] = plus(sum->counts[i], t->counts[i]);
	sum->valid &= t->valid;
}

struct pair {
	const struct reading *before, *now;	/* @before may be NULL */
	struct map old, new;			/* from keys to indices of entries */
};

static const struct entry *earlier(const struct pair *p, const struct entry *e)
{
	struct entry alone = { .kind = TASK, .id = e->id };
	size_t i = map_find(&p->old, key_of(e));

	if (i == MAP_NONE && e->kind == GROUP)
		i = map_find(&p->old, key_of(&alone));
	if (i == MAP_NONE || !continues(&p->before->entries[i], e))
		return NULL;
	return &p->before->entries[i];
}

static const struct entry *companion(const struct pair *p, enum kind kind, u64 id)
{
	struct entry wanted = { .kind = kind, .id = id };
	size_t i = map_find(&p->new, key_of(&wanted));

	return i == MAP_NONE ? NULL : &p->now->entries[i];
}

/* The kernel gives this time since boot, so only two readings give a time; 0 means unknown. */
static u64 irq_time(const struct pair *p, u64 cpu)
{
	const struct entry *now = companion(p, IRQ, cpu), *before;
	u64 sum, then;

	before = now && p->before ? earlier(p, now) : NULL;
	if (!before)
		return NONE;
	sum = now->hard + now->soft;
	then = before->hard + before->soft;
	return sum && sum >= then ? sum - then : NONE;
}

static u64 idle_time(const struct pair *p, u64 cpu)
{
	const struct entry *now = companion(p, IDLE, cpu), *before;

	if (!now)
		return NONE;
	before = p->before ? earlier(p, now) : NULL;
	return now->t.run - (before ? before->t.run : 0);
}

static void rest_times(const struct pair *p, u64 cpu, u64 rest[NR_REST])
{
	const struct entry *now = companion(p, REST, cpu), *before;
	int i;

	before = now && p->before ? earlier(p, now) : NULL;
	for (i = 0; i < NR_REST; i++)
		rest[i] = now ? now->rest[i] - (before ? before->rest[i] : 0) : NONE;
}

static void add_row(struct delta *d, const struct pair *p, const struct entry *e)
{
	const struct entry *before = p->before ? earlier(p, e) : NULL;
	struct row *row;

	d->rows = grow(d->rows, d->nr, &d->room, sizeof(*d->rows));
	row = &d->rows[d->nr++];
	*row = (struct row) { .entry = e, .idle = NONE, .irq = NONE };
	row->d = before ? difference(&e->t, &before->t) : e->t;
	if (e->kind == CPU) {
		row->idle = idle_time(p, e->id);
		row->irq = irq_time(p, e->id);
		rest_times(p, e->id, row->rest);
	}
}

/* The kernel lists no group for a process of one task: the task's line stands for the process. */
static bool belongs(const struct map *index, enum view view, const struct entry *e)
{
	static const enum kind kinds[NR_VIEWS] = { TASK, GROUP, CGROUP, SUBTREE, CPU };
	struct entry group = { .kind = GROUP, .id = e->parent };

	if (view == GROUPS && e->kind == TASK)
		return map_find(index, key_of(&group)) == MAP_NONE;
	return e->kind == kinds[view];
}

static bool is_selected(const struct selection *only, const struct entry *e)
{
	size_t i;

	for (i = 0; i < only->nr; i++)
		if (only->ids[i] == e->id || (e->kind == TASK && only->ids[i] == e->parent))
			return true;
	return !only->nr || (e->kind != TASK && e->kind != GROUP);
}

static size_t count_gone(const struct pair *p, enum view view, const struct selection *only)
{
	size_t i, n = 0;

	for (i = 0; p->before && i < p->before->nr; i++) {
		const struct entry *e = &p->before->entries[i];

		n += belongs(&p->old, view, e) && is_selected(only, e) &&
		     map_find(&p->new, key_of(e)) == MAP_NONE;
	}
	return n;
}

void delta_make(struct delta *d, enum view view, const struct selection *only,
		const struct reading *before, const struct reading *now)
{
	struct pair p = { .now = now };
	size_t i;

	*d = (struct delta) { .total = !same_counting(before, now) };
	d->interval = now->timestamp - (d->total ? now->since : before->timestamp);
	index_entries(&p.new, now);
	if (!d->total) {
		p.before = before;
		index_entries(&p.old, before);
	}
	for (i = 0; i < now->nr; i++)
		if (belongs(&p.new, view, &now->entries[i]) && is_selected(only, &now->entries[i]))
			add_row(d, &p, &now->entries[i]);
	d->gone = count_gone(&p, view, only);
	map_free(&p.old);
	map_free(&p.new);
}

void delta_free(struct delta *d)
{
	free(d->rows);
	*d = (struct delta) {};
}
