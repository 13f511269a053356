// SPDX-License-Identifier: GPL-2.0
/*
 * The tests read samples back from a buffer, by a parser of the documented layout: each field alone
 * and with others, the other counters of a group, and whose record it is.
 */
#include <linux/prandom.h>
#include <linux/sched/clock.h>

#include "pmuk_given.h"
#include "pmuk_parse.h"
#include "pmuk_suite.h"
#include "pmuk_test.h"

#define PERIOD	1000
#define COOKIE	0x1122334455667788ULL

static const u64 all_fields[] = {
	PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_IP, PERF_SAMPLE_TID, PERF_SAMPLE_TIME,
	PERF_SAMPLE_ADDR, PERF_SAMPLE_ID, PERF_SAMPLE_STREAM_ID, PERF_SAMPLE_CPU,
	PERF_SAMPLE_PERIOD, PERF_SAMPLE_READ, PERF_SAMPLE_CALLCHAIN, PERF_SAMPLE_RAW,
	PERF_SAMPLE_WEIGHT, PERF_SAMPLE_BRANCH_STACK, PERF_SAMPLE_DATA_SRC,
	PERF_SAMPLE_TRANSACTION, PERF_SAMPLE_PHYS_ADDR, PMUK_SAMPLE_COOKIE,
};

/* A counter of event 0 that writes records, and the values that its next record should have. */
struct sampler {
	struct kunit *test;
	struct pmuk_sim *sim;
	struct pmuk_buffer *b;
	struct pmuk_attr attr;
	struct pmuk_counter *c;
	int cpu;
	const struct perf_event_header *record;	/* latest parsed record */

	u64 overflows;		/* calls of the callback */
	struct pmuk_sample told;	/* latest sample of the callback */
	u64 total;		/* events since the counter was created */
	u64 before, after;	/* times around the latest overflow */
	u64 peers[PMUK_PEERS_MAX];	/* values for the next record */
	u64 caller;		/* an address in the overflow's callchain */
};

static void note_overflow(struct pmuk_counter *c, const struct pmuk_sample *sample, void *data)
{
	struct sampler *s = data;

	s->overflows++;
	s->told = *sample;
}

static struct pmuk_buffer *format_buffer(struct kunit *test, unsigned int nr_pages, int cpu)
{
	return pmuk_test_new_buffer(test, &(struct pmuk_buffer_attr){ .nr_pages = nr_pages }, cpu);
}

static struct sampler *new_sampler_on(struct kunit *test, const struct pmuk_sim_config *config)
{
	struct sampler *s = pmuk_test_zalloc(test, sizeof(*s));

	s->test = test;
	s->sim = pmuk_test_sim_config(test, config);
	s->cpu = pmuk_test_pin_first(test);
	s->b = format_buffer(test, 1, s->cpu);
	s->attr = (struct pmuk_attr){
		.type = pmuk_sim_type(s->sim), .period = PERIOD, .flags = PMUK_NO_THROTTLE,
		.overflow = note_overflow, .data = s, .buffer = s->b, .cookie = COOKIE,
	};
	return s;
}

static struct sampler *new_sampler(struct kunit *test)
{
	static const struct pmuk_sim_config config = {
		.name = "pmuk_sim", .nr_counters = PMUK_SIM_COUNTERS, .width = 32,
		.fill = pmuk_given_fill,
	};

	return new_sampler_on(test, &config);
}

/* The PMU is one for the whole machine, not one for each CPU. */
static struct sampler *new_uncore_sampler(struct kunit *test)
{
	static const struct pmuk_sim_config config = {
		.name = "pmuk_uncore", .nr_counters = 1, .width = 32, .uncore = true,
	};

	return new_sampler_on(test, &config);
}

static void start(struct sampler *s)
{
	s->attr.branch_sample_type = s->attr.sample_type & PERF_SAMPLE_BRANCH_STACK ?
				     PERF_SAMPLE_BRANCH_ANY : 0;
	s->c = pmuk_test_enabled(s->test, &s->attr, s->cpu, NULL);
	s->total = 0;
}

static void stop(struct sampler *s)
{
	kunit_release_action(s->test, pmuk_test_put_counter, s->c);
}

static noinline void overflow_once(struct sampler *s)
{
	u64 overflows = s->overflows;

	s->caller = (unsigned long)__builtin_return_address(0);
	s->before = local_clock();
	s->total += pmuk_sim_count(s->sim, 0, PERIOD);
	s->after = local_clock();
	KUNIT_EXPECT_EQ(s->test, s->overflows, overflows + 1);
}

/* If samples have the field @bit, expects its value to be @wanted. */
static void check_field(struct sampler *s, u64 bit, const char *name, u64 value, u64 wanted)
{
	if (s->attr.sample_type & bit)
		KUNIT_EXPECT_EQ_MSG(s->test, value, wanted, "%s", name);
}

static void check_whose(struct sampler *s, const struct pmuk_parsed *p)
{
	u64 id = pmuk_counter_id(s->c);

	KUNIT_EXPECT_NE(s->test, id, 0);
	check_field(s, PERF_SAMPLE_IDENTIFIER, "identifier", p->identifier, id);
	check_field(s, PERF_SAMPLE_ID, "id", p->id, id);
	check_field(s, PERF_SAMPLE_STREAM_ID, "stream_id", p->stream_id, id);
}

