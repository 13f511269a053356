// SPDX-License-Identifier: GPL-2.0
/*
 * The tests check the fields of a sample that the PMU's driver or perf core fills in: each field
 * reaches callbacks, records and the records of contexts, and fields that are not known are not
 * claimed.
 */
#include <linux/bits.h>
#include <linux/cleanup.h>
#include <linux/io.h>
#include <linux/irqflags.h>
#include <linux/log2.h>
#include <linux/mman.h>
#include <linux/perf_regs.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/sched/task_stack.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "../../kernel/pmu_kapi/counter.h"
#include "pmuk_ctx.h"
#include "pmuk_fork.h"
#include "pmuk_given.h"
#include "pmuk_parse.h"
#include "pmuk_suite.h"
#include "pmuk_test.h"

#define PERIOD	100

/* Fields that a sample has if they are asked for, and known. */
#define OPTIONAL	((PMUK_GIVEN | PMUK_SAMPLE_CORE | PERF_SAMPLE_CGROUP) & \
			 ~(u64)PERF_SAMPLE_REGS_INTR)

#define SHARED		(PMUK_PINNED | PMUK_NO_THROTTLE)

#define CHAIN_MAX	200

/* A counter of event 0, or a context with one, and the latest sample of its callback. */
struct sampler {
	struct pmuk_sim_config config;
	struct pmuk_sim *sim;
	struct pmuk_attr attr;
	struct perf_event_attr seen;	/* as the driver saw it last */
	unsigned int most_precise;	/* the driver supports no more, ... */
	int refusal;			/* ... and says so with this errno */
	const unsigned long *user;	/* the overflow finds a task with these registers, ... */
	struct pt_regs found;		/* ... and the callback finds these, ... */
	u64 chain[CHAIN_MAX], nr_chain;	/* ... and this callchain */
	struct pmuk_sample reported;
	struct pmuk_parsed parsed;
	int cpu;
};

static void note_overflow(struct pmuk_counter *c, const struct pmuk_sample *sample, void *data)
{
	*(struct pmuk_sample *)data = *sample;
}

static int check_precise(const struct perf_event_attr *attr, void *data)
{
	struct sampler *s = data;

	s->seen = *attr;
	return attr->precise_ip > s->most_precise ? s->refusal : 0;
}

/* Returns a sampler on a PMU whose driver fills in nothing by itself, unless @fill does. */
static struct sampler *new_sampler(struct kunit *test, const struct pmuk_sim_config *config)
{
	struct sampler *s = pmuk_test_zalloc(test, sizeof(*s));

	s->refusal = -EOPNOTSUPP;
	s->config = *config;
	s->config.name = "pmuk_sim";
	s->config.nr_counters = 2;
	s->config.width = 32;
	s->config.event_init = check_precise;
	s->config.data = s;
	s->sim = pmuk_test_sim_config(test, &s->config);
	s->cpu = pmuk_test_pin_first(test);
	s->attr = (struct pmuk_attr){
		.type = pmuk_sim_type(s->sim), .period = PERIOD, .flags = PMUK_NO_THROTTLE,
		.overflow = note_overflow, .data = &s->reported,
	};
	return s;
}

static struct sampler *new_full_sampler(struct kunit *test)
{
	return new_sampler(test, &(struct pmuk_sim_config){ .fill = pmuk_given_fill });
}

static unsigned int seen_precise(const struct sampler *s)
{
	return s->seen.precise_ip;
}

static void want(struct sampler *s, u64 fields)
{
	s->attr.sample_type = fields;
	s->attr.branch_sample_type = fields & PERF_SAMPLE_BRANCH_STACK ?
				     PERF_SAMPLE_BRANCH_ANY : 0;
}

#ifdef CONFIG_X86
#define REG_ARG	PERF_REG_X86_AX
#define REG_FP	PERF_REG_X86_BP
#define REG_SP	PERF_REG_X86_SP
#define REG_IP	PERF_REG_X86_IP
#define REG_BAD	PERF_REG_X86_DS

static void set_user_regs(struct pt_regs *regs, const unsigned long *arg_fp_sp_ip)
{
	regs->ax = arg_fp_sp_ip[0];
	regs->bp = arg_fp_sp_ip[1];
	regs->sp = arg_fp_sp_ip[2];
	regs->ip = arg_fp_sp_ip[3];
	regs->cs = __USER_CS;
	regs->ss = __USER_DS;
}
#else
#define REG_ARG	PERF_REG_ARM64_X0
#define REG_FP	PERF_REG_ARM64_X29
#define REG_SP	PERF_REG_ARM64_SP
#define REG_IP	PERF_REG_ARM64_PC
#define REG_BAD	PERF_REG_ARM64_EXTENDED_MAX

static void set_user_regs(struct pt_regs *regs, const unsigned long *arg_fp_sp_ip)
{
	regs->regs[0] = arg_fp_sp_ip[0];
	regs->regs[29] = arg_fp_sp_ip[1];
	regs->sp = arg_fp_sp_ip[2];
	regs->pc = arg_fp_sp_ip[3];
	regs->pstate = PSR_MODE_EL0t;
}
#endif

/*
 * Lets the events happen while this thread looks like a user's task, whose registers were saved
 * when it entered the kernel. Interrupts are off, so nothing else takes the thread for a user's.
 */
static u64 count_as_user(struct sampler *s)
{
	struct pt_regs *mine = task_pt_regs(current), old = *mine;
	u64 counted;

	guard(irqsave)();
	set_user_regs(mine, s->user);
	current->flags &= ~PF_KTHREAD;
	counted = pmuk_sim_count(s->sim, 0, PERIOD);
	current->flags |= PF_KTHREAD;
	*mine = old;
	return counted;
}

static void overflow_once(struct kunit *test, struct sampler *s)
{
	u64 counted = s->user ? count_as_user(s) : pmuk_sim_count(s->sim, 0, PERIOD);

	KUNIT_EXPECT_EQ(test, counted, PERIOD);
}

/* Lets a new counter overflow once. */
static void sample_once(struct kunit *test, struct sampler *s)
{
	struct pmuk_counter *c = pmuk_test_enabled(test, &s->attr, s->cpu, NULL);

	s->reported = (struct pmuk_sample){};
	overflow_once(test, s);
	kunit_release_action(test, pmuk_test_put_counter, c);
}

/*
 * Kernel addresses have their top bit set. perf's marks in callchains have it, too, and are no
 * addresses.
 */
static void expect_no_kernel_address(struct kunit *test, const struct perf_event_header *rec)
{
	const u64 *word = (const u64 *)(rec + 1);
	unsigned int i;

	for (i = 0; i < (rec->size - sizeof(*rec)) / sizeof(*word); i++)
		KUNIT_EXPECT_TRUE_MSG(test, (s64)word[i] >= 0 || word[i] >= PERF_CONTEXT_MAX,
				      "word %u is %#llx", i, word[i]);
}

static void parse_one(struct kunit *test, struct sampler *s, struct pmuk_buffer *b)
{
	const struct pmuk_layout layout = {
		.type = s->attr.sample_type, .branch_type = s->attr.branch_sample_type,
		.regs_user = s->attr.sample_regs_user, .regs_intr = s->attr.sample_regs_intr,
	};
	const struct perf_event_header *rec;
	struct pmuk_reader r;

	KUNIT_ASSERT_EQ(test, pmuk_buffer_claim(b, &r), 0);
	rec = pmuk_buffer_peek(&r);
	KUNIT_ASSERT_NOT_NULL(test, rec);
	KUNIT_EXPECT_EQ(test, pmuk_parse_layout(rec, &layout, &s->parsed), 0);
	if (s->attr.flags & PMUK_EXCLUDE_KERNEL)
		expect_no_kernel_address(test, rec);
	KUNIT_EXPECT_NULL(test, pmuk_buffer_next(&r));
	pmuk_buffer_release(&r);
}

/* Lets a new counter overflow once, and parses the record. */
static void record_once(struct kunit *test, struct sampler *s)
{
	s->attr.buffer = pmuk_test_new_buffer(test, &(struct pmuk_buffer_attr){ .nr_pages = 1 },
					      s->cpu);
	sample_once(test, s);
	parse_one(test, s, s->attr.buffer);
	s->attr.buffer = NULL;
}

static struct pmuk_pmc pmc_of(const struct sampler *s)
{
	return (struct pmuk_pmc){
		.type = s->attr.type, .config3 = s->attr.config3, .flags = s->attr.flags,
		.precise_ip = s->attr.precise_ip,
		.branch_sample_type = s->attr.branch_sample_type,
		.sample_regs_intr = s->attr.sample_regs_intr,
		.sample_regs_user = s->attr.sample_regs_user, .max_stack = s->attr.max_stack,
	};
}

