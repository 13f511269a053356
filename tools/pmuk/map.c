// SPDX-License-Identifier: GPL-2.0
/*
 * A hash table from numbers to numbers. At most half of its slots are used, and no key is removed.
 */
#include <stdlib.h>

#include "pmuk.h"

static struct slot *slot_of(const struct map *m, u64 key)
{
	size_t i = (key * 0x9e3779b97f4a7c15ULL >> 32) & (m->room - 1);

	while (m->slots[i].value != MAP_NONE && m->slots[i].key != key)
		i = (i + 1) & (m->room - 1);
	return &m->slots[i];
}

static void make_room(struct map *m)
{
	struct map larger = { .nr = m->nr, .room = m->room ? 2 * m->room : 64 };
	size_t i;

	larger.slots = zalloc(larger.room * sizeof(*larger.slots));
	for (i = 0; i < larger.room; i++)
		larger.slots[i].value = MAP_NONE;
	for (i = 0; i < m->room; i++)
		if (m->slots[i].value != MAP_NONE)
			*slot_of(&larger, m->slots[i].key) = m->slots[i];
	free(m->slots);
	*m = larger;
}

size_t *map_at(struct map *m, u64 key)
{
	struct slot *s;

	if (2 * (m->nr + 1) > m->room)
		make_room(m);
	s = slot_of(m, key);
	if (s->value == MAP_NONE) {
		s->key = key;
		m->nr++;
	}
	return &s->value;
}

size_t map_find(const struct map *m, u64 key)
{
	return m->room ? slot_of(m, key)->value : MAP_NONE;
}

void map_free(struct map *m)
{
	free(m->slots);
	*m = (struct map) {};
}