static void check_where(struct sampler *s, const struct pmuk_parsed *p)
{
	KUNIT_EXPECT_EQ(s->test, p->misc, PERF_RECORD_MISC_KERNEL);
	check_field(s, PERF_SAMPLE_IP, "ip", p->ip, s->told.ip);
	check_field(s, PERF_SAMPLE_IP, "ip != 0", p->ip != 0, true);
	check_field(s, PERF_SAMPLE_TID, "pid", p->pid, task_tgid_nr(current));
	check_field(s, PERF_SAMPLE_TID, "tid", p->tid, task_pid_nr(current));
	check_field(s, PERF_SAMPLE_CPU, "cpu", p->cpu, s->cpu);
	check_field(s, PERF_SAMPLE_CPU, "cpu_reserved", p->cpu_reserved, 0);
	check_field(s, PERF_SAMPLE_TIME, "time", p->time, s->told.time);
	if (s->attr.sample_type & PERF_SAMPLE_TIME) {
		KUNIT_EXPECT_GE(s->test, p->time, s->before);
		KUNIT_EXPECT_LE(s->test, p->time, s->after);
	}
}

static void check_branches(struct sampler *s, const struct pmuk_parsed *p)
{
	if (!(s->attr.sample_type & PERF_SAMPLE_BRANCH_STACK))
		return;
	KUNIT_ASSERT_EQ(s->test, p->nr_branches, PMUK_GIVEN_BRANCHES);
	KUNIT_EXPECT_MEMEQ(s->test, p->branches, pmuk_given_branches.entries,
			   sizeof(pmuk_given_branches.entries));
}

static void check_what(struct sampler *s, const struct pmuk_parsed *p)
{
	static const u8 nothing[4];

	check_field(s, PERF_SAMPLE_ADDR, "addr", p->addr, PMUK_GIVEN_ADDR);
	check_field(s, PERF_SAMPLE_PERIOD, "period", p->period, PERIOD);
	check_field(s, PERF_SAMPLE_WEIGHT, "weight", p->weight, PMUK_GIVEN_WEIGHT);
	check_field(s, PERF_SAMPLE_DATA_SRC, "data_src", p->data_src, PMUK_GIVEN_DATA_SRC);
	check_field(s, PERF_SAMPLE_TRANSACTION, "txn", p->txn, PMUK_GIVEN_TXN);
	check_field(s, PERF_SAMPLE_PHYS_ADDR, "phys", p->phys_addr, PMUK_GIVEN_PHYS_ADDR);
	check_branches(s, p);
	check_field(s, PMUK_SAMPLE_COOKIE, "cookie", p->cookie, s->attr.cookie);
	if (s->attr.sample_type & PERF_SAMPLE_RAW) {
		KUNIT_ASSERT_EQ(s->test, p->raw_size, sizeof(nothing));
		KUNIT_EXPECT_MEMEQ(s->test, p->raw, nothing, sizeof(nothing));
	}
}

static void check_read(struct sampler *s, const struct pmuk_parsed *p)
{
	u64 format = s->attr.read_format;
	unsigned int i;

	if (!(s->attr.sample_type & PERF_SAMPLE_READ))
		return;
	KUNIT_ASSERT_EQ(s->test, p->nr, 1 + s->attr.nr_peers);
	KUNIT_EXPECT_EQ(s->test, p->values[0], s->total);
	if (format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		KUNIT_EXPECT_EQ(s->test, p->enabled, s->told.value.time_enabled);
	if (format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		KUNIT_EXPECT_EQ(s->test, p->running, s->told.value.time_running);
	if (format & PERF_FORMAT_ID)
		KUNIT_EXPECT_EQ(s->test, p->ids[0], pmuk_counter_id(s->c));
	for (i = 0; i < s->attr.nr_peers; i++)
		KUNIT_EXPECT_EQ_MSG(s->test, p->values[1 + i], s->peers[i], "peer %u", i);
}

/* The callchain begins where the overflow interrupted, and contains its caller. */
static void check_callchain(struct sampler *s, const struct pmuk_parsed *p)
{
	unsigned int i, found = 0;

	if (!(s->attr.sample_type & PERF_SAMPLE_CALLCHAIN))
		return;
	KUNIT_ASSERT_GE(s->test, p->nr_ips, 2);
	KUNIT_EXPECT_EQ(s->test, p->ips[0], PERF_CONTEXT_KERNEL);
	KUNIT_EXPECT_EQ(s->test, p->ips[1], s->told.ip);
	for (i = 2; i < p->nr_ips; i++)
		found += p->ips[i] == s->caller;
	KUNIT_EXPECT_EQ(s->test, found, 1);
}

static void parse(struct sampler *s, const struct perf_event_header *rec, struct pmuk_parsed *p)
{
	KUNIT_ASSERT_EQ_MSG(s->test, pmuk_parse_sample(rec, s->attr.sample_type,
						       s->attr.read_format, p), 0,
			    "sample_type %#llx, read_format %#llx", s->attr.sample_type,
			    s->attr.read_format);
}

/*
 * Returns the only record. The record stays valid, as nothing is written before the next overflow.
 */
static const struct perf_event_header *only_record(struct sampler *s)
{
	const struct perf_event_header *rec;
	struct pmuk_reader r;

	KUNIT_ASSERT_EQ(s->test, pmuk_buffer_claim(s->b, &r), 0);
	rec = pmuk_buffer_peek(&r);
	KUNIT_ASSERT_NOT_NULL(s->test, rec);
	KUNIT_EXPECT_NULL(s->test, pmuk_buffer_next(&r));
	pmuk_buffer_release(&r);
	return rec;
}

/* Parses the only record. */
static struct pmuk_parsed parse_one(struct sampler *s)
{
	struct pmuk_parsed p;

	s->record = only_record(s);
	parse(s, s->record, &p);
	return p;
}

/* Checks that there is exactly one record, with the right values. */
static void check_one(struct sampler *s)
{
	struct pmuk_parsed p = parse_one(s);

	check_whose(s, &p);
	check_where(s, &p);
	check_what(s, &p);
	check_read(s, &p);
	check_callchain(s, &p);
}

/* Lets an overflow happen, and checks its record. */
static void check_overflow(struct sampler *s)
{
	overflow_once(s);
	check_one(s);
}

static void check_some(struct sampler *s)
{
	unsigned int i;

	start(s);
	for (i = 0; i < 5; i++)
		check_overflow(s);
	stop(s);
}

static void each_field_alone(struct kunit *test)
{
	struct sampler *s = new_sampler(test);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(all_fields); i++) {
		s->attr.sample_type = all_fields[i];
		check_some(s);
	}
	KUNIT_EXPECT_EQ(test, s->overflows, 5 * ARRAY_SIZE(all_fields));
}

static u64 any_field(void)
{
	u64 fields = 0;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(all_fields); i++)
		fields |= all_fields[i];
	return fields;
}

