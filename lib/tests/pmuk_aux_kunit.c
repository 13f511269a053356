// SPDX-License-Identifier: GPL-2.0
/*
 * The tests check the AUX area of a buffer: by the rules that also run in user space, and then what
 * only a buffer in the kernel has: its memory, its wakeups, its producer's callbacks, a reader on
 * another CPU, and its end.
 */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/limits.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/workqueue.h>

#include "../../kernel/pmu_kapi/context.h"
#include "pmuk_aux.h"
#include "pmuk_aux_rules.h"
#include "pmuk_ctx.h"
#include "pmuk_map.h"
#include "pmuk_suite.h"

KUNIT_ARRAY_PARAM_DESC(aux_rules, aux_rules, name);

static void rules(struct kunit *test)
{
	if (IS_ENABLED(CONFIG_KCSAN))
		kunit_skip(test, "one task has no data races");
	aux_run(test, test->param_value);
}

static struct pmuk_test_aux *new_aux(struct kunit *test, u32 nr_pages)
{
	return pmuk_test_new_aux(test, &(struct pmuk_buffer_attr){
		.nr_pages = 1, .aux.nr_pages = nr_pages });
}

static void fresh_area_is_empty(struct kunit *test)
{
	struct pmuk_test_aux *a = new_aux(test, 4);
	struct pmuk_aux_stat stat = pmuk_test_aux_stat(a), none = {};

	KUNIT_EXPECT_EQ(test, memcmp(&stat, &none, sizeof(stat)), 0);
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_drain(a), 0);
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_told_nothing(a));
	KUNIT_EXPECT_EQ(test, pmuk_buffer_control(a->b)->aux_head, 0);
	KUNIT_EXPECT_PTR_EQ(test, pmuk_aux_data(a->b, NULL), (const void *)a->data);
	KUNIT_EXPECT_NULL(test, memchr_inv(a->data, 0, 2 * a->size));
}

static struct perf_event_mmap_page *user_page(struct pmuk_test_aux *a)
{
	return (struct perf_event_mmap_page *)pmuk_buffer_control(a->b);
}

static struct pmuk_test_aux *new_user_aux(struct kunit *test, u32 nr_pages)
{
	return pmuk_test_new_aux(test, &(struct pmuk_buffer_attr){
		.nr_pages = 1, .flags = PMUK_BUFFER_USER_TAIL, .aux.nr_pages = nr_pages });
}

static void user_area_has_no_kernel_reader(struct kunit *test)
{
	struct pmuk_test_aux *a = new_user_aux(test, 1);
	struct pmuk_aux_reader r;

	KUNIT_EXPECT_EQ(test, pmuk_aux_claim(a->b, &r), -EPERM);
}

/* ---- wakeups ---- */

/* Parts of @part bytes wake the reader at each multiple of @mark. */
static void expect_mark(struct kunit *test, u32 nr_pages, u32 asked, u64 mark, u64 part)
{
	struct pmuk_test_aux *a = pmuk_test_new_aux(test, &(struct pmuk_buffer_attr){
		.aux = { .nr_pages = nr_pages, .watermark = asked } });
	unsigned int i, woken = 0;

	for (i = 1; i <= 200; i++) {
		KUNIT_ASSERT_TRUE(test, pmuk_test_aux_write(a, part));
		KUNIT_ASSERT_EQ(test, pmuk_test_aux_stat(a).wakeups, i * part / mark);
		for (; woken < i * part / mark; woken++)
			KUNIT_ASSERT_NE(test, wait_for_completion_timeout(&a->more, 10 * HZ), 0);
		KUNIT_ASSERT_EQ(test, pmuk_test_aux_drain(a), part);
	}
	KUNIT_EXPECT_EQ(test, pmuk_test_completions(&a->more), 0);
}

static void watermark_in_bytes(struct kunit *test)
{
	expect_mark(test, 1, 1000, 1000, 40);
	expect_mark(test, 1, 1, 1, 1);
	expect_mark(test, 1, PAGE_SIZE / 2, PAGE_SIZE / 2, 100);
}

static void watermark_is_half_by_default(struct kunit *test)
{
	expect_mark(test, 1, 0, PAGE_SIZE / 2, 100);
	expect_mark(test, 4, 0, 2 * PAGE_SIZE, 3000);
}

static void watermark_is_at_most_half(struct kunit *test)
{
	expect_mark(test, 1, PAGE_SIZE / 2 + 1, PAGE_SIZE / 2, 100);
	expect_mark(test, 4, U32_MAX, 2 * PAGE_SIZE, 3000);
}

/*
 * epoll_ctl(2) polls the file once before epoll_wait(2) does. A full area wakes nobody again, so
 * both calls get EPOLLIN, also if the ring has lost no record.
 */