/* Lets a counter of a new context overflow once, and parses the record. */
static void record_in_context(struct kunit *test, struct sampler *s)
{
	const struct pmuk_perf_format format = { .sample_type = s->attr.sample_type };
	struct pmuk_pmc pmc = pmc_of(s);
	struct pmuk_context *ctx = pmuk_ctx_create(test, &(struct pmuk_context_attr){
		.buffer = { .nr_pages = 1 },
		.format_arg = &format, .format_arg_size = sizeof(format) });

	KUNIT_ASSERT_EQ(test, pmuk_write_pmcs(ctx, &pmc, 1), 1);
	pmuk_ctx_write_pmd(test, ctx, &(struct pmuk_pmd){ .short_reset = PERIOD });
	pmuk_ctx_run(test, ctx, s->cpu);
	overflow_once(test, s);
	parse_one(test, s, pmuk_context_buffer(ctx, s->cpu));
	KUNIT_EXPECT_EQ(test, pmuk_unload_context(ctx), 0);
}

/* ---- fields that the driver gives ---- */

static const struct pmuk_test_value fields[] = {
	{ "ADDR", PERF_SAMPLE_ADDR },
	{ "WEIGHT", PERF_SAMPLE_WEIGHT },
	{ "WEIGHT_STRUCT", PERF_SAMPLE_WEIGHT_STRUCT },
	{ "DATA_SRC", PERF_SAMPLE_DATA_SRC },
	{ "TRANSACTION", PERF_SAMPLE_TRANSACTION },
	{ "PHYS_ADDR", PERF_SAMPLE_PHYS_ADDR },
	{ "BRANCH_STACK", PERF_SAMPLE_BRANCH_STACK },
	{ "all", PERF_SAMPLE_ADDR | PERF_SAMPLE_WEIGHT_STRUCT | PERF_SAMPLE_DATA_SRC |
		 PERF_SAMPLE_TRANSACTION | PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_BRANCH_STACK },
};

KUNIT_ARRAY_PARAM_DESC(fields, fields, name);

static u64 wanted_fields(struct kunit *test, struct sampler *s)
{
	want(s, pmuk_test_param(test));
	return s->attr.sample_type;
}

static void expect_branches(struct kunit *test, const void *entries, u64 nr)
{
	KUNIT_ASSERT_EQ(test, nr, PMUK_GIVEN_BRANCHES);
	KUNIT_EXPECT_MEMEQ(test, entries, pmuk_given_branches.entries,
			   sizeof(pmuk_given_branches.entries));
}

/* A field that was not asked for is 0. */
static void given_fields_reach_callbacks(struct kunit *test)
{
	struct sampler *s = new_full_sampler(test);
	u64 wanted = wanted_fields(test, s);
	const struct pmuk_sample *t = &s->reported;

	sample_once(test, s);
	KUNIT_EXPECT_EQ(test, t->valid & OPTIONAL, wanted);
	KUNIT_EXPECT_EQ(test, t->addr, wanted & PERF_SAMPLE_ADDR ? PMUK_GIVEN_ADDR : 0);
	KUNIT_EXPECT_EQ(test, t->weight, wanted & PERF_SAMPLE_WEIGHT_TYPE ? PMUK_GIVEN_WEIGHT : 0);
	KUNIT_EXPECT_EQ(test, t->data_src, wanted & PERF_SAMPLE_DATA_SRC ? PMUK_GIVEN_DATA_SRC : 0);
	KUNIT_EXPECT_EQ(test, t->txn, wanted & PERF_SAMPLE_TRANSACTION ? PMUK_GIVEN_TXN : 0);
	KUNIT_EXPECT_EQ(test, t->phys_addr,
			wanted & PERF_SAMPLE_PHYS_ADDR ? PMUK_GIVEN_PHYS_ADDR : 0);
	KUNIT_EXPECT_EQ(test, !!t->branches, !!(wanted & PERF_SAMPLE_BRANCH_STACK));
	if (t->branches)
		expect_branches(test, t->branches->entries, t->branches->nr);
}

static void expect_parsed(struct kunit *test, struct sampler *s, u64 wanted)
{
	const struct pmuk_parsed *p = &s->parsed;

	KUNIT_EXPECT_EQ(test, p->addr, wanted & PERF_SAMPLE_ADDR ? PMUK_GIVEN_ADDR : 0);
	KUNIT_EXPECT_EQ(test, p->weight, wanted & PERF_SAMPLE_WEIGHT_TYPE ? PMUK_GIVEN_WEIGHT : 0);
	KUNIT_EXPECT_EQ(test, p->data_src, wanted & PERF_SAMPLE_DATA_SRC ? PMUK_GIVEN_DATA_SRC : 0);
	KUNIT_EXPECT_EQ(test, p->txn, wanted & PERF_SAMPLE_TRANSACTION ? PMUK_GIVEN_TXN : 0);
	KUNIT_EXPECT_EQ(test, p->phys_addr,
			wanted & PERF_SAMPLE_PHYS_ADDR ? PMUK_GIVEN_PHYS_ADDR : 0);
	if (wanted & PERF_SAMPLE_BRANCH_STACK)
		expect_branches(test, p->branches, p->nr_branches);
}

static void given_fields_reach_records(struct kunit *test)
{
	struct sampler *s = new_full_sampler(test);
	u64 wanted = wanted_fields(test, s);

	record_once(test, s);
	expect_parsed(test, s, wanted);
}

static void given_fields_reach_contexts(struct kunit *test)
{
	struct sampler *s = new_full_sampler(test);
	u64 wanted = wanted_fields(test, s);

	record_in_context(test, s);
	expect_parsed(test, s, wanted);
}

/* Counters that share a register get the same fields, and claim none that only the first has. */
static void given_fields_reach_all_who_share(struct kunit *test)
{
	struct sampler *s = new_full_sampler(test);
	u64 wanted = wanted_fields(test, s);
	struct pmuk_sample others = {};

	s->attr.flags = SHARED;
	pmuk_test_enabled(test, &s->attr, s->cpu, NULL);
	s->attr.data = &others;
	pmuk_test_enabled(test, &s->attr, s->cpu, NULL);
	overflow_once(test, s);
	KUNIT_EXPECT_EQ(test, s->reported.valid & OPTIONAL, wanted);
	KUNIT_EXPECT_EQ(test, others.valid, s->reported.valid);
	KUNIT_EXPECT_EQ(test, others.addr, s->reported.addr);
	KUNIT_EXPECT_EQ(test, others.weight, s->reported.weight);
	KUNIT_EXPECT_EQ(test, others.data_src, s->reported.data_src);
	KUNIT_EXPECT_EQ(test, others.phys_addr, s->reported.phys_addr);
	KUNIT_EXPECT_PTR_EQ(test, others.branches, s->reported.branches);
}

/* A driver that fills in nothing: no field is valid, and records say so as perf's do. */
static void unknown_fields_are_not_claimed(struct kunit *test)
{
	struct sampler *s = new_sampler(test, &(struct pmuk_sim_config){});
	u64 wanted = wanted_fields(test, s) & ~(u64)PERF_SAMPLE_BRANCH_STACK;
	struct pmuk_sample others = {};

	want(s, wanted | PERF_SAMPLE_IP);
	record_once(test, s);
	KUNIT_EXPECT_EQ(test, s->reported.valid & OPTIONAL, 0);
	KUNIT_EXPECT_EQ(test, s->parsed.addr | s->parsed.weight | s->parsed.txn |
			s->parsed.phys_addr, 0);
	KUNIT_EXPECT_EQ(test, s->parsed.data_src, wanted & PERF_SAMPLE_DATA_SRC ? PERF_MEM_NA : 0);

	s->attr.flags = SHARED;
	pmuk_test_enabled(test, &s->attr, s->cpu, NULL);
	s->attr.data = &others;
	pmuk_test_enabled(test, &s->attr, s->cpu, NULL);
	overflow_once(test, s);
	KUNIT_EXPECT_EQ(test, others.valid & OPTIONAL, 0);
}

/* ---- fields that perf core finds ---- */

static void expect_phys(struct kunit *test, struct sampler *s, u64 phys_addr)
{
	bool known = phys_addr && !PMUK_SAMPLE_UNSUPPORTED;

	want(s, PERF_SAMPLE_ADDR | PERF_SAMPLE_PHYS_ADDR);
	record_once(test, s);
	KUNIT_EXPECT_EQ(test, s->reported.addr, s->config.addr);
	KUNIT_EXPECT_EQ(test, s->reported.valid & OPTIONAL,
			PERF_SAMPLE_ADDR | (known ? PERF_SAMPLE_PHYS_ADDR : 0));
	KUNIT_EXPECT_EQ(test, s->reported.phys_addr, known ? phys_addr : 0);
	KUNIT_EXPECT_EQ(test, s->parsed.phys_addr, known ? phys_addr : 0);
}