static u64 random_fields(struct rnd_state *rnd)
{
	u64 fields = 0;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(all_fields); i++)
		fields |= prandom_u32_state(rnd) % 2 ? all_fields[i] : 0;
	return fields ?: PERF_SAMPLE_IP;
}

static u64 random_format(struct rnd_state *rnd)
{
	return prandom_u32_state(rnd) & (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_GROUP |
					 PERF_FORMAT_TOTAL_TIME_RUNNING | PERF_FORMAT_ID);
}

static void fields_in_any_combination(struct kunit *test)
{
	struct sampler *s = new_sampler(test);
	struct rnd_state rnd;
	unsigned int i;

	prandom_seed_state(&rnd, 1);
	for (i = 0; i < 150; i++) {
		s->attr.sample_type = random_fields(&rnd);
		s->attr.read_format = random_format(&rnd);
		check_some(s);
	}
	s->attr.sample_type = any_field();
	check_some(s);
	KUNIT_EXPECT_EQ(test, s->overflows, 151 * 5);
}

/*
 * Raw data are a size and as many bytes, as perf core writes them. Zeroes fill them up to a
 * multiple of 8. perf's decoders take the first byte for the PMU's first.
 */
static void raw_data_are_where_perf_has_them(struct kunit *test)
{
	static const u8 wanted[] = { 1, 2, 3, 4, 5, 11, 12, 13, 14, 15, 16, 0 };
	static struct perf_raw_frag second = { .data = (void *)(wanted + 5), .size = 6 };
	static const struct perf_raw_record raw = {
		.frag = { .next = &second, .data = (void *)wanted, .size = 5 }, .size = 11,
	};
	static const struct pmuk_sim_config config = {
		.name = "pmuk_raw", .nr_counters = 1, .width = 32,
		.weight = PMUK_GIVEN_WEIGHT, .raw = &raw,
	};
	struct sampler *s = new_sampler_on(test, &config);
	struct pmuk_parsed p;

	s->attr.sample_type = PERF_SAMPLE_RAW | PERF_SAMPLE_WEIGHT | PMUK_SAMPLE_COOKIE;
	start(s);
	overflow_once(s);
	p = parse_one(s);
	KUNIT_ASSERT_EQ(test, p.raw_size, sizeof(wanted));
	KUNIT_EXPECT_MEMEQ(test, p.raw, wanted, sizeof(wanted));
	KUNIT_EXPECT_EQ(test, p.weight, PMUK_GIVEN_WEIGHT);
	KUNIT_EXPECT_EQ(test, p.cookie, COOKIE);
}

/* A sample without fields is a header, padded to the smallest record. */
static void no_field_at_all(struct kunit *test)
{
	struct sampler *s = new_sampler(test);
	const struct perf_event_header *rec;

	start(s);
	overflow_once(s);
	rec = only_record(s);
	KUNIT_EXPECT_EQ(test, rec->type, PERF_RECORD_SAMPLE);
	KUNIT_EXPECT_EQ(test, rec->size, PMUK_RECORD_MIN);
}

#define NR_PEERS	3

/* Creates counters of events 1 … NR_PEERS, and names them as the sampler's peers. */
static void new_peers(struct sampler *s, struct pmuk_counter **peers)
{
	unsigned int i;

	for (i = 0; i < NR_PEERS; i++) {
		const struct pmuk_attr attr = { .type = s->attr.type, .config = 1 + i };

		peers[i] = pmuk_test_enabled(s->test, &attr, s->cpu, NULL);
	}
	s->attr.sample_type = PERF_SAMPLE_READ | PERF_SAMPLE_IDENTIFIER;
	s->attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID;
	s->attr.peers = peers;
	s->attr.nr_peers = NR_PEERS;
}

/* Lets events of the peers happen. */
static void peers_count(struct sampler *s, u64 n)
{
	unsigned int i;

	for (i = 0; i < NR_PEERS; i++)
		s->peers[i] += pmuk_sim_count(s->sim, 1 + i, n * (i + 1));
}

/* The peers' values are exact at each overflow, whatever read_format says. */
static void group_has_its_peers(struct kunit *test)
{
	struct pmuk_counter *peers[NR_PEERS];
	struct sampler *s = new_sampler(test);
	struct rnd_state rnd;
	unsigned int i, j;

	prandom_seed_state(&rnd, 2);
	new_peers(s, peers);
	for (i = 0; i < 40; i++) {
		s->attr.sample_type = random_fields(&rnd) | PERF_SAMPLE_READ;
		s->attr.read_format = random_format(&rnd) | PERF_FORMAT_GROUP;
		start(s);
		for (j = 0; j < 5; j++) {
			peers_count(s, 100 * i + j);
			check_overflow(s);
		}
		stop(s);
	}
	KUNIT_EXPECT_GT(test, s->peers[NR_PEERS - 1], 0);
}