static void full_area_is_polled_again(struct kunit *test)
{
	struct pmuk_test_aux *a = new_aux(test, 1);
	__poll_t in = EPOLLIN | EPOLLRDNORM;

	KUNIT_EXPECT_TRUE(test, !pmuk_buffer_poll(a->b, NULL, NULL));
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_write(a, a->size));
	KUNIT_EXPECT_FALSE(test, pmuk_test_aux_write(a, 1));
	irq_work_sync(&a->b->wake_work);
	KUNIT_EXPECT_TRUE(test, pmuk_buffer_poll(a->b, NULL, NULL) == in);
	KUNIT_EXPECT_TRUE(test, pmuk_buffer_poll(a->b, NULL, NULL) == in);
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_drain(a), a->size);
	KUNIT_EXPECT_TRUE(test, !pmuk_buffer_poll(a->b, NULL, NULL));
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_write(a, 1));
	KUNIT_EXPECT_TRUE(test, !pmuk_buffer_poll(a->b, NULL, NULL));
}

/* ---- what is refused ---- */

static const struct pmuk_aux_ops no_setup = { .free = pmuk_test_free };

static void create_refuses_bad_attributes(struct kunit *test)
{
	static const struct {
		struct pmuk_aux_attr aux;
		const char *what;
	} bad[] = {
		{ { .order = 1 }, "order without pages" },
		{ { .prefer = true }, "prefer without pages" },
		{ { .overwrite = true }, "overwrite without pages" },
		{ { .watermark = 1 }, "watermark without pages" },
		{ { .ops = &pmuk_test_ops }, "ops without pages" },
		{ { .data = (void *)bad }, "data without pages" },
		{ { .nr_pages = 3 }, "nr_pages" },
		{ { .nr_pages = 1 << 20 }, "nr_pages" },
		{ { .nr_pages = U32_MAX }, "nr_pages" },
		{ { .nr_pages = 1, .order = 1 }, "order" },
		{ { .nr_pages = 8, .order = 4, .prefer = true }, "order" },
		{ { .nr_pages = 1 << 19, .order = MAX_PAGE_ORDER + 1 }, "order" },
		{ { .nr_pages = 1 << 19, .order = U8_MAX, .prefer = true }, "order" },
		{ { .nr_pages = 1, .ops = &no_setup }, "ops without setup" },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		const struct pmuk_buffer_attr attr = { .nr_pages = 1, .aux = bad[i].aux };

		pmuk_test_refused_buffer(test, &attr, 0, bad[i].what);
	}
}

static void create_refuses_what_does_not_go_together(struct kunit *test)
{
	const struct pmuk_buffer_attr no_cpu = { .aux.nr_pages = 1 };
	const struct pmuk_buffer_attr two_tails = {
		.nr_pages = 1,
		.flags = PMUK_BUFFER_USER_TAIL,
		.aux = { .nr_pages = 1, .overwrite = true },
	};

	pmuk_test_refused_buffer(test, &no_cpu, -1, "an area and no CPU");
	pmuk_test_refused_buffer(test, &two_tails, 0, "overwritten with a tail");
}

static void create_takes_good_attributes(struct kunit *test)
{
	static const struct pmuk_aux_attr good[] = {
		{ .nr_pages = 1 }, { .nr_pages = 64 },
		{ .nr_pages = 64, .order = 6 }, { .nr_pages = 64, .order = 3, .prefer = true },
		{ .nr_pages = 2, .overwrite = true, .watermark = U32_MAX },
		{ .nr_pages = 2, .data = (void *)good },
	};
	unsigned int i;
	size_t size;

	for (i = 0; i < ARRAY_SIZE(good); i++) {
		const struct pmuk_buffer_attr attr = { .aux = good[i] };
		struct pmuk_buffer *b = pmuk_buffer_create(&attr, 0);

		KUNIT_ASSERT_EQ(test, PTR_ERR_OR_ZERO(b), 0);
		KUNIT_EXPECT_NOT_NULL(test, pmuk_aux_data(b, &size));
		KUNIT_EXPECT_EQ(test, size, good[i].nr_pages * PAGE_SIZE);
		pmuk_buffer_destroy(b);
		KUNIT_EXPECT_EQ(test, pmuk_nr_buffers(), 0);
	}
}

static void expect_errno(struct kunit *test, struct pmuk_buffer *b, int wanted)
{
	struct pmuk_aux_reader r;
	struct pmuk_aux_stat stat;
	size_t size = 1;

	KUNIT_EXPECT_NULL(test, pmuk_aux_data(b, &size));
	KUNIT_EXPECT_EQ(test, size, 0);
	KUNIT_EXPECT_NULL(test, pmuk_aux_data(b, NULL));
	KUNIT_EXPECT_EQ(test, pmuk_aux_get_stat(b, &stat), wanted);
	KUNIT_EXPECT_EQ(test, pmuk_aux_get_stat(b, NULL), wanted);
	KUNIT_EXPECT_EQ(test, pmuk_aux_pause(b), wanted);
	KUNIT_EXPECT_EQ(test, pmuk_aux_resume(b), wanted);
	KUNIT_EXPECT_EQ(test, pmuk_aux_claim(b, &r), wanted);
}