/* perf core finds the address for each of the counters that share a register. */
static void core_finds_addresses_for_all_who_share(struct kunit *test)
{
	void *data = pmuk_test_zalloc(test, 64);
	struct pmuk_sample others = {};
	struct sampler *s;

	s = new_sampler(test, &(struct pmuk_sim_config){ .addr = (unsigned long)data });
	want(s, PERF_SAMPLE_ADDR | PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_WEIGHT);
	s->attr.flags = SHARED;
	pmuk_test_enabled(test, &s->attr, s->cpu, NULL);
	s->attr.data = &others;
	pmuk_test_enabled(test, &s->attr, s->cpu, NULL);
	overflow_once(test, s);
	KUNIT_EXPECT_EQ(test, s->reported.valid & OPTIONAL, PERF_SAMPLE_ADDR |
			(PMUK_SAMPLE_UNSUPPORTED ? 0 : PERF_SAMPLE_PHYS_ADDR));
	KUNIT_EXPECT_EQ(test, others.valid, s->reported.valid);
	KUNIT_EXPECT_EQ(test, others.addr, (unsigned long)data);
	KUNIT_EXPECT_EQ(test, others.phys_addr, PMUK_SAMPLE_UNSUPPORTED ? 0 : virt_to_phys(data));
}

/* Some drivers give an address only if it is asked for, and perf core needs the address. */
static void drivers_are_asked_for_addresses(struct kunit *test)
{
	struct sampler *s = new_full_sampler(test);

	want(s, PERF_SAMPLE_PHYS_ADDR);
	sample_once(test, s);
	KUNIT_EXPECT_TRUE(test, s->seen.sample_type & PERF_SAMPLE_ADDR);
	KUNIT_EXPECT_EQ(test, s->reported.valid & OPTIONAL, PERF_SAMPLE_PHYS_ADDR);
	KUNIT_EXPECT_EQ(test, s->reported.addr, 0);
}

/* On stock kernels the address is not known, unless the driver knows it. */
static void core_finds_physical_addresses(struct kunit *test)
{
	void *data = pmuk_test_zalloc(test, 64);
	struct sampler *s;

	s = new_sampler(test, &(struct pmuk_sim_config){ .addr = (unsigned long)data + 8 });
	expect_phys(test, s, virt_to_phys(data) + 8);
}

static void core_knows_no_physical_address_of_nothing(struct kunit *test)
{
	expect_phys(test, new_sampler(test, &(struct pmuk_sim_config){ .addr = 0x1000 }), 0);
}

static void need_core(struct kunit *test, struct sampler *s)
{
	want(s, PERF_SAMPLE_DATA_PAGE_SIZE);
	if (!PMUK_SAMPLE_UNSUPPORTED)
		return;
	pmuk_test_refused(test, &s->attr, s->cpu, NULL, -EOPNOTSUPP, "page size of data");
	want(s, PERF_SAMPLE_CODE_PAGE_SIZE);
	pmuk_test_refused(test, &s->attr, s->cpu, NULL, -EOPNOTSUPP, "page size of code");
	kunit_skip(test, "this kernel's perf core finds no page sizes for modules");
}

KUNIT_DEFINE_ACTION_WRAPPER(free_pages_of_data, vfree, const void *);

/* A page from vmalloc() is an ordinary page. Code may be in huge pages. */
static void core_finds_page_sizes(struct kunit *test)
{
	void *data = vmalloc(1);
	struct sampler *s;

	KUNIT_ASSERT_NOT_NULL(test, data);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, free_pages_of_data, data), 0);
	s = new_sampler(test, &(struct pmuk_sim_config){ .addr = (unsigned long)data });
	need_core(test, s);
	want(s, PERF_SAMPLE_DATA_PAGE_SIZE | PERF_SAMPLE_CODE_PAGE_SIZE);
	record_once(test, s);
	KUNIT_EXPECT_EQ(test, s->reported.valid & OPTIONAL, s->attr.sample_type);
	KUNIT_EXPECT_EQ(test, s->reported.data_page_size, PAGE_SIZE);
	KUNIT_EXPECT_GE(test, s->reported.code_page_size, PAGE_SIZE);
	KUNIT_EXPECT_TRUE(test, is_power_of_2(s->reported.code_page_size));
	KUNIT_EXPECT_EQ(test, s->parsed.data_page_size, s->reported.data_page_size);
	KUNIT_EXPECT_EQ(test, s->parsed.code_page_size, s->reported.code_page_size);
	record_in_context(test, s);
	KUNIT_EXPECT_EQ(test, s->parsed.data_page_size, PAGE_SIZE);
}

static void page_sizes_of_nothing_are_not_claimed(struct kunit *test)
{
	struct sampler *s = new_sampler(test, &(struct pmuk_sim_config){});

	need_core(test, s);
	record_once(test, s);
	KUNIT_EXPECT_EQ(test, s->reported.valid & OPTIONAL, 0);
	KUNIT_EXPECT_EQ(test, s->parsed.data_page_size, 0);
}

/* The test's thread is in the root cgroup. */
static void cgroup_is_the_current_tasks(struct kunit *test)
{
	struct sampler *s = new_full_sampler(test);
	u64 root = 1;

	want(s, PERF_SAMPLE_CGROUP);
	if (!IS_ENABLED(CONFIG_CGROUP_PERF)) {
		pmuk_test_refused(test, &s->attr, s->cpu, NULL, -EOPNOTSUPP, "cgroup");
		kunit_skip(test, "no CONFIG_CGROUP_PERF");
	}
	record_once(test, s);
	KUNIT_EXPECT_EQ(test, s->reported.valid & OPTIONAL, PERF_SAMPLE_CGROUP);
	KUNIT_EXPECT_EQ(test, s->reported.cgroup, root);
	KUNIT_EXPECT_EQ(test, s->parsed.cgroup, root);
	record_in_context(test, s);
	KUNIT_EXPECT_EQ(test, s->parsed.cgroup, root);
}

/* A late interrupt finds the kernel, which the counter excludes: no address may leak. */
static void hidden_samples_have_no_address(struct kunit *test)
{
	struct sampler *s = new_sampler(test, &(struct pmuk_sim_config){
		.fill = pmuk_given_fill, .skids = true });
	u64 sizes = (PERF_SAMPLE_DATA_PAGE_SIZE | PERF_SAMPLE_CODE_PAGE_SIZE) &
		    ~PMUK_SAMPLE_UNSUPPORTED;

	want(s, PERF_SAMPLE_ADDR | PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_DATA_SRC | sizes);
	s->attr.flags |= PMUK_EXCLUDE_KERNEL;
	record_once(test, s);
	KUNIT_EXPECT_EQ(test, s->reported.valid & OPTIONAL, PERF_SAMPLE_DATA_SRC);
	KUNIT_EXPECT_EQ(test, s->reported.addr | s->reported.phys_addr, 0);
	KUNIT_EXPECT_EQ(test, s->reported.data_page_size | s->reported.code_page_size, 0);
	KUNIT_EXPECT_EQ(test, s->parsed.addr | s->parsed.phys_addr | s->parsed.data_page_size |
			s->parsed.code_page_size, 0);
}

/* ---- branches ---- */

static void branches_have_their_index(struct kunit *test)
{
	struct sampler *s = new_full_sampler(test);

	want(s, PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_WEIGHT);
	s->attr.branch_sample_type |= PERF_SAMPLE_BRANCH_HW_INDEX;
	record_once(test, s);
	KUNIT_EXPECT_EQ(test, s->parsed.branch_index, PMUK_GIVEN_INDEX);
	expect_parsed(test, s, s->attr.sample_type);
	record_in_context(test, s);
	KUNIT_EXPECT_EQ(test, s->parsed.branch_index, PMUK_GIVEN_INDEX);
	expect_parsed(test, s, s->attr.sample_type);
}

static void no_fill(struct perf_event *event, struct perf_sample_data *sample, void *data)
{
}