/* Each value in a group comes with its own counter's id. */
static void group_tells_its_members_apart(struct kunit *test)
{
	struct pmuk_counter *peers[NR_PEERS];
	struct sampler *s = new_sampler(test);
	struct pmuk_parsed p;
	unsigned int i;

	new_peers(s, peers);
	start(s);
	overflow_once(s);
	p = parse_one(s);
	for (i = 0; i < NR_PEERS; i++) {
		KUNIT_EXPECT_EQ(test, p.ids[1 + i], pmuk_counter_id(peers[i]));
		KUNIT_EXPECT_NE(test, p.ids[1 + i], p.ids[i]);
	}
}

/* A peer that is off the PMU, or is destroyed, keeps its latest value. */
static void peer_keeps_its_last_value(struct kunit *test)
{
	struct pmuk_counter *peers[NR_PEERS];
	struct sampler *s = new_sampler(test);

	new_peers(s, peers);
	start(s);
	peers_count(s, 10);
	check_overflow(s);

	peers_count(s, 100);
	KUNIT_EXPECT_EQ(test, pmuk_counter_disable(peers[0]), 0);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(s->sim, 1, 5), 0);
	check_overflow(s);

	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(peers[0]), 0);
	peers_count(s, 1000);
	kunit_release_action(test, pmuk_test_put_counter, peers[1]);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(s->sim, 2, 5), 0);
	check_overflow(s);

	peers_count(s, 10000);
	kunit_release_action(test, pmuk_test_put_counter, peers[0]);
	kunit_release_action(test, pmuk_test_put_counter, peers[2]);
	check_overflow(s);
	KUNIT_EXPECT_EQ(test, pmuk_nr_counters(), 1 + NR_PEERS);
	stop(s);
	KUNIT_EXPECT_EQ(test, pmuk_nr_counters(), 0);
}

/* Two counters write one buffer in turns. Each record has its own counter's id and values. */
static void counters_share_a_buffer(struct kunit *test)
{
	struct sampler *a = new_sampler(test), *b = pmuk_test_zalloc(test, sizeof(*b));
	unsigned int i;

	a->attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_READ | PMUK_SAMPLE_COOKIE;
	*b = *a;
	b->attr.data = b;
	b->attr.config = 1;
	b->attr.cookie = ~COOKIE;
	start(a);
	start(b);
	KUNIT_EXPECT_NE(test, pmuk_counter_id(a->c), pmuk_counter_id(b->c));
	for (i = 0; i < 20; i++) {
		check_overflow(a);
		b->total += pmuk_sim_count(b->sim, 1, PERIOD);
		check_one(b);
	}
	KUNIT_EXPECT_EQ(test, b->overflows, 20);
}

/* Each overflow makes a callback, and a record or a counted loss. */
static void callback_and_buffer_agree(struct kunit *test)
{
	struct sampler *s = new_sampler(test);
	const struct perf_event_header *rec;
	u64 records = 0, lost = 0, last = 0;
	struct pmuk_parsed p;
	struct pmuk_reader r;
	unsigned int i;

	s->attr.sample_type = PERF_SAMPLE_READ | PERF_SAMPLE_IDENTIFIER;
	start(s);
	for (i = 1; i <= 50; i++) {
		pmuk_sim_count(s->sim, 0, PERIOD * 11 * i);
		KUNIT_ASSERT_EQ(test, pmuk_buffer_claim(s->b, &r), 0);
		pmuk_for_each_record(rec, &r) {
			if (rec->type == PERF_RECORD_LOST) {
				lost += ((const u64 *)rec)[2];
				last += PERIOD * ((const u64 *)rec)[2];
				continue;
			}
			parse(s, rec, &p);
			KUNIT_ASSERT_EQ(test, p.values[0], last + PERIOD);
			last = p.values[0];
			records++;
		}
		pmuk_buffer_release(&r);
	}
	KUNIT_EXPECT_EQ(test, s->overflows, 11 * 50 * 51 / 2);
	KUNIT_EXPECT_EQ(test, s->overflows, records + pmuk_test_buffer_stat(test, s->b).lost);
	KUNIT_EXPECT_GT(test, lost, 0);
	KUNIT_EXPECT_GT(test, records, 1000);
}

/* A paused counter writes no records, nor does a counter without a period. */
static void no_overflow_no_record(struct kunit *test)
{
	struct sampler *s = new_sampler(test);
	struct pmuk_attr plain = s->attr;
	struct pmuk_buffer_stat stat;

	s->attr.sample_type = PERF_SAMPLE_IP;
	start(s);
	KUNIT_EXPECT_EQ(test, pmuk_counter_pause(s->c), 0);
	pmuk_sim_count(s->sim, 0, 10 * PERIOD);
	KUNIT_EXPECT_EQ(test, pmuk_counter_resume(s->c), 0);
	plain.config = 1;
	plain.period = 0;
	plain.overflow = NULL;
	pmuk_test_enabled(test, &plain, s->cpu, NULL);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count(s->sim, 1, 10 * PERIOD), 10 * PERIOD);
	stat = pmuk_test_buffer_stat(test, s->b);
	KUNIT_EXPECT_EQ(test, stat.head + stat.lost + stat.discarded, 0);
	KUNIT_EXPECT_EQ(test, s->overflows, 0);
}

static void expect_refused(struct sampler *s, const char *what, int errno)
{
	pmuk_test_refused(s->test, &s->attr, s->cpu, NULL, errno, what);
}