/* Begin returns NULL. The other calls refuse the handle, and do no harm. */
static void expect_nothing_begins(struct kunit *test, struct pmuk_buffer *b)
{
	struct pmuk_aux_handle h;

	guard(preempt)();
	memset(&h, 0xff, sizeof(h));
	KUNIT_EXPECT_NULL(test, pmuk_aux_output_begin(&h, b));
	KUNIT_EXPECT_NULL(test, pmuk_get_aux(&h));
	KUNIT_EXPECT_EQ(test, pmuk_aux_output_skip(&h, 0), -EINVAL);
	pmuk_aux_output_flag(&h, PERF_AUX_FLAG_TRUNCATED);
	pmuk_aux_output_end(&h, 1);
	pmuk_aux_output_lose(b, 1);
}

static void calls_refuse_no_buffer(struct kunit *test)
{
	struct pmuk_buffer *none[] = { NULL, ERR_PTR(-ENOMEM) };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(none); i++) {
		expect_errno(test, none[i], -EINVAL);
		expect_nothing_begins(test, none[i]);
	}
}

static void calls_refuse_no_area(struct kunit *test)
{
	struct pmuk_buffer *b = pmuk_test_new_buffer(test, &(struct pmuk_buffer_attr){
		.nr_pages = 1 }, pmuk_test_pin_first(test));

	expect_errno(test, b, -ENOENT);
	expect_nothing_begins(test, b);
	KUNIT_EXPECT_EQ(test, pmuk_test_buffer_stat(test, b).head, 0);
}

static void calls_refuse_no_answer(struct kunit *test)
{
	struct pmuk_test_aux *a = new_aux(test, 1);
	struct pmuk_aux_reader r;

	KUNIT_EXPECT_EQ(test, pmuk_aux_get_stat(a->b, NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_aux_get_stat(a->b, ERR_PTR(-ENOMEM)), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_aux_claim(a->b, NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, pmuk_aux_claim(a->b, ERR_PTR(-ENOMEM)), -EINVAL);
	KUNIT_ASSERT_EQ(test, pmuk_aux_claim(a->b, &r), 0);
	pmuk_aux_release(&r);
}

/* ---- the producer's callbacks ---- */

static struct pmuk_test_aux *new_produced(struct pmuk_test_producer *p,
					  const struct pmuk_aux_ops *ops, struct pmuk_aux_attr aux)
{
	/* An area that overwrites has no records beside it. */
	struct pmuk_buffer_attr attr = { .nr_pages = !aux.overwrite, .aux = aux };

	attr.aux.ops = ops;
	attr.aux.data = p;
	return pmuk_test_new_aux(p->test, &attr);
}

static void callbacks_are_called_once(struct kunit *test)
{
	struct pmuk_test_producer *p = pmuk_test_new_producer(test);
	struct pmuk_test_aux *a = new_produced(p, &pmuk_test_ops, (struct pmuk_aux_attr){
		.nr_pages = 4, .overwrite = true });
	struct pmuk_aux_handle h;

	KUNIT_EXPECT_EQ(test, p->setups, 1);
	KUNIT_EXPECT_EQ(test, p->cpu, raw_smp_processor_id());
	KUNIT_EXPECT_EQ(test, p->nr_pages, 4);
	KUNIT_EXPECT_TRUE(test, p->overwrite);
	KUNIT_EXPECT_EQ(test, p->pieces, 4);
	scoped_guard(preempt)
		KUNIT_EXPECT_PTR_EQ(test, pmuk_aux_output_begin(&h, a->b), (void *)p);
	KUNIT_EXPECT_PTR_EQ(test, pmuk_get_aux(&h), (void *)p);
	KUNIT_EXPECT_PTR_EQ(test, h.data, (void *)a->data);
	pmuk_test_aux_end(&h, 0);

	KUNIT_EXPECT_EQ(test, p->frees, 0);
	kunit_release_action(test, pmuk_test_put_aux, a);
	KUNIT_EXPECT_EQ(test, p->setups, 1);
	KUNIT_EXPECT_EQ(test, p->frees, 1);
}

/* Hardware writes to the pages' addresses. The reader finds the same bytes in a row, twice. */
static void setup_gets_the_pages_of_the_area(struct kunit *test)
{
	struct pmuk_test_producer *p = pmuk_test_new_producer(test);
	struct pmuk_test_aux *a = new_produced(p, &pmuk_test_ops, (struct pmuk_aux_attr){
		.nr_pages = 8, .order = 1 });
	unsigned int i;

	KUNIT_EXPECT_FALSE(test, p->overwrite);
	for (i = 0; i < 8; i++)
		pmuk_test_aux_fill(a, p->pages[i], i * PAGE_SIZE, PAGE_SIZE);
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_is(a, a->data, 0, a->size));
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_is(a, a->data + a->size, 0, a->size));
}