/* The PMU records branches, but has none at this overflow: the record's layout stays. */
static void record_may_have_no_branches(struct kunit *test)
{
	struct sampler *s = new_sampler(test, &(struct pmuk_sim_config){ .fill = no_fill });

	want(s, PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_WEIGHT);
	s->attr.branch_sample_type |= PERF_SAMPLE_BRANCH_HW_INDEX;
	record_once(test, s);
	KUNIT_EXPECT_EQ(test, s->reported.valid & OPTIONAL, 0);
	KUNIT_EXPECT_NULL(test, s->reported.branches);
	KUNIT_EXPECT_EQ(test, s->parsed.nr_branches, 0);
	KUNIT_EXPECT_EQ(test, s->parsed.branch_index, -1ULL);
}

static void branches_are_of_the_counted_levels(struct kunit *test)
{
	static const struct { u32 flags; u64 levels; } cases[] = {
		{ 0, PERF_SAMPLE_BRANCH_PLM_ALL },
		{ PMUK_EXCLUDE_USER, PERF_SAMPLE_BRANCH_KERNEL | PERF_SAMPLE_BRANCH_HV },
		{ PMUK_EXCLUDE_KERNEL, PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_HV },
		{ PMUK_EXCLUDE_HV, PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_KERNEL },
	};
	struct sampler *s = new_full_sampler(test);
	unsigned int i;

	want(s, PERF_SAMPLE_BRANCH_STACK);
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		s->attr.flags = cases[i].flags | PMUK_NO_THROTTLE;
		pmuk_test_counter(test, &s->attr, s->cpu, NULL);
		KUNIT_EXPECT_EQ(test, s->seen.branch_sample_type,
				PERF_SAMPLE_BRANCH_ANY | cases[i].levels);
	}
	s->attr.flags = PMUK_NO_THROTTLE;
	s->attr.branch_sample_type |= PERF_SAMPLE_BRANCH_USER;
	pmuk_test_counter(test, &s->attr, s->cpu, NULL);
	KUNIT_EXPECT_EQ(test, s->seen.branch_sample_type, s->attr.branch_sample_type);
}

static void expect_branches_refused(struct kunit *test, struct sampler *s, u64 branch_type)
{
	struct pmuk_context *ctx = pmuk_ctx_create(test, &(struct pmuk_context_attr){});
	struct pmuk_pmc pmc = { .type = s->attr.type, .flags = s->attr.flags,
				.branch_sample_type = branch_type };

	s->attr.branch_sample_type = branch_type;
	pmuk_test_refused(test, &s->attr, s->cpu, NULL, -EINVAL, "branches");
	if (!branch_type)
		return;
	KUNIT_EXPECT_EQ(test, pmuk_write_pmcs(ctx, &pmc, 1), 0);
	KUNIT_EXPECT_EQ(test, pmc.ret, -EINVAL);
}

static void bad_branches_are_refused(struct kunit *test)
{
	struct sampler *s = new_full_sampler(test);

	want(s, PERF_SAMPLE_BRANCH_STACK);
	expect_branches_refused(test, s, 0);
	expect_branches_refused(test, s, PERF_SAMPLE_BRANCH_MAX);
	expect_branches_refused(test, s, PERF_SAMPLE_BRANCH_USER);
	expect_branches_refused(test, s, PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_COUNTERS);
	s->attr.flags |= PMUK_EXCLUDE_KERNEL;
	expect_branches_refused(test, s, PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_KERNEL);
	s->attr.flags = PMUK_NO_THROTTLE;
	want(s, 0);
	s->attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY;
	pmuk_test_refused(test, &s->attr, s->cpu, NULL, -EINVAL, "no field for them");
}

/* A PMU without branches says so itself. Counters of the context without branches are fine. */
static void pmu_may_have_no_branches(struct kunit *test)
{
	struct sampler *s = new_sampler(test, &(struct pmuk_sim_config){});

	want(s, PERF_SAMPLE_BRANCH_STACK);
	pmuk_test_refused(test, &s->attr, s->cpu, NULL, -EOPNOTSUPP, "branches");
	s->attr.branch_sample_type = 0;
	record_in_context(test, s);
	KUNIT_EXPECT_EQ(test, s->parsed.nr_branches, 0);
}

/* ---- formats of consumers ---- */

static struct {
	struct pmuk_sample sample;
	u64 sample_flags, dyn_size;
} handled;

static u32 note_handled(const struct pmuk_format_event *event)
{
	handled.sample = *event->sample;
	handled.sample_flags = event->data->sample_flags;
	handled.dyn_size = event->data->dyn_size;
	return PMUK_FORMAT_RESET;
}

static struct pmuk_format noting_format = {
	.name = "pmuk_noting", .handler = note_handled, .owner = THIS_MODULE,
	.uuid = UUID_INIT(0x11, 0x22, 0x33, 1, 2, 3, 4, 5, 6, 7, 9),
};

/* Lets a counter of a context with that format, and samples as in @s, overflow once. */
static void handle_once(struct kunit *test, struct sampler *s)
{
	struct pmuk_pmc pmc = pmc_of(s);
	struct pmuk_context *ctx;

	noting_format.sample_type = s->attr.sample_type;
	pmuk_ctx_format(test, &noting_format);
	ctx = pmuk_ctx_create(test, &(struct pmuk_context_attr){ .format = &noting_format.uuid });
	KUNIT_ASSERT_EQ(test, pmuk_write_pmcs(ctx, &pmc, 1), 1);
	pmuk_ctx_write_pmd(test, ctx, &(struct pmuk_pmd){ .short_reset = PERIOD });
	pmuk_ctx_run(test, ctx, s->cpu);
	overflow_once(test, s);
}

static void formats_get_fields(struct kunit *test)
{
	struct sampler *s = new_full_sampler(test);
	const struct pmuk_sample *t = &handled.sample;

	want(s, PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_BRANCH_STACK);
	handle_once(test, s);
	KUNIT_EXPECT_EQ(test, t->valid & OPTIONAL, s->attr.sample_type);
	KUNIT_EXPECT_EQ(test, t->data_src, PMUK_GIVEN_DATA_SRC);
	KUNIT_EXPECT_EQ(test, t->phys_addr, PMUK_GIVEN_PHYS_ADDR);
	KUNIT_EXPECT_PTR_EQ(test, t->branches, &pmuk_given_copy.stack);
}

/* perf core, asked for the physical address, also notes that there are no branches. */
static void formats_get_perfs_data_as_the_driver_left_them(struct kunit *test)
{
	struct sampler *s = new_sampler(test, &(struct pmuk_sim_config){ .fill = no_fill });

	want(s, PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_DATA_SRC);
	handle_once(test, s);
	KUNIT_EXPECT_EQ(test, handled.sample.valid & OPTIONAL, 0);
	KUNIT_EXPECT_EQ(test, handled.sample_flags, PERF_SAMPLE_PERIOD);
	KUNIT_EXPECT_EQ(test, handled.dyn_size, 0);
}

static void room_is_for_the_same_event(struct kunit *test)
{
	struct sampler *s = new_full_sampler(test);
	u32 fits;

	s->most_precise = 2;
	s->attr.config3 = 7;
	s->attr.precise_ip = 2;
	want(s, PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_DATA_SRC);
	KUNIT_EXPECT_EQ(test, pmuk_room(&s->attr, 1, s->cpu, &fits), 1);
	KUNIT_EXPECT_EQ(test, s->seen.config3, 7);
	KUNIT_EXPECT_EQ(test, seen_precise(s), 2);
	KUNIT_EXPECT_EQ(test, s->seen.sample_type, s->attr.sample_type);
	KUNIT_EXPECT_TRUE(test, s->seen.branch_sample_type & PERF_SAMPLE_BRANCH_ANY);
	KUNIT_EXPECT_NE(test, s->seen.sample_max_stack, 0);
}

/* ---- registers and callchains ---- */

#define USER_IP		0x401234UL
#define USER_FRAMES	6
#define RETURN_TO(i)	(0x400000UL + 0x100 * (i))
#define ALL_REGS	(BIT_ULL(REG_ARG) | BIT_ULL(REG_FP) | BIT_ULL(REG_SP) | BIT_ULL(REG_IP))
#define SOME_REGS	(BIT_ULL(REG_SP) | BIT_ULL(REG_IP))
#define USER_FIELDS	(PERF_SAMPLE_REGS_USER | PERF_SAMPLE_REGS_INTR | PERF_SAMPLE_CALLCHAIN)

/* A user's task: values for ALL_REGS, and stack frames. */
struct user_space {
	unsigned long regs[4];
	struct pt_regs interrupted;	/* if the interrupt comes in user space */
	struct { unsigned long next, return_to; } frames[USER_FRAMES];
};

/*
 * Frames on a user's stack have the next frame's address and a return address, on x86 and arm64.
 * The last frame names a page that is not mapped. Skips the test if this kernel's perf core does
 * not tell modules of user space.
 */