static void buffer_must_be_of_the_same_cpu(struct kunit *test)
{
	struct sampler *s = new_sampler(test);
	int other = pmuk_test_other_cpu(test, s->cpu);

	s->attr.buffer = format_buffer(test, 1, other);
	expect_refused(s, "another CPU's", -EINVAL);
	s->attr.buffer = format_buffer(test, 0, -1);
	expect_refused(s, "no CPU's", -EINVAL);
	s->attr.buffer = ERR_PTR(-ENOMEM);
	expect_refused(s, "none", -EINVAL);
	s->attr.buffer = s->b;
	pmuk_test_refused(test, &s->attr, -1, current, -EINVAL, "a task's counter");
}

/* The PMU's driver has all events of the machine on one CPU, and takes no buffer of another CPU. */
static void buffer_must_be_where_the_driver_counts(struct kunit *test)
{
	struct sampler *s = new_uncore_sampler(test);
	int first = s->cpu;

	s->cpu = pmuk_test_other_cpu(test, first);
	s->attr.buffer = format_buffer(test, 1, s->cpu);
	expect_refused(s, "another CPU's", -EINVAL);
	s->cpu = first;
	s->attr.buffer = s->b;
	start(s);
}

/*
 * The driver moves the event to another CPU when the event's CPU goes offline. The counter's state
 * is then PMUK_COUNTER_GONE, calls on the other CPU fail, and overflows there write no record into
 * the old CPU's buffer.
 */
static void moved_counter_is_gone(struct kunit *test)
{
	struct sampler *s = new_uncore_sampler(test);
	int other = pmuk_test_other_cpu(test, s->cpu);
	struct pmuk_buffer_stat stat;
	struct pmuk_value value;

	s->attr.sample_type = PERF_SAMPLE_CPU;
	start(s);
	check_overflow(s);
	KUNIT_EXPECT_EQ(test, pmuk_counter_state(s->c), PMUK_COUNTER_ACTIVE);

	pmuk_sim_migrate(s->sim, s->cpu, other);
	KUNIT_EXPECT_EQ(test, pmuk_sim_count_on(s->sim, other, 0, PERIOD), PERIOD);
	stat = pmuk_test_buffer_stat(test, s->b);
	KUNIT_EXPECT_EQ_MSG(test, stat.head, stat.tail, "another CPU has written records");
	KUNIT_EXPECT_EQ(test, s->overflows, 1);
	KUNIT_EXPECT_EQ(test, pmuk_counter_state(s->c), PMUK_COUNTER_GONE);
	KUNIT_EXPECT_EQ(test, pmuk_counter_read(s->c, &value), -ENODEV);
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(s->c), -ENODEV);

	pmuk_test_pin(test, other);
	KUNIT_EXPECT_EQ(test, pmuk_counter_read_local(s->c, &value.count), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_counter_pause(s->c), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_counter_resume(s->c), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_counter_set_period(s->c, PERIOD), -EINVAL);
	pmuk_test_pin(test, s->cpu);
}

/* A buffer without data pages has no records. pmuk refuses fields that only records have. */
static void page_of_a_task_has_no_records(struct kunit *test)
{
	static const struct {
		u64 sample_type, read_format;
		int error;
		const char *what;
	} rows[] = {
		{ 0, 0, 0, "a callback" },
		{ PERF_SAMPLE_TIME | PERF_SAMPLE_READ, 0, 0, "a callback that is told more" },
		{ PERF_SAMPLE_TIME | PERF_SAMPLE_READ, PERF_FORMAT_ID, -EINVAL, "read_format" },
		{ PERF_SAMPLE_TID, 0, -EOPNOTSUPP, "TID" },
		{ PERF_SAMPLE_CALLCHAIN, 0, -EOPNOTSUPP, "CALLCHAIN" },
	};
	struct sampler *s = new_sampler(test);
	struct pmuk_counter *c;
	unsigned int i;

	s->attr.buffer = format_buffer(test, 0, -1);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		s->attr.sample_type = rows[i].sample_type;
		s->attr.read_format = rows[i].read_format;
		c = pmuk_counter_create(&s->attr, -1, current);
		KUNIT_EXPECT_EQ_MSG(test, PTR_ERR_OR_ZERO(c), rows[i].error, "%s", rows[i].what);
		pmuk_counter_destroy(c);
	}
}

static void layout_needs_a_buffer(struct kunit *test)
{
	struct sampler *s = new_sampler(test);
	struct pmuk_counter *peers[NR_PEERS];

	s->attr.buffer = NULL;
	s->attr.read_format = PERF_FORMAT_ID;
	expect_refused(s, "read_format", -EINVAL);
	new_peers(s, peers);
	s->attr.read_format = 0;
	expect_refused(s, "peers", -EINVAL);
}

static void unknown_fields_are_refused(struct kunit *test)
{
	const u64 formats = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING |
			    PERF_FORMAT_ID | PERF_FORMAT_GROUP;
	struct sampler *s = new_sampler(test);
	/* Other tests check the fields that are not in all_fields[]. */
	const u64 fields = any_field() | PERF_SAMPLE_WEIGHT_STRUCT | PERF_SAMPLE_CGROUP |
			   PERF_SAMPLE_DATA_PAGE_SIZE | PERF_SAMPLE_CODE_PAGE_SIZE |
			   PERF_SAMPLE_REGS_USER | PERF_SAMPLE_REGS_INTR | PERF_SAMPLE_AUX;
	unsigned int bit;

	for (bit = 0; bit < 64; bit++) {
		s->attr.sample_type = BIT_ULL(bit);
		if (!(s->attr.sample_type & fields))
			expect_refused(s, "sample_type", -EOPNOTSUPP);
	}
	KUNIT_EXPECT_EQ(test, fields & PERF_SAMPLE_STACK_USER, 0);

	s->attr.sample_type = PERF_SAMPLE_READ;
	for (bit = 0; bit < 64; bit++) {
		s->attr.read_format = BIT_ULL(bit);
		if (!(s->attr.read_format & formats))
			expect_refused(s, "read_format", -EOPNOTSUPP);
	}
}