static void expect_pieces(struct kunit *test, u32 nr_pages, u8 order, bool prefer)
{
	struct pmuk_test_producer *p = pmuk_test_new_producer(test);
	const struct pmuk_buffer_attr attr = { .aux = {
		.nr_pages = nr_pages, .order = order, .prefer = prefer,
		.ops = &pmuk_test_ops, .data = p } };
	struct pmuk_buffer *b = pmuk_buffer_create(&attr, 0);

	KUNIT_ASSERT_EQ(test, PTR_ERR_OR_ZERO(b), 0);
	KUNIT_EXPECT_EQ(test, p->order, order);
	if (!prefer)
		KUNIT_EXPECT_EQ(test, p->pieces, nr_pages >> order);
	pmuk_buffer_destroy(b);
	KUNIT_EXPECT_EQ(test, p->frees, 1);
}

static void pieces_are_contiguous(struct kunit *test)
{
	unsigned int order;

	for (order = 0; order <= 6; order++) {
		expect_pieces(test, 64, order, false);
		expect_pieces(test, 64, order, true);
	}
	expect_pieces(test, 1, 0, false);
	expect_pieces(test, 2, 1, false);
}

static void setup_may_fail(struct kunit *test)
{
	void *answers[] = { ERR_PTR(-EIO), ERR_PTR(-EBUSY), ERR_PTR(-ENODEV) };
	struct pmuk_test_producer *p = pmuk_test_new_producer(test);
	const struct pmuk_buffer_attr attr = { .nr_pages = 1, .aux = {
		.nr_pages = 4, .order = 1, .ops = &pmuk_test_ops, .data = p } };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(answers); i++) {
		p->answer = answers[i];
		KUNIT_EXPECT_PTR_EQ(test, (void *)pmuk_buffer_create(&attr, 0), answers[i]);
		KUNIT_EXPECT_EQ(test, p->setups, i + 1);
		KUNIT_EXPECT_EQ(test, p->frees, 0);
		KUNIT_EXPECT_EQ(test, pmuk_nr_buffers(), 0);
	}
}

static void *setup_nothing(void *data, int cpu, void **pages, unsigned int nr_pages,
			   bool overwrite)
{
	return NULL;
}

static void setup_of_nothing_is_no_memory(struct kunit *test)
{
	static const struct pmuk_aux_ops ops = { .setup = setup_nothing, .free = pmuk_test_free };
	const struct pmuk_buffer_attr attr = { .aux = { .nr_pages = 1, .ops = &ops } };
	struct pmuk_buffer *b = pmuk_buffer_create(&attr, 0);

	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(b), -ENOMEM);
	pmuk_buffer_destroy(b);
}

#ifdef CONFIG_MODULE_UNLOAD
/* The module stands for a module that is loaded, or is being unloaded. Its code is never called. */
static struct module producers_module;

static const struct pmuk_aux_ops ops_of_module = {
	.setup = pmuk_test_setup,
	.free = pmuk_test_free,
	.owner = &producers_module,
};

/* Returns an area that a producer of that module has open. The caller destroys the buffer. */
static struct pmuk_test_aux *new_open(struct kunit *test, struct pmuk_test_producer *p,
				      struct pmuk_aux_handle *h, enum module_state state)
{
	struct pmuk_test_aux *a = new_produced(p, &ops_of_module, (struct pmuk_aux_attr){
		.nr_pages = 1 });

	producers_module.state = state;
	atomic_set(&producers_module.refcnt, 1);
	KUNIT_ASSERT_TRUE(test, pmuk_test_aux_begin(a, h));
	return a;
}

/*
 * The area holds its module only from the destruction on, because a module may destroy its buffers
 * while it is being unloaded.
 */
static void free_keeps_its_module(struct kunit *test)
{
	struct pmuk_test_producer *p = pmuk_test_new_producer(test);
	struct pmuk_aux_handle h;
	struct pmuk_test_aux *a = new_open(test, p, &h, MODULE_STATE_LIVE);

	KUNIT_EXPECT_EQ(test, module_refcount(&producers_module), 0);
	pmuk_test_aux_destroy(a);
	KUNIT_EXPECT_EQ(test, p->frees, 0);
	KUNIT_EXPECT_EQ(test, module_refcount(&producers_module), 1);
	pmuk_test_aux_end(&h, 0);
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(!module_refcount(&producers_module)));
	KUNIT_EXPECT_EQ(test, p->frees, 1);
}

struct late_end {
	struct delayed_work work;
	struct pmuk_aux_handle h;
};

static void end_late(struct work_struct *work)
{
	pmuk_test_aux_end(&container_of(work, struct late_end, work.work)->h, 0);
}

/*
 * A module that is being unloaded cannot be held. Its code is there until its exit function has
 * returned, so pmuk_buffer_destroy() waits for free in that function.
 */