static struct user_space *new_user(struct kunit *test)
{
	struct user_space *u = pmuk_test_zalloc(test, sizeof(*u));
	unsigned long i, at;

	if (PMUK_SAMPLE_UNSUPPORTED)
		kunit_skip(test, "this kernel's perf core tells modules nothing of user space");
	if (kunit_attach_mm())
		kunit_skip(test, "no memory of its own for a thread");
	at = vm_mmap(NULL, 0, 2 * PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		     0);
	KUNIT_ASSERT_FALSE(test, IS_ERR_VALUE(at));
	KUNIT_ASSERT_EQ(test, vm_munmap(at + PAGE_SIZE, PAGE_SIZE), 0);
	for (i = 0; i < USER_FRAMES; i++) {
		u->frames[i].next = i + 1 < USER_FRAMES ? at + (i + 1) * sizeof(u->frames[0]) :
				    at + PAGE_SIZE;
		u->frames[i].return_to = RETURN_TO(i);
	}
	KUNIT_ASSERT_EQ(test, copy_to_user((void __user *)at, u->frames, sizeof(u->frames)), 0);
	u->regs[0] = 0x1122334455667788;
	u->regs[1] = at;
	u->regs[2] = at + 8;
	u->regs[3] = USER_IP;
	set_user_regs(&u->interrupted, u->regs);
	return u;
}

static void note_user(struct pmuk_counter *c, const struct pmuk_sample *sample, void *data)
{
	struct sampler *s = data;

	s->reported = *sample;
	s->nr_chain = 0;
	if (sample->regs_user)
		s->found = *sample->regs_user;
	if (!sample->callchain)
		return;
	s->nr_chain = min_t(u64, sample->callchain->nr, CHAIN_MAX);
	memcpy(s->chain, sample->callchain->ip, s->nr_chain * sizeof(u64));
}

static void want_user(struct sampler *s, u64 fields)
{
	want(s, fields);
	s->attr.sample_regs_user = fields & PERF_SAMPLE_REGS_USER ? ALL_REGS : 0;
	s->attr.sample_regs_intr = fields & PERF_SAMPLE_REGS_INTR ? SOME_REGS : 0;
	if (fields & PERF_SAMPLE_CALLCHAIN)
		s->attr.flags |= PMUK_CALLCHAIN_USER;
	s->attr.overflow = note_user;
	s->attr.data = s;
}

static struct sampler *new_user_sampler(struct kunit *test, const struct pmuk_sim_config *config,
					const struct user_space *u)
{
	struct sampler *s = new_sampler(test, config);

	s->user = u->regs;
	want_user(s, USER_FIELDS);
	return s;
}

static void expect_regs(struct kunit *test, const struct pmuk_parsed_regs *p,
			const unsigned long *wanted, unsigned int n)
{
	unsigned int i;

	KUNIT_EXPECT_NE(test, p->abi, PERF_SAMPLE_REGS_ABI_NONE);
	KUNIT_ASSERT_NOT_NULL(test, p->values);
	for (i = 0; i < n; i++)
		KUNIT_EXPECT_EQ_MSG(test, p->values[i], wanted[i], "register %u", i);
}

/* Expects a user's callchain of @n addresses. */
static void expect_user_chain(struct kunit *test, const u64 *chain, u64 nr, unsigned int n)
{
	unsigned int i;

	KUNIT_ASSERT_EQ(test, nr, 1 + n);
	KUNIT_EXPECT_EQ(test, chain[0], PERF_CONTEXT_USER);
	KUNIT_EXPECT_EQ(test, chain[1], USER_IP);
	for (i = 2; i <= n; i++)
		KUNIT_EXPECT_EQ_MSG(test, chain[i], RETURN_TO(i - 2), "frame %u", i - 2);
}

static void expect_user_record(struct kunit *test, const struct sampler *s,
			       const struct user_space *u)
{
	expect_regs(test, &s->parsed.regs_user, u->regs, 4);
	expect_regs(test, &s->parsed.regs_intr, u->regs + 2, 2);
	expect_user_chain(test, s->parsed.ips, s->parsed.nr_ips, 1 + USER_FRAMES);
}

/* The interrupt comes in user space. Between the registers are fields that the driver gives. */
static void registers_and_callchains_of_users(struct kunit *test)
{
	u64 given = PERF_SAMPLE_WEIGHT | PERF_SAMPLE_TRANSACTION | PERF_SAMPLE_PHYS_ADDR |
		    PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_BRANCH_STACK;
	struct user_space *u = new_user(test);
	struct sampler *s;

	s = new_user_sampler(test, &(struct pmuk_sim_config){
		.fill = pmuk_given_fill, .regs = &u->interrupted }, u);
	want_user(s, USER_FIELDS | given);
	record_once(test, s);
	KUNIT_EXPECT_EQ(test, s->parsed.misc, PERF_RECORD_MISC_USER);
	expect_user_record(test, s, u);
	expect_parsed(test, s, given);
	KUNIT_EXPECT_EQ(test, s->reported.valid & USER_FIELDS, USER_FIELDS);
	KUNIT_EXPECT_EQ(test, s->reported.regs_abi, s->parsed.regs_intr.abi);
	KUNIT_EXPECT_EQ(test, s->reported.regs_user_abi, s->parsed.regs_user.abi);
	KUNIT_EXPECT_EQ(test, instruction_pointer(&s->found), USER_IP);
	expect_user_chain(test, s->chain, s->nr_chain, 1 + USER_FRAMES);
	record_in_context(test, s);
	expect_user_record(test, s, u);
	expect_parsed(test, s, given);
}

/* The interrupt finds the kernel, which the user's task has entered. */
static void users_are_found_below_the_kernel(struct kunit *test)
{
	struct user_space *u = new_user(test);
	struct sampler *s = new_user_sampler(test, &(struct pmuk_sim_config){}, u);
	u64 kernel;

	record_once(test, s);
	expect_regs(test, &s->parsed.regs_user, u->regs, 4);
	KUNIT_ASSERT_NOT_NULL(test, s->parsed.regs_intr.values);
	KUNIT_EXPECT_EQ(test, s->parsed.regs_intr.values[1], s->reported.ip);
	KUNIT_ASSERT_GT(test, s->parsed.nr_ips, 3 + USER_FRAMES);
	KUNIT_EXPECT_EQ(test, s->parsed.ips[0], PERF_CONTEXT_KERNEL);
	KUNIT_EXPECT_EQ(test, s->parsed.ips[1], s->reported.ip);
	kernel = s->parsed.nr_ips - 2 - USER_FRAMES;
	expect_user_chain(test, s->parsed.ips + kernel, 2 + USER_FRAMES, 1 + USER_FRAMES);
	KUNIT_ASSERT_EQ(test, s->nr_chain, s->parsed.nr_ips);
	KUNIT_EXPECT_MEMEQ(test, s->chain, s->parsed.ips, s->nr_chain * sizeof(u64));
}

/* The late interrupt finds a kernel that the counter excludes: see expect_no_kernel_address(). */
static void hidden_samples_have_users_registers_only(struct kunit *test)
{
	struct user_space *u = new_user(test);
	struct sampler *s = new_user_sampler(test, &(struct pmuk_sim_config){ .skids = true }, u);

	s->attr.flags |= PMUK_EXCLUDE_KERNEL;
	record_once(test, s);
	KUNIT_EXPECT_EQ(test, s->reported.valid & USER_FIELDS,
			PERF_SAMPLE_REGS_USER | PERF_SAMPLE_CALLCHAIN);
	KUNIT_EXPECT_NULL(test, s->reported.regs);
	KUNIT_EXPECT_EQ(test, s->reported.regs_abi, PERF_SAMPLE_REGS_ABI_NONE);
	KUNIT_EXPECT_EQ(test, s->parsed.regs_intr.abi, PERF_SAMPLE_REGS_ABI_NONE);
	expect_regs(test, &s->parsed.regs_user, u->regs, 4);
	expect_user_chain(test, s->parsed.ips, s->parsed.nr_ips, 1 + USER_FRAMES);
	record_in_context(test, s);
	KUNIT_EXPECT_EQ(test, s->parsed.regs_intr.abi, PERF_SAMPLE_REGS_ABI_NONE);
	expect_user_chain(test, s->parsed.ips, s->parsed.nr_ips, 1 + USER_FRAMES);
}

/*
 * The driver of PEBS or IBS gives the address of the event in user space, and the late interrupt's
 * other registers, which may be the kernel's.
 */