static void bad_peers_are_refused(struct kunit *test)
{
	struct sampler *s = new_sampler(test);
	struct pmuk_counter *peers[PMUK_PEERS_MAX + 1] = {}, *good;
	unsigned int i;

	new_peers(s, peers);
	good = peers[0];
	s->attr.sample_type = PERF_SAMPLE_IDENTIFIER;
	expect_refused(s, "no READ", -EINVAL);
	s->attr.sample_type = PERF_SAMPLE_READ;
	s->attr.read_format = PERF_FORMAT_ID;
	expect_refused(s, "no GROUP", -EINVAL);

	s->attr.read_format = PERF_FORMAT_GROUP;
	s->attr.peers = NULL;
	expect_refused(s, "no array", -EINVAL);
	s->attr.peers = peers;
	peers[1] = NULL;
	expect_refused(s, "NULL", -EINVAL);
	peers[1] = ERR_PTR(-ENOMEM);
	expect_refused(s, "ERR_PTR", -EINVAL);

	for (i = 0; i < ARRAY_SIZE(peers); i++)
		peers[i] = good;
	s->attr.nr_peers = PMUK_PEERS_MAX + 1;
	expect_refused(s, "too many", -EINVAL);
	s->attr.nr_peers = U32_MAX;
	expect_refused(s, "far too many", -EINVAL);
	s->attr.nr_peers = PMUK_PEERS_MAX;
	start(s);
	check_overflow(s);
}

static void peers_must_be_of_the_same_cpu(struct kunit *test)
{
	struct sampler *s = new_sampler(test);
	const struct pmuk_attr attr = { .type = s->attr.type, .config = 1 };
	struct pmuk_counter *peer;

	s->attr.sample_type = PERF_SAMPLE_READ;
	s->attr.read_format = PERF_FORMAT_GROUP;
	s->attr.peers = &peer;
	s->attr.nr_peers = 1;
	peer = pmuk_test_counter(test, &attr, -1, current);
	expect_refused(s, "a task's", -EINVAL);
	peer = pmuk_test_counter(test, &attr, pmuk_test_other_cpu(test, s->cpu), NULL);
	expect_refused(s, "another CPU's", -EINVAL);
}

/* Returns whether the address has a kernel symbol. */
static bool is_known_code(u64 ip)
{
	char name[64];

	snprintf(name, sizeof(name), "%ps", (void *)(unsigned long)ip);
	return strncmp(name, "0x", 2);
}

/* The machine's own PMU samples in its own interrupt. */
static void cycles_are_sampled(struct kunit *test)
{
	struct pmuk_attr attr = {
		.type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_CPU_CYCLES,
		.period = 200000, .flags = PMUK_EXCLUDE_USER | PMUK_NO_THROTTLE,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_CPU | PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN,
	};
	int cpu = pmuk_test_pin_first(test);
	u64 n = 0, time = local_clock(), count = 0;
	const struct perf_event_header *rec;
	struct pmuk_parsed p;
	struct pmuk_counter *c;
	struct pmuk_reader r;

	attr.buffer = format_buffer(test, 64, cpu);
	c = pmuk_counter_create(&attr, cpu, NULL);
	if (c == ERR_PTR(-ENOENT) || c == ERR_PTR(-EOPNOTSUPP))
		kunit_skip(test, "no PMU that counts cycles: %pe", c);
	KUNIT_ASSERT_FALSE(test, IS_ERR(c));
	KUNIT_EXPECT_EQ(test, pmuk_counter_enable(c), 0);
	pmuk_test_spin(200 * NSEC_PER_MSEC);
	pmuk_counter_destroy(c);

	KUNIT_ASSERT_EQ(test, pmuk_buffer_claim(attr.buffer, &r), 0);
	pmuk_for_each_record(rec, &r) {
		if (rec->type == PERF_RECORD_LOST)
			continue;
		KUNIT_ASSERT_EQ(test, pmuk_parse_sample(rec, attr.sample_type, 0, &p), 0);
		KUNIT_ASSERT_TRUE_MSG(test, is_known_code(p.ip), "%#llx", p.ip);
		KUNIT_ASSERT_GE(test, p.time, time);
		KUNIT_ASSERT_GT(test, p.values[0], count);
		KUNIT_ASSERT_GE(test, p.values[0], (n + 1) * attr.period);
		KUNIT_ASSERT_EQ(test, p.cpu, cpu);
		KUNIT_ASSERT_GE(test, p.nr_ips, 2);
		KUNIT_ASSERT_EQ(test, p.ips[0], PERF_CONTEXT_KERNEL);
		KUNIT_ASSERT_EQ(test, p.ips[1], p.ip);
		time = p.time;
		count = p.values[0];
		n++;
	}
	pmuk_buffer_release(&r);
	KUNIT_EXPECT_LE(test, time, local_clock());
	KUNIT_EXPECT_GE_MSG(test, n, 20, "too few samples");
	kunit_info(test, "%llu samples", n);
}

/* ---- addresses of the kernel, which stay out of records, and of guests ---- */