static void going_module_waits_for_free(struct kunit *test)
{
	struct pmuk_test_producer *p = pmuk_test_new_producer(test);
	struct late_end *late = pmuk_test_zalloc(test, sizeof(*late));
	struct pmuk_test_aux *a = new_open(test, p, &late->h, MODULE_STATE_GOING);

	INIT_DELAYED_WORK(&late->work, end_late);
	schedule_delayed_work_on(raw_smp_processor_id(), &late->work, HZ / 50);
	pmuk_test_aux_destroy(a);
	KUNIT_EXPECT_EQ(test, p->frees, 1);
	KUNIT_EXPECT_EQ(test, module_refcount(&producers_module), 0);
	flush_delayed_work(&late->work);
	KUNIT_EXPECT_TRUE(test, pmuk_ctx_comes(p->frees == 1));
}

struct unlocked_end {
	struct work_struct work;
	struct pmuk_context *ctx;
	struct pmuk_aux_handle h;
	bool unlocked;
};

/* The writer ends when the close has unloaded the context, and waits for the writer. */
static void end_if_unlocked(struct work_struct *work)
{
	struct unlocked_end *e = container_of(work, struct unlocked_end, work);

	e->unlocked = pmuk_ctx_comes(!READ_ONCE(e->ctx->loaded) && !mutex_is_locked(&e->ctx->lock));
	pmuk_test_aux_end(&e->h, 0);
}

static bool open_here(struct unlocked_end *e, int cpu)
{
	guard(preempt)();
	return pmuk_aux_output_begin(&e->h, pmuk_context_buffer(e->ctx, cpu));
}

/* A close that waits for the writer of a going module holds no lock of the context. */
static void close_waits_for_free_unlocked(struct kunit *test)
{
	struct pmuk_test_producer *p = pmuk_test_new_producer(test);
	const struct pmuk_context_attr attr = { .buffer = {
		.nr_pages = 1, .aux = { .nr_pages = 1, .ops = &ops_of_module, .data = p } } };
	struct unlocked_end *e = pmuk_test_zalloc(test, sizeof(*e));
	int cpu = pmuk_test_pin_first(test);

	producers_module.state = MODULE_STATE_GOING;
	atomic_set(&producers_module.refcnt, 1);
	e->ctx = pmuk_ctx_create(test, &attr);
	pmuk_ctx_load(test, e->ctx, cpu);
	KUNIT_ASSERT_TRUE(test, open_here(e, cpu));
	INIT_WORK(&e->work, end_if_unlocked);
	schedule_work_on(cpu, &e->work);
	kunit_release_action(test, pmuk_ctx_put, e->ctx);
	flush_work(&e->work);
	KUNIT_EXPECT_TRUE(test, e->unlocked);
	KUNIT_EXPECT_EQ(test, p->frees, 1);
}
#endif

/*
 * The pages are not written any more after the buffer's end, though user space may still have them
 * mapped. So free is called at once, and the producer's module may go.
 */
static void free_waits_for_no_map(struct kunit *test)
{
	struct pmuk_test_producer *p = pmuk_test_new_producer(test);
	struct pmuk_test_aux *a = new_produced(p, &pmuk_test_ops, (struct pmuk_aux_attr){
		.nr_pages = 1 });
	unsigned long addr = pmuk_test_map(test, a->b, 2, 1, PROT_READ);
	u64 word;

	pmuk_test_aux_write(a, 16);
	pmuk_test_aux_destroy(a);
	KUNIT_EXPECT_EQ(test, p->frees, 1);
	KUNIT_EXPECT_EQ(test, get_user(word, (u64 __user *)addr), 0);
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_is(a, &word, 0, sizeof(word)));
	pmuk_test_unmap(test, addr, 1);
	KUNIT_EXPECT_EQ(test, p->frees, 1);
}

static void producer_needs_no_free(struct kunit *test)
{
	static const struct pmuk_aux_ops ops = { .setup = pmuk_test_setup };
	struct pmuk_test_producer *p = pmuk_test_new_producer(test);
	struct pmuk_test_aux *a = new_produced(p, &ops, (struct pmuk_aux_attr){ .nr_pages = 1 });

	kunit_release_action(test, pmuk_test_put_aux, a);
	KUNIT_EXPECT_EQ(test, p->setups, 1);
	KUNIT_EXPECT_EQ(test, pmuk_nr_buffers(), 0);
}

/* ---- the end ---- */

static struct pmuk_test_aux *new_mortal(struct kunit *test, struct pmuk_test_producer **producer)
{
	*producer = pmuk_test_new_producer(test);
	return new_produced(*producer, &pmuk_test_ops, (struct pmuk_aux_attr){ .nr_pages = 2 });
}

static int skip_bytes(struct pmuk_aux_handle *h, u64 size)
{
	guard(preempt)();
	return pmuk_aux_output_skip(h, size);
}

/*
 * A writer may still have the area open. Memory and producer then stay until that writer's end,
 * which wakes nobody, and frees both.
 */