static void exact_samples_have_no_registers_of_the_kernel(struct kunit *test)
{
	struct user_space *u = new_user(test);
	const unsigned long late[] = { 1, 2, (unsigned long)u, USER_IP };
	struct sampler *s;

	s = new_user_sampler(test, &(struct pmuk_sim_config){
		.regs = &u->interrupted, .skids = true }, u);
	set_user_regs(&u->interrupted, late);
	record_once(test, s);
	KUNIT_EXPECT_EQ(test, s->reported.valid & USER_FIELDS, USER_FIELDS);
	s->attr.flags |= PMUK_EXCLUDE_KERNEL;
	record_once(test, s);
	KUNIT_EXPECT_EQ(test, s->reported.ip, USER_IP);
	KUNIT_EXPECT_EQ(test, s->reported.valid & (PERF_SAMPLE_REGS_INTR | PERF_SAMPLE_REGS_USER),
			0);
	KUNIT_EXPECT_NULL(test, s->reported.regs);
	KUNIT_EXPECT_NULL(test, s->reported.regs_user);
	KUNIT_EXPECT_EQ(test, s->parsed.regs_intr.abi, PERF_SAMPLE_REGS_ABI_NONE);
	KUNIT_EXPECT_EQ(test, s->parsed.regs_user.abi, PERF_SAMPLE_REGS_ABI_NONE);
}

static void kernel_threads_have_no_user_space(struct kunit *test)
{
	struct user_space *u = new_user(test);
	struct sampler *s = new_user_sampler(test, &(struct pmuk_sim_config){}, u);

	s->user = NULL;
	record_once(test, s);
	KUNIT_EXPECT_EQ(test, s->reported.valid & USER_FIELDS,
			PERF_SAMPLE_REGS_INTR | PERF_SAMPLE_CALLCHAIN);
	KUNIT_EXPECT_NULL(test, s->reported.regs_user);
	KUNIT_EXPECT_EQ(test, s->parsed.regs_user.abi, PERF_SAMPLE_REGS_ABI_NONE);
	KUNIT_ASSERT_GT(test, s->parsed.nr_ips, 2);
	KUNIT_EXPECT_EQ(test, s->parsed.ips[0], PERF_CONTEXT_KERNEL);
}

static int child_of_a_user(void *s)
{
	count_as_user(s);
	pmuk_exit_child();
	return 0;
}

/*
 * perf core gives no callchain in user space if the event is another task's. The counter that is
 * not inherited keeps perf core from exchanging the events of parent and child.
 */
static void children_have_callchains(struct kunit *test)
{
	struct pmuk_attr other = { .config = 1 };
	struct user_space *u = new_user(test);
	struct sampler *s;
	pid_t pid;

	s = new_user_sampler(test, &(struct pmuk_sim_config){ .regs = &u->interrupted }, u);
	pmuk_need_fork(test);
	other.type = s->attr.type;
	pmuk_test_enabled(test, &other, -1, current);
	s->attr.flags |= PMUK_INHERIT;
	pmuk_test_enabled(test, &s->attr, -1, current);
	pid = pmuk_fork(child_of_a_user, s);
	KUNIT_ASSERT_GT(test, pid, 0);
	KUNIT_EXPECT_TRUE(test, pmuk_reap(pid));
	KUNIT_EXPECT_EQ(test, s->reported.valid & USER_FIELDS, USER_FIELDS);
	expect_user_chain(test, s->chain, s->nr_chain, 1 + USER_FRAMES);
}

static void max_stack_limits_users_callchains(struct kunit *test)
{
	struct user_space *u = new_user(test);
	struct sampler *s;

	s = new_user_sampler(test, &(struct pmuk_sim_config){ .regs = &u->interrupted }, u);
	s->attr.max_stack = 3;
	record_once(test, s);
	expect_user_chain(test, s->parsed.ips, s->parsed.nr_ips, 3);
	record_in_context(test, s);
	expect_user_chain(test, s->parsed.ips, s->parsed.nr_ips, 3);
}

/* perf core sizes its memory for callchains by the sysctl, and no counter has callchains now. */
static void reset_perfs_max_stack(void *depth)
{
	WRITE_ONCE(sysctl_perf_event_max_stack, (long)depth);
}

static void perfs_max_stack_limits_callchains(struct kunit *test)
{
	struct user_space *u = new_user(test);
	void *old = (void *)(long)sysctl_perf_event_max_stack;
	struct sampler *s;

	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, reset_perfs_max_stack, old), 0);
	WRITE_ONCE(sysctl_perf_event_max_stack, 3);
	s = new_user_sampler(test, &(struct pmuk_sim_config){ .regs = &u->interrupted }, u);
	record_once(test, s);
	expect_user_chain(test, s->parsed.ips, s->parsed.nr_ips, 3);
	record_in_context(test, s);
	expect_user_chain(test, s->parsed.ips, s->parsed.nr_ips, 3);
	s->attr.max_stack = 4;
	pmuk_test_refused(test, &s->attr, s->cpu, NULL, -EOVERFLOW, "deeper than perf's");
}

/* pmuk unwinds the kernel's stack itself, on all kernels. Nobody sets frames here. */
static void max_stack_limits_the_kernels_callchains(struct kunit *test)
{
	struct sampler *s = new_sampler(test, &(struct pmuk_sim_config){});
	unsigned int i;

	want(s, PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_IP);
	record_once(test, s);
	KUNIT_EXPECT_GT(test, s->parsed.nr_ips, 3);
	for (i = 1; i <= 2; i++) {
		s->attr.max_stack = i;
		record_once(test, s);
		KUNIT_ASSERT_EQ(test, s->parsed.nr_ips, 1 + i);
		KUNIT_EXPECT_EQ(test, s->parsed.ips[0], PERF_CONTEXT_KERNEL);
		KUNIT_EXPECT_EQ(test, s->parsed.ips[1], s->parsed.ip);
		record_in_context(test, s);
		KUNIT_EXPECT_EQ(test, s->parsed.nr_ips, 1 + i);
	}
}

/* Counters of a context need not have what the format has. The layout says that it is missing. */
static void counters_of_contexts_may_have_no_registers(struct kunit *test)
{
	struct user_space *u = new_user(test);
	struct sampler *s;

	s = new_user_sampler(test, &(struct pmuk_sim_config){ .regs = &u->interrupted }, u);
	s->attr.sample_regs_user = 0;
	s->attr.sample_regs_intr = 0;
	s->attr.flags = PMUK_NO_THROTTLE;
	record_in_context(test, s);
	KUNIT_EXPECT_EQ(test, s->parsed.regs_user.abi, PERF_SAMPLE_REGS_ABI_NONE);
	KUNIT_EXPECT_EQ(test, s->parsed.regs_intr.abi, PERF_SAMPLE_REGS_ABI_NONE);
	KUNIT_EXPECT_EQ(test, s->parsed.nr_ips, 0);
}

static void formats_get_users_registers(struct kunit *test)
{
	const struct pmuk_sample *t = &handled.sample;
	struct user_space *u = new_user(test);
	struct sampler *s;

	s = new_user_sampler(test, &(struct pmuk_sim_config){ .regs = &u->interrupted }, u);
	handle_once(test, s);
	KUNIT_EXPECT_EQ(test, t->valid & USER_FIELDS, USER_FIELDS);
	KUNIT_EXPECT_NOT_NULL(test, t->regs_user);
	KUNIT_EXPECT_NE(test, t->regs_user_abi, PERF_SAMPLE_REGS_ABI_NONE);
	KUNIT_EXPECT_NOT_NULL(test, t->callchain);
	KUNIT_EXPECT_EQ(test, handled.sample_flags, PERF_SAMPLE_PERIOD);
}

/* Counters that share a register get the same. Other registers or depths take another register. */
static void users_registers_reach_all_who_share(struct kunit *test)
{
	struct user_space *u = new_user(test);
	struct sampler *s, *other = pmuk_test_zalloc(test, sizeof(*other));

	s = new_user_sampler(test, &(struct pmuk_sim_config){ .regs = &u->interrupted }, u);
	s->attr.flags = SHARED | PMUK_CALLCHAIN_USER;
	pmuk_test_enabled(test, &s->attr, s->cpu, NULL);
	s->attr.data = other;
	pmuk_test_enabled(test, &s->attr, s->cpu, NULL);
	overflow_once(test, s);
	KUNIT_EXPECT_EQ(test, s->reported.valid & USER_FIELDS, USER_FIELDS);
	KUNIT_EXPECT_EQ(test, other->reported.valid, s->reported.valid);
	KUNIT_EXPECT_EQ(test, instruction_pointer(&other->found), USER_IP);
	expect_user_chain(test, s->chain, s->nr_chain, 1 + USER_FRAMES);
	expect_user_chain(test, other->chain, other->nr_chain, 1 + USER_FRAMES);
	s->attr.sample_regs_user = SOME_REGS;
	pmuk_test_enabled(test, &s->attr, s->cpu, NULL);
	s->attr.sample_regs_user = ALL_REGS;
	s->attr.sample_regs_intr = ALL_REGS;
	pmuk_test_refused(test, &s->attr, s->cpu, NULL, -ENOSPC, "other registers");
	s->attr.sample_regs_intr = SOME_REGS;
	s->attr.max_stack = 3;
	pmuk_test_refused(test, &s->attr, s->cpu, NULL, -ENOSPC, "another depth");
	s->attr.max_stack = 0;
	pmuk_test_enabled(test, &s->attr, s->cpu, NULL);
}