#define KERNEL_ADDR	0xffff800012345678ULL
#define GUEST_IP	0x12345678UL

static const u64 where_fields = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_ADDR |
				PERF_SAMPLE_CALLCHAIN;

/* Returns a sampler on a PMU like AMD's, which interrupts late: the interrupt finds the kernel. */
static struct sampler *new_skidding_sampler(struct kunit *test, u32 flags)
{
	static const struct pmuk_sim_config config = {
		.name = "pmuk_skid", .nr_counters = 1, .width = 32, .addr = KERNEL_ADDR,
		.skids = true,
	};
	struct sampler *s = new_sampler_on(test, &config);

	s->attr.flags |= flags;
	s->attr.sample_type = where_fields;
	return s;
}

/*
 * Kernel addresses have their top bit set. perf's marks in callchains have it, too, and are no
 * addresses.
 */
static void expect_no_kernel_address(struct sampler *s, const struct perf_event_header *rec)
{
	const u64 *word = (const u64 *)(rec + 1);
	unsigned int i;

	for (i = 0; i < (rec->size - sizeof(*rec)) / sizeof(*word); i++)
		KUNIT_EXPECT_TRUE_MSG(s->test, (s64)word[i] >= 0 || word[i] >= PERF_CONTEXT_MAX,
				      "word %u is %#llx", i, word[i]);
}

/* Lets an overflow happen, and expects one record with the mode @misc and the address @ip. */
static void expect_where(struct sampler *s, u16 misc, u64 ip)
{
	struct pmuk_parsed p;

	overflow_once(s);
	KUNIT_EXPECT_EQ(s->test, s->told.misc, misc);
	KUNIT_EXPECT_EQ(s->test, s->told.ip, ip);
	KUNIT_EXPECT_EQ(s->test, !!(s->told.valid & PERF_SAMPLE_IP), !!ip);
	p = parse_one(s);
	KUNIT_EXPECT_EQ(s->test, p.misc, misc);
	KUNIT_EXPECT_EQ(s->test, p.ip, ip);
	KUNIT_EXPECT_EQ(s->test, p.nr_ips, 0);
	if (s->attr.flags & PMUK_EXCLUDE_KERNEL)
		expect_no_kernel_address(s, s->record);
}

/*
 * A counter that excludes the kernel gets no address if its late interrupt finds the kernel, as
 * with perf.
 */
static void skid_tells_no_address(struct kunit *test)
{
	struct sampler *s = new_skidding_sampler(test, PMUK_EXCLUDE_KERNEL);

	start(s);
	expect_where(s, PERF_RECORD_MISC_KERNEL, 0);
	KUNIT_EXPECT_EQ(test, s->told.valid & (PERF_SAMPLE_ADDR | PERF_SAMPLE_REGS_INTR), 0);
	KUNIT_EXPECT_EQ(test, s->told.addr, 0);
	KUNIT_EXPECT_NULL(test, s->told.regs);
}

/* A counter that includes the kernel gets all fields. */
static void skid_is_told_where_the_kernel_counts(struct kunit *test)
{
	struct sampler *s = new_skidding_sampler(test, 0);

	start(s);
	overflow_once(s);
	KUNIT_EXPECT_NE(test, s->told.ip, 0);
	KUNIT_EXPECT_EQ(test, s->told.addr, KERNEL_ADDR);
	KUNIT_EXPECT_EQ(test, s->told.misc, PERF_RECORD_MISC_KERNEL);
	KUNIT_EXPECT_NOT_NULL(test, s->told.regs);
}

#ifdef CONFIG_GUEST_PERF_EVENTS

static unsigned int guest_is;

static unsigned int guest_state(void)
{
	return guest_is;
}

static unsigned long guest_ip(void)
{
	return GUEST_IP;
}

/* The hypervisor stands for one like KVM. Its guest runs when guest_is says so. */
static struct perf_guest_info_callbacks hypervisor = {
	.state = guest_state,
	.get_ip = guest_ip,
};

static void put_hypervisor(void *unused)
{
	guest_is = 0;
	perf_unregister_guest_info_callbacks(&hypervisor);
}

static void get_hypervisor(struct kunit *test)
{
	guest_is = 0;
#ifndef MODULE
	if (rcu_access_pointer(perf_guest_cbs))
		kunit_skip(test, "this machine has a hypervisor");
#endif
	perf_register_guest_info_callbacks(&hypervisor);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, put_hypervisor, NULL), 0);
}

static void need_guests(struct kunit *test)
{
	if (!PMUK_SEES_GUESTS)
		kunit_skip(test, "this kernel does not tell modules of guests");
	get_hypervisor(test);
}

static void expect_guest(struct sampler *s, bool user, u16 misc, u64 ip)
{
	guest_is = PERF_GUEST_ACTIVE | (user ? PERF_GUEST_USER : 0);
	expect_where(s, misc, ip);
	guest_is = 0;
}

/* Samples of a guest are marked as such, and have no callchain of the host. */
static void guests_are_told_apart(struct kunit *test)
{
	struct sampler *s = new_sampler(test);

	need_guests(test);
	s->attr.sample_type = where_fields;
	start(s);
	expect_guest(s, false, PERF_RECORD_MISC_GUEST_KERNEL, GUEST_IP);
	expect_guest(s, true, PERF_RECORD_MISC_GUEST_USER, GUEST_IP);
	check_overflow(s);
}