static void destroy_leaves_the_area_to_its_writer(struct kunit *test)
{
	struct pmuk_test_producer *p;
	struct pmuk_test_aux *a = new_mortal(test, &p);
	struct pmuk_aux_handle h;
	unsigned int woken;

	KUNIT_ASSERT_TRUE(test, pmuk_test_aux_begin(a, &h));
	pmuk_test_aux_destroy(a);
	woken = READ_ONCE(a->more.done);
	KUNIT_ASSERT_EQ(test, p->frees, 0);
	KUNIT_EXPECT_EQ(test, pmuk_nr_buffers(), 1);
	KUNIT_EXPECT_PTR_EQ(test, pmuk_get_aux(&h), (void *)p);
	KUNIT_EXPECT_EQ(test, skip_bytes(&h, 10), 0);
	pmuk_aux_output_flag(&h, PERF_AUX_FLAG_COLLISION);
	pmuk_test_aux_fill(a, h.data, h.head, h.size);
	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_has(a, 10, a->size - 10));
	KUNIT_EXPECT_EQ(test, p->frees, 0);

	pmuk_test_aux_end(&h, U64_MAX);
	KUNIT_EXPECT_TRUE(test, pmuk_test_no_buffers());
	KUNIT_EXPECT_EQ(test, p->frees, 1);
	pmuk_test_aux_end(&h, 1);
	KUNIT_EXPECT_EQ(test, skip_bytes(&h, 1), -EINVAL);
	usleep_range(5000, 6000);
	KUNIT_EXPECT_EQ(test, READ_ONCE(a->more.done), woken);
	KUNIT_EXPECT_EQ(test, p->frees, 1);
}

static void destroy_of_a_closed_area_leaves_nothing(struct kunit *test)
{
	struct pmuk_test_producer *p;
	struct pmuk_test_aux *a = new_mortal(test, &p);

	KUNIT_EXPECT_TRUE(test, pmuk_test_aux_write(a, a->size));
	KUNIT_EXPECT_FALSE(test, pmuk_test_aux_write(a, 1));
	pmuk_test_aux_destroy(a);
	KUNIT_EXPECT_EQ(test, p->frees, 1);
	KUNIT_EXPECT_EQ(test, pmuk_nr_buffers(), 0);
}

/*
 * A counter that has the buffer keeps the buffer's memory after the buffer was destroyed. The area
 * refuses writers all the same, because its producer may be gone.
 */
static void destroyed_area_refuses_what_begins(struct kunit *test)
{
	struct pmuk_test_producer *p;
	struct pmuk_test_aux *a = new_mortal(test, &p);
	struct pmuk_buffer *b = a->b;
	struct pmuk_counter *c = pmuk_test_counter(test, &(struct pmuk_attr){
		.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY, .buffer = b,
		}, raw_smp_processor_id(), NULL);
	struct pmuk_aux_handle h;

	pmuk_test_aux_destroy(a);
	guard(preempt)();
	KUNIT_EXPECT_NULL(test, pmuk_aux_output_begin(&h, b));
	KUNIT_EXPECT_EQ(test, pmuk_test_area_stat(test, b).discarded, 1);
	KUNIT_EXPECT_EQ(test, pmuk_aux_resume(b), 0);
	KUNIT_EXPECT_NULL(test, pmuk_aux_output_begin(&h, b));
	KUNIT_EXPECT_NOT_NULL(test, c);
}

/* A writer on another CPU ends its part while this CPU destroys the buffer. */
struct late {
	struct pmuk_test_aux *a;
	bool begun;
	u64 ns;
};

static int ends_late(void *data)
{
	struct late *late = data;
	struct pmuk_aux_handle h;
	bool begins = pmuk_test_aux_begin(late->a, &h);

	smp_store_release(&late->begun, true);	/* pairs with ends_and_destroys_meet() */
	pmuk_test_spin(late->ns);
	if (begins)
		pmuk_test_aux_finish(late->a, &h, h.size);
	pmuk_test_wait_for_stop();
	return begins ? 0 : -EBUSY;
}

static void ends_and_destroys_meet(struct kunit *test)
{
	int other = pmuk_test_other_cpu(test, pmuk_test_pin_first(test));
	struct late *late = pmuk_test_zalloc(test, sizeof(*late));
	struct pmuk_test_producer *p;
	struct task_struct *task;
	unsigned int i;

	for (i = 0; i < 50; i++) {
		late->a = new_mortal(test, &p);
		late->begun = false;
		late->ns = i * 500;
		task = pmuk_test_thread(test, other, ends_late, late);
		/* pairs with ends_late() */
		while (!smp_load_acquire(&late->begun))
			cpu_relax();
		pmuk_test_aux_destroy(late->a);
		KUNIT_EXPECT_EQ(test, kthread_stop(task), 0);
		KUNIT_ASSERT_TRUE(test, pmuk_test_no_buffers());
		KUNIT_ASSERT_EQ(test, p->frees, 1);
	}
}

/* ---- two CPUs ---- */