static void room_is_for_the_same_registers(struct kunit *test)
{
	struct user_space *u = new_user(test);
	struct sampler *s = new_user_sampler(test, &(struct pmuk_sim_config){}, u);
	u32 fits;

	s->attr.max_stack = 5;
	KUNIT_EXPECT_EQ(test, pmuk_room(&s->attr, 1, s->cpu, &fits), 1);
	KUNIT_EXPECT_EQ(test, s->seen.sample_type, USER_FIELDS);
	KUNIT_EXPECT_EQ(test, s->seen.sample_regs_user, ALL_REGS);
	KUNIT_EXPECT_EQ(test, s->seen.sample_regs_intr, SOME_REGS);
	KUNIT_EXPECT_EQ(test, s->seen.sample_max_stack, 5);
	s->attr.flags = 0;
	s->attr.max_stack = 1;
	KUNIT_EXPECT_EQ(test, pmuk_room(&s->attr, 1, s->cpu, &fits), 1);
	KUNIT_EXPECT_EQ(test, s->seen.sample_type & PERF_SAMPLE_CALLCHAIN, 0);
}

/* A counter and a context's counter with these attributes are refused. */
static void expect_user_refused(struct kunit *test, struct sampler *s, int errno, const char *what)
{
	struct pmuk_context *ctx = pmuk_ctx_create(test, &(struct pmuk_context_attr){});
	struct pmuk_pmc pmc = pmc_of(s);

	pmuk_test_refused(test, &s->attr, s->cpu, NULL, errno, what);
	KUNIT_EXPECT_EQ_MSG(test, pmuk_write_pmcs(ctx, &pmc, 1), 0, "%s", what);
	KUNIT_EXPECT_EQ_MSG(test, pmc.ret, errno, "%s", what);
}

static void bad_registers_are_refused(struct kunit *test)
{
	struct user_space *u = new_user(test);
	struct sampler *s = new_user_sampler(test, &(struct pmuk_sim_config){}, u);
	int extended = pmuk_reg_validate(PERF_REG_EXTENDED_MASK) ? -EINVAL : -EOPNOTSUPP;

	s->attr.sample_regs_user |= BIT_ULL(REG_BAD);
	expect_user_refused(test, s, -EINVAL, "an unknown register of the user's");
	want_user(s, USER_FIELDS);
	s->attr.sample_regs_intr |= BIT_ULL(REG_BAD);
	expect_user_refused(test, s, -EINVAL, "an unknown register");
	s->attr.sample_regs_intr = PERF_REG_EXTENDED_MASK;
	pmuk_test_refused(test, &s->attr, s->cpu, NULL, extended, "a register for other PMUs");
}

static void bad_attributes_of_users_are_refused(struct kunit *test)
{
	struct sampler *s = new_sampler(test, &(struct pmuk_sim_config){});

	s->attr.sample_regs_intr = SOME_REGS;
	pmuk_test_refused(test, &s->attr, s->cpu, NULL, -EINVAL, "no REGS_INTR");
	s->attr.sample_regs_intr = 0;
	s->attr.sample_regs_user = SOME_REGS;
	pmuk_test_refused(test, &s->attr, s->cpu, NULL, -EINVAL, "no REGS_USER");
	s->attr.sample_regs_user = 0;
	s->attr.max_stack = 1;
	pmuk_test_refused(test, &s->attr, s->cpu, NULL, -EINVAL, "no CALLCHAIN");
	s->attr.max_stack = 0;
	s->attr.flags |= PMUK_CALLCHAIN_USER;
	pmuk_test_refused(test, &s->attr, s->cpu, NULL, -EINVAL, "no CALLCHAIN either");
	s->attr.flags = PMUK_NO_THROTTLE;
	want(s, PERF_SAMPLE_REGS_USER);
	pmuk_test_refused(test, &s->attr, s->cpu, NULL, -EINVAL, "no registers");
	want(s, PERF_SAMPLE_CALLCHAIN);
	pmuk_test_refused(test, &s->attr, s->cpu, NULL, -EOPNOTSUPP, "no callchain of perf core's");
	s->attr.buffer = pmuk_test_new_buffer(test, &(struct pmuk_buffer_attr){ .nr_pages = 1 },
					      s->cpu);
	s->attr.max_stack = PMUK_CALLCHAIN_MAX + 1;
	expect_user_refused(test, s, -EINVAL, "deeper than pmuk unwinds");
	s->attr.flags |= PMUK_CALLCHAIN_USER;
	s->attr.max_stack = PMUK_MAX_STACK_MAX + 1;
	expect_user_refused(test, s, -EINVAL, "too deep");
	s->attr.max_stack = PMUK_MAX_STACK_MAX;
	pmuk_test_refused(test, &s->attr, s->cpu, NULL,
			  PMUK_SAMPLE_UNSUPPORTED ? -EOPNOTSUPP : -EOVERFLOW, "deeper than perf's");
	s->attr.flags = PMUK_NO_THROTTLE;
	s->attr.max_stack = 0;
	want(s, PERF_SAMPLE_REGS_INTR);
	pmuk_test_refused(test, &s->attr, s->cpu, NULL, -EINVAL, "records without a mask");
	s->attr.buffer = NULL;
	sample_once(test, s);
	KUNIT_EXPECT_NOT_NULL(test, s->reported.regs);
	KUNIT_EXPECT_EQ(test, s->reported.regs_abi, PERF_SAMPLE_REGS_ABI_NONE);
}

/* On stock kernels all three are refused, with and without records, and in contexts. */
static void kernels_may_know_no_users(struct kunit *test)
{
	static const u64 fields[] = {
		PERF_SAMPLE_REGS_USER, PERF_SAMPLE_REGS_INTR, PERF_SAMPLE_CALLCHAIN,
	};
	struct sampler *s = new_sampler(test, &(struct pmuk_sim_config){});
	struct pmuk_context *ctx;
	struct pmuk_pmc pmc;
	unsigned int i;

	if (!PMUK_SAMPLE_UNSUPPORTED)
		kunit_skip(test, "this kernel's perf core tells modules of user space");
	for (i = 0; i < ARRAY_SIZE(fields); i++) {
		s->attr.flags = PMUK_NO_THROTTLE;
		want_user(s, fields[i]);
		expect_user_refused(test, s, -EOPNOTSUPP, "callback");
		s->attr.buffer = pmuk_test_new_buffer(test, &(struct pmuk_buffer_attr){
			.nr_pages = 1 }, s->cpu);
		expect_user_refused(test, s, -EOPNOTSUPP, "records");
		s->attr.buffer = NULL;
	}
	ctx = pmuk_ctx_create(test, &(struct pmuk_context_attr){});
	pmc = (struct pmuk_pmc){ .type = s->attr.type, .sample_regs_user = SOME_REGS };
	KUNIT_EXPECT_EQ(test, pmuk_write_pmcs(ctx, &pmc, 1), 0);
	KUNIT_EXPECT_EQ(test, pmc.ret, -EOPNOTSUPP);
	noting_format.sample_type = PERF_SAMPLE_CALLCHAIN;
	KUNIT_EXPECT_EQ(test, pmuk_register_format(&noting_format), -EOPNOTSUPP);
	noting_format.sample_type = PERF_SAMPLE_REGS_USER;
	KUNIT_EXPECT_EQ(test, pmuk_register_format(&noting_format), -EOPNOTSUPP);
}

/* ---- what contradicts ---- */

static u32 no_handler(const struct pmuk_format_event *event)
{
	return 0;
}