/* The page of an address of a guest is not the one that the host has there. */
static void guests_have_no_pages(struct kunit *test)
{
	struct sampler *s = new_sampler(test);

	need_guests(test);
	s->attr.sample_type = PERF_SAMPLE_CODE_PAGE_SIZE;
	start(s);
	guest_is = PERF_GUEST_ACTIVE;
	overflow_once(s);
	guest_is = 0;
	KUNIT_EXPECT_EQ(test, s->told.valid & PERF_SAMPLE_CODE_PAGE_SIZE, 0);
	KUNIT_EXPECT_EQ(test, parse_one(s).code_page_size, 0);
	overflow_once(s);
	KUNIT_EXPECT_EQ(test, s->told.valid & PERF_SAMPLE_CODE_PAGE_SIZE,
			PERF_SAMPLE_CODE_PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, parse_one(s).code_page_size, s->told.code_page_size);
}

/* The interrupt finds the host's registers and stack, which are none of the guest's. */
static void guests_have_no_registers(struct kunit *test)
{
	struct sampler *s = new_sampler(test);
	struct pmuk_layout layout = { .regs_intr = 1 };
	struct pmuk_parsed p;

	need_guests(test);
	s->attr.sample_type = PERF_SAMPLE_REGS_INTR | PERF_SAMPLE_CALLCHAIN;
	s->attr.sample_regs_intr = layout.regs_intr;
	s->attr.flags |= PMUK_CALLCHAIN_USER;
	layout.type = s->attr.sample_type;
	start(s);
	guest_is = PERF_GUEST_ACTIVE;
	overflow_once(s);
	guest_is = 0;
	KUNIT_EXPECT_EQ(test, s->told.regs_abi, PERF_SAMPLE_REGS_ABI_NONE);
	KUNIT_EXPECT_NULL(test, s->told.callchain);
	KUNIT_ASSERT_EQ(test, pmuk_parse_layout(only_record(s), &layout, &p), 0);
	KUNIT_EXPECT_EQ(test, p.regs_intr.abi, PERF_SAMPLE_REGS_ABI_NONE);
	KUNIT_EXPECT_EQ(test, p.nr_ips, 0);
	overflow_once(s);
	KUNIT_ASSERT_EQ(test, pmuk_parse_layout(only_record(s), &layout, &p), 0);
	KUNIT_EXPECT_NE(test, p.regs_intr.abi, PERF_SAMPLE_REGS_ABI_NONE);
	KUNIT_EXPECT_GT(test, p.nr_ips, 0);
}

/* A guest's kernel is excluded like the host's. */
static void guests_kernel_is_left_out(struct kunit *test)
{
	struct sampler *s = new_skidding_sampler(test, PMUK_EXCLUDE_KERNEL);

	need_guests(test);
	start(s);
	expect_guest(s, false, PERF_RECORD_MISC_GUEST_KERNEL, 0);
	expect_guest(s, true, PERF_RECORD_MISC_GUEST_USER, GUEST_IP);
	expect_where(s, PERF_RECORD_MISC_KERNEL, 0);
}

/*
 * All samples of a counter that excludes guests are the host's, and so are all samples where the
 * kernel does not tell modules about guests.
 */
static void without_guests_all_is_the_hosts(struct kunit *test)
{
	struct sampler *s = new_sampler(test);

	get_hypervisor(test);
	s->attr.sample_type = where_fields;
	s->attr.flags |= PMUK_SEES_GUESTS ? PMUK_EXCLUDE_GUEST : 0;
	start(s);
	guest_is = PERF_GUEST_ACTIVE;
	overflow_once(s);
	guest_is = 0;
	check_one(s);
}

#else /* !CONFIG_GUEST_PERF_EVENTS */

static void skip_guests(struct kunit *test)
{
	kunit_skip(test, "no guests in this kernel");
}

#define guests_are_told_apart		skip_guests
#define guests_kernel_is_left_out	skip_guests
#define guests_have_no_pages		skip_guests
#define guests_have_no_registers	skip_guests
#define without_guests_all_is_the_hosts	skip_guests

#endif /* CONFIG_GUEST_PERF_EVENTS */

static struct kunit_case pmuk_format_cases[] = {
	KUNIT_CASE_SLOW(each_field_alone),
	KUNIT_CASE_SLOW(fields_in_any_combination),
	KUNIT_CASE(raw_data_are_where_perf_has_them),
	KUNIT_CASE(no_field_at_all),
	KUNIT_CASE_SLOW(group_has_its_peers),
	KUNIT_CASE(group_tells_its_members_apart),
	KUNIT_CASE(peer_keeps_its_last_value),
	KUNIT_CASE(counters_share_a_buffer),
	KUNIT_CASE(callback_and_buffer_agree),
	KUNIT_CASE(no_overflow_no_record),
	KUNIT_CASE(buffer_must_be_of_the_same_cpu),
	KUNIT_CASE(buffer_must_be_where_the_driver_counts),
	KUNIT_CASE(moved_counter_is_gone),
	KUNIT_CASE(page_of_a_task_has_no_records),
	KUNIT_CASE(layout_needs_a_buffer),
	KUNIT_CASE(unknown_fields_are_refused),
	KUNIT_CASE(bad_peers_are_refused),
	KUNIT_CASE(peers_must_be_of_the_same_cpu),
	KUNIT_CASE(cycles_are_sampled),
	KUNIT_CASE(skid_tells_no_address),
	KUNIT_CASE(skid_is_told_where_the_kernel_counts),
	KUNIT_CASE(guests_are_told_apart),
	KUNIT_CASE(guests_kernel_is_left_out),
	KUNIT_CASE(guests_have_no_pages),
	KUNIT_CASE(guests_have_no_registers),
	KUNIT_CASE(without_guests_all_is_the_hosts),
	{}
};

PMUK_SUITE(pmuk_format, pmuk_test_init, "KUnit tests of pmuk's records");