#define PASSED	(16ULL << 20)		/* bytes from the producer to the consumer */

struct pair {
	struct pmuk_test_aux *a;
	struct rnd_state rnd;
	struct pmuk_aux_reader r;	/* the consumer of bytes */
	struct pmuk_reader records;	/* the consumer of records */
	unsigned int wrong;
	bool done;
};

static bool pair_goes_on(struct pair *pair)
{
	cond_resched();
	return READ_ONCE(pair->a->next) < PASSED && !kthread_should_stop();
}

static int pair_wait(struct pair *pair)
{
	WRITE_ONCE(pair->done, true);
	return pmuk_test_wait_for_stop();
}

/* Consumes a random share of each span, as a new reader each time. */
static int consume_spans(void *data)
{
	struct pair *pair = data;
	struct pmuk_test_aux *a = pair->a;
	struct pmuk_aux_span span;

	while (pair_goes_on(pair)) {
		pair->wrong += pmuk_aux_claim(a->b, &pair->r) != 0;
		if (pmuk_aux_peek(&pair->r, &span)) {
			span.size -= prandom_u32_state(&pair->rnd) % span.size;
			pmuk_test_aux_look(a, &span);
			pmuk_aux_consume(&pair->r, span.size);
		}
		pmuk_aux_release(&pair->r);
	}
	return pair_wait(pair);
}

/* Checks that all bytes are there that a record reports. */
static void consume_told(struct pair *pair, const struct pmuk_test_aux_record *rec)
{
	struct pmuk_test_aux *a = pair->a;
	struct pmuk_aux_span span;

	if (rec->header.type != PERF_RECORD_AUX)
		return;
	pair->wrong += rec->offset != a->next || !pmuk_test_aux_has(a, rec->offset, rec->size);
	pair->wrong += !pmuk_aux_peek(&pair->r, &span) || span.size < rec->size;
	pmuk_aux_consume(&pair->r, rec->size);
	WRITE_ONCE(a->next, a->next + rec->size);
}

static int consume_records(void *data)
{
	struct pair *pair = data;
	const struct perf_event_header *rec;

	pair->wrong += pmuk_buffer_claim(pair->a->b, &pair->records) != 0;
	pair->wrong += pmuk_aux_claim(pair->a->b, &pair->r) != 0;
	while (pair_goes_on(pair)) {
		rec = pmuk_buffer_next(&pair->records);
		if (rec)
			consume_told(pair, (const struct pmuk_test_aux_record *)rec);
	}
	pmuk_aux_release(&pair->r);
	pmuk_buffer_release(&pair->records);
	return pair_wait(pair);
}

/* Consumes as user space does, by head and tail of the control page. */
static int consume_as_a_user(void *data)
{
	struct pair *pair = data;
	struct pmuk_test_aux *a = pair->a;
	struct perf_event_mmap_page *page = user_page(a);
	u64 head;

	while (pair_goes_on(pair)) {
		head = smp_load_acquire(&page->aux_head);	/* pairs with the producer's */
		pair->wrong += !pmuk_test_aux_has(a, a->next, head - a->next);
		smp_mb();	/* first reads bytes, then frees their room */
		WRITE_ONCE(page->aux_tail, head);
		WRITE_ONCE(a->next, head);
	}
	return pair_wait(pair);
}

/*
 * Writes parts of random sizes until all bytes have passed. After the last byte, empty parts go on
 * to report bytes that no record has reported yet.
 */
static void pair_produce(struct pair *pair)
{
	struct pmuk_test_progress progress = {};
	struct pmuk_test_aux *a = pair->a;
	struct pmuk_aux_handle h = {};
	struct rnd_state rnd;

	prandom_seed_state(&rnd, 8);
	while (!READ_ONCE(pair->done) &&
	       pmuk_test_goes_on(&progress, h.head + READ_ONCE(a->next))) {
		if (!pmuk_test_aux_begin(a, &h)) {
			usleep_range(10, 20);
			continue;
		}
		pmuk_test_aux_finish(a, &h, min3(h.size, PASSED - h.head,
						 prandom_u32_state(&rnd) % 9000ULL));
		if (h.head == PASSED)
			usleep_range(10, 20);
	}
}

static void passes(struct kunit *test, struct pmuk_test_aux *a,
		   void (*produce)(struct pair *pair), int (*consume)(void *data), u64 bytes)
{
	int other = pmuk_test_other_cpu(test, raw_smp_processor_id());
	struct pair *pair = pmuk_test_zalloc(test, sizeof(*pair));
	struct task_struct *task;

	pair->a = a;
	prandom_seed_state(&pair->rnd, 7);
	task = pmuk_test_thread(test, other, consume, pair);
	produce(pair);
	kthread_stop(task);
	KUNIT_EXPECT_EQ(test, a->next, bytes);
	KUNIT_EXPECT_EQ(test, pair->wrong, 0);
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_stat(a).tail, bytes);
	KUNIT_EXPECT_EQ(test, pmuk_test_aux_stat(a).truncated, 0);
}