static void weight_is_of_one_kind(struct kunit *test)
{
	struct pmuk_perf_format perf = { .sample_type = PERF_SAMPLE_WEIGHT_TYPE };
	struct pmuk_context_attr attr = { .format_arg = &perf, .format_arg_size = sizeof(perf) };
	static struct pmuk_format format = {
		.name = "pmuk_weights", .handler = no_handler, .owner = THIS_MODULE,
		.uuid = UUID_INIT(0x11, 0x22, 0x33, 1, 2, 3, 4, 5, 6, 7, 8),
	};
	struct sampler *s = new_full_sampler(test);

	want(s, PERF_SAMPLE_WEIGHT_TYPE);
	format.sample_type = PERF_SAMPLE_WEIGHT_TYPE;
	pmuk_test_refused(test, &s->attr, s->cpu, NULL, -EINVAL, "two weights");
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(pmuk_create_context(&attr)), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_register_format(&format), -EINVAL);
	format.sample_type = PERF_SAMPLE_CODE_PAGE_SIZE;
	if (PMUK_SAMPLE_UNSUPPORTED)
		KUNIT_EXPECT_EQ(test, pmuk_register_format(&format), -EOPNOTSUPP);
	else
		pmuk_ctx_format(test, &format);
}

/* ---- precision ---- */

static const struct pmuk_test_value refusals[] = {
	{ "EOPNOTSUPP", EOPNOTSUPP }, { "EINVAL", EINVAL }, { "ENOENT", ENOENT },
};

KUNIT_ARRAY_PARAM_DESC(refusals, refusals, name);

static void best_precision_is_found(struct kunit *test)
{
	struct sampler *s = new_full_sampler(test);

	s->refusal = -pmuk_test_param(test);
	want(s, PERF_SAMPLE_IP);
	s->attr.precise_ip = PMUK_PRECISE_BEST;
	for (s->most_precise = 0; s->most_precise <= 3; s->most_precise++) {
		sample_once(test, s);
		KUNIT_EXPECT_EQ(test, seen_precise(s), s->most_precise);
		KUNIT_EXPECT_EQ(test, s->reported.period, PERIOD);
		/* x86's driver takes this as a reason to interrupt for each sample. */
		KUNIT_EXPECT_EQ(test, s->seen.wakeup_events, 1);
		KUNIT_EXPECT_EQ(test, !!s->seen.watermark, false);
		record_in_context(test, s);
		KUNIT_EXPECT_EQ(test, seen_precise(s), s->most_precise);
	}
}

/* Only x86's driver marks samples as exact. */
static void exact_samples_say_so(struct kunit *test)
{
	u16 exact = IS_ENABLED(CONFIG_X86) ? PERF_RECORD_MISC_EXACT_IP : 0;
	struct sampler *s;

	s = new_sampler(test, &(struct pmuk_sim_config){ .exact = true });
	want(s, PERF_SAMPLE_IP);
	record_once(test, s);
	KUNIT_EXPECT_EQ(test, s->reported.misc, PERF_RECORD_MISC_KERNEL | exact);
	KUNIT_EXPECT_EQ(test, s->parsed.misc, PERF_RECORD_MISC_KERNEL | exact);
}

static void precise_counters_of_contexts_have_periods(struct kunit *test)
{
	struct pmuk_context *ctx = pmuk_ctx_create(test, &(struct pmuk_context_attr){});
	struct sampler *s = new_full_sampler(test);
	struct pmuk_pmc pmc = { .type = s->attr.type, .precise_ip = PMUK_PRECISE_BEST };

	KUNIT_ASSERT_EQ(test, pmuk_write_pmcs(ctx, &pmc, 1), 1);
	KUNIT_EXPECT_EQ(test, pmuk_ctx_try_load(ctx, s->cpu), -EINVAL);
	pmc.precise_ip++;
	KUNIT_EXPECT_EQ(test, pmuk_write_pmcs(ctx, &pmc, 1), 0);
	KUNIT_EXPECT_EQ(test, pmc.ret, -EINVAL);
}

static void wanted_precision_is_asked_for(struct kunit *test)
{
	struct sampler *s = new_full_sampler(test);

	s->most_precise = 2;
	for (s->attr.precise_ip = 0; s->attr.precise_ip <= 2; s->attr.precise_ip++) {
		sample_once(test, s);
		KUNIT_EXPECT_EQ(test, seen_precise(s), s->attr.precise_ip);
	}
	pmuk_test_refused(test, &s->attr, s->cpu, NULL, -EOPNOTSUPP, "precise_ip 3");
	s->attr.precise_ip = PMUK_PRECISE_BEST + 1;
	pmuk_test_refused(test, &s->attr, s->cpu, NULL, -EINVAL, "no such precise_ip");
	s->attr.precise_ip = 1;
	s->attr.period = 0;
	s->attr.overflow = NULL;
	pmuk_test_refused(test, &s->attr, s->cpu, NULL, -EINVAL, "no period");
}

/* Riders of one register ask for the same precision, which their host has. */
static void shared_counters_have_one_precision(struct kunit *test)
{
	struct sampler *s = new_full_sampler(test);

	s->most_precise = 2;
	s->attr.flags = SHARED;
	s->attr.precise_ip = PMUK_PRECISE_BEST;
	pmuk_test_enabled(test, &s->attr, s->cpu, NULL);
	KUNIT_EXPECT_EQ(test, seen_precise(s), 2);
	s->attr.precise_ip = 1;
	pmuk_test_enabled(test, &s->attr, s->cpu, NULL);
	KUNIT_EXPECT_EQ(test, seen_precise(s), 1);
	s->attr.precise_ip = 0;
	pmuk_test_refused(test, &s->attr, s->cpu, NULL, -ENOSPC, "a third register");
	s->attr.precise_ip = PMUK_PRECISE_BEST;
	pmuk_test_enabled(test, &s->attr, s->cpu, NULL);
}

static struct kunit_case pmuk_sample_cases[] = {
	KUNIT_CASE_PARAM(given_fields_reach_callbacks, fields_gen_params),
	KUNIT_CASE_PARAM(given_fields_reach_records, fields_gen_params),
	KUNIT_CASE_PARAM(given_fields_reach_contexts, fields_gen_params),
	KUNIT_CASE_PARAM(given_fields_reach_all_who_share, fields_gen_params),
	KUNIT_CASE_PARAM(unknown_fields_are_not_claimed, fields_gen_params),
	KUNIT_CASE(core_finds_physical_addresses),
	KUNIT_CASE(core_finds_addresses_for_all_who_share),
	KUNIT_CASE(drivers_are_asked_for_addresses),
	KUNIT_CASE(core_knows_no_physical_address_of_nothing),

	KUNIT_CASE(core_finds_page_sizes),
	KUNIT_CASE(page_sizes_of_nothing_are_not_claimed),
	KUNIT_CASE(cgroup_is_the_current_tasks),
	KUNIT_CASE(hidden_samples_have_no_address),
	KUNIT_CASE(branches_have_their_index),
	KUNIT_CASE(record_may_have_no_branches),
	KUNIT_CASE(branches_are_of_the_counted_levels),
	KUNIT_CASE(bad_branches_are_refused),
	KUNIT_CASE(pmu_may_have_no_branches),
	KUNIT_CASE(weight_is_of_one_kind),
	KUNIT_CASE(formats_get_fields),
	KUNIT_CASE(formats_get_perfs_data_as_the_driver_left_them),
	KUNIT_CASE(room_is_for_the_same_event),
	KUNIT_CASE(registers_and_callchains_of_users),
	KUNIT_CASE(users_are_found_below_the_kernel),
	KUNIT_CASE(hidden_samples_have_users_registers_only),
	KUNIT_CASE(exact_samples_have_no_registers_of_the_kernel),
	KUNIT_CASE(kernel_threads_have_no_user_space),
	KUNIT_CASE(children_have_callchains),
	KUNIT_CASE(max_stack_limits_users_callchains),
	KUNIT_CASE(perfs_max_stack_limits_callchains),
	KUNIT_CASE(max_stack_limits_the_kernels_callchains),
	KUNIT_CASE(counters_of_contexts_may_have_no_registers),
	KUNIT_CASE(formats_get_users_registers),
	KUNIT_CASE(users_registers_reach_all_who_share),
	KUNIT_CASE(room_is_for_the_same_registers),
	KUNIT_CASE(bad_registers_are_refused),
	KUNIT_CASE(bad_attributes_of_users_are_refused),
	KUNIT_CASE(kernels_may_know_no_users),
	KUNIT_CASE_PARAM(best_precision_is_found, refusals_gen_params),
	KUNIT_CASE(exact_samples_say_so),
	KUNIT_CASE(precise_counters_of_contexts_have_periods),
	KUNIT_CASE(wanted_precision_is_asked_for),
	KUNIT_CASE(shared_counters_have_one_precision),
	{}
};

PMUK_SUITE(pmuk_sample, pmuk_test_init, "KUnit tests of what pmuk's samples hold");