static void other_cpu_reads_spans(struct kunit *test)
{
	passes(test, new_aux(test, 16), pair_produce, consume_spans, PASSED);
}

static void other_cpu_goes_by_records(struct kunit *test)
{
	passes(test, new_aux(test, 16), pair_produce, consume_records, PASSED);
}

static void other_cpu_reads_as_a_user(struct kunit *test)
{
	passes(test, new_user_aux(test, 16), pair_produce, consume_as_a_user, PASSED);
}

#define PARTS	200000		/* parts of 16 bytes; each second part is flagged */

static bool has_flagged(const struct pmuk_aux_span *span)
{
	u64 first = span->head / 16, last = (span->head + span->size - 1) / 16;

	return last > first || first % 2;
}

/* Returns whether there were new bytes. */
static bool consume_flagged(struct pair *pair)
{
	struct pmuk_aux_span span;

	if (!pmuk_aux_peek(&pair->r, &span))
		return false;
	pair->wrong += has_flagged(&span) && !(span.flags & PERF_AUX_FLAG_COLLISION);
	pmuk_aux_consume(&pair->r, span.size);
	WRITE_ONCE(pair->a->next, span.head + span.size);
	return true;
}

/* Consumes all flags, those too that are set just before the consumer is stopped. */
static int consume_flags(void *data)
{
	struct pair *pair = data;
	bool last;

	pair->wrong += pmuk_aux_claim(pair->a->b, &pair->r) != 0;
	do {
		last = kthread_should_stop();
		cond_resched();
		cpu_relax();
	} while (consume_flagged(pair) || !last);
	pmuk_aux_release(&pair->r);
	return pair_wait(pair);
}

static void produce_flags(struct pair *pair)
{
	struct pmuk_test_progress progress = {};
	struct pmuk_aux_handle h = {};

	while (h.head < 16 * PARTS - 16 && pmuk_test_goes_on(&progress, h.head)) {
		cond_resched();
		cpu_relax();
		if (!pmuk_test_aux_begin(pair->a, &h))
			continue;
		if (h.head / 16 % 2)
			pmuk_aux_output_flag(&h, PERF_AUX_FLAG_COLLISION);
		pmuk_test_aux_end(&h, 16);
	}
}

/* A reader may see flags before the bytes that they apply to, but never after them. */
static void flags_come_with_their_bytes(struct kunit *test)
{
	passes(test, pmuk_test_new_aux(test, &(struct pmuk_buffer_attr){ .aux.nr_pages = 1 }),
	       produce_flags, consume_flags, 16 * PARTS);
}

static struct kunit_case pmuk_aux_cases[] = {
	KUNIT_CASE_PARAM(rules, aux_rules_gen_params),
	KUNIT_CASE(fresh_area_is_empty),
	KUNIT_CASE(user_area_has_no_kernel_reader),
	KUNIT_CASE(watermark_in_bytes),
	KUNIT_CASE(watermark_is_half_by_default),
	KUNIT_CASE(watermark_is_at_most_half),
	KUNIT_CASE(full_area_is_polled_again),
	KUNIT_CASE(create_refuses_bad_attributes),
	KUNIT_CASE(create_refuses_what_does_not_go_together),
	KUNIT_CASE(create_takes_good_attributes),
	KUNIT_CASE(calls_refuse_no_buffer),
	KUNIT_CASE(calls_refuse_no_area),
	KUNIT_CASE(calls_refuse_no_answer),
	KUNIT_CASE(callbacks_are_called_once),
	KUNIT_CASE(setup_gets_the_pages_of_the_area),
	KUNIT_CASE(pieces_are_contiguous),
	KUNIT_CASE(setup_may_fail),
	KUNIT_CASE(setup_of_nothing_is_no_memory),
	KUNIT_CASE(producer_needs_no_free),
#ifdef CONFIG_MODULE_UNLOAD
	KUNIT_CASE(free_keeps_its_module),
	KUNIT_CASE(going_module_waits_for_free),
	KUNIT_CASE(close_waits_for_free_unlocked),
#endif
	KUNIT_CASE(free_waits_for_no_map),
	KUNIT_CASE(destroy_leaves_the_area_to_its_writer),
	KUNIT_CASE(destroy_of_a_closed_area_leaves_nothing),
	KUNIT_CASE(destroyed_area_refuses_what_begins),
	KUNIT_CASE_SLOW(ends_and_destroys_meet),
	KUNIT_CASE_SLOW(other_cpu_reads_spans),
	KUNIT_CASE_SLOW(other_cpu_goes_by_records),
	KUNIT_CASE_SLOW(other_cpu_reads_as_a_user),
	KUNIT_CASE_SLOW(flags_come_with_their_bytes),
	{}
};

PMUK_SUITE(pmuk_aux, pmuk_test_init, "KUnit tests of pmuk's AUX areas");
