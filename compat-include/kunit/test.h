/* SPDX-License-Identifier: GPL-2.0 */
/*
 * KUnit for kernels that are built without it, as distributions' are: the part
 * of its interface that our suites use. A suite runs when its module is loaded,
 * each case in a thread of its own, and prints what kunit.py parses. A kernel
 * that has KUnit uses that.
 */
#include <linux/kconfig.h>

#if IS_ENABLED(CONFIG_KUNIT)
#include_next <kunit/test.h>
#elif !defined(_PMUK_COMPAT_KUNIT_TEST_H)
#define _PMUK_COMPAT_KUNIT_TEST_H

#include <linux/completion.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/printk.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#define KUNIT_STATUS_COMMENT_SIZE	256
#define KUNIT_PARAM_DESC_SIZE		128
#define KUNIT_SUBTEST_INDENT		"    "

enum kunit_status {
	KUNIT_SUCCESS,
	KUNIT_FAILURE,
	KUNIT_SKIPPED,
};

struct kunit;

#define KUNIT_SPEED_SLOW	1

struct kunit_case {
	void (*run_case)(struct kunit *test);
	const char *name;
	const void *(*generate_params)(const void *prev, char *desc);
	const char *module_name;
	struct {
		int speed;	/* for nobody: no case here has a time limit */
	} attr;
};

struct kunit_suite {
	const char *name;
	int (*suite_init)(struct kunit_suite *suite);
	void (*suite_exit)(struct kunit_suite *suite);
	int (*init)(struct kunit *test);
	void (*exit)(struct kunit *test);
	struct kunit_case *test_cases;
	enum kunit_status status;
	char status_comment[KUNIT_STATUS_COMMENT_SIZE];
};

struct kunit {
	void *priv;
	const void *param_value;
	/* private: */
	const char *name;
	const struct kunit_suite *suite;
	const struct kunit_case *test_case;
	enum kunit_status status;	/* set from any thread, read when all have ended */
	char status_comment[KUNIT_STATUS_COMMENT_SIZE];
	spinlock_t lock;
	struct list_head actions;	/* lock */
	struct completion ended;
};

/* No macro expands to another one of these: a case that is named as a macro would be expanded. */
#define KUNIT_CASE(fn)		{ .run_case = fn, .name = #fn }
#define KUNIT_CASE_SLOW(fn)	{ .run_case = fn, .name = #fn }
#define KUNIT_CASE_PARAM(fn, gen) \
	{ .run_case = fn, .name = #fn, .generate_params = gen }
#define KUNIT_CASE_PARAM_ATTR(fn, gen, ...) \
	{ .run_case = fn, .name = #fn, .generate_params = gen }

#define KUNIT_ARRAY_PARAM_DESC(name, array, desc_member)				\
	static const void *name##_gen_params(const void *prev, char *desc)		\
	{										\
		const typeof((array)[0]) *__next = (array);				\
											\
		if (prev)								\
			__next = (const typeof((array)[0]) *)prev + 1;			\
		if (__next == (array) + ARRAY_SIZE(array))				\
			return NULL;							\
		strscpy(desc, __next->desc_member, KUNIT_PARAM_DESC_SIZE);		\
		return __next;								\
	}

/* Modules cannot make an mm. */
static inline int kunit_attach_mm(void)
{
	return -EOPNOTSUPP;
}

/* Messages */

#define kunit_printk(level, test, fmt, ...)						\
	printk(level KUNIT_SUBTEST_INDENT "# %s: " fmt, (test)->name, ##__VA_ARGS__)
#define kunit_info(test, fmt, ...)	kunit_printk(KERN_INFO, test, fmt, ##__VA_ARGS__)
#define kunit_warn(test, fmt, ...)	kunit_printk(KERN_WARNING, test, fmt, ##__VA_ARGS__)
#define kunit_err(test, fmt, ...)	kunit_printk(KERN_ERR, test, fmt, ##__VA_ARGS__)

/* Ends of a case */

static inline void __noreturn kunit_abort(struct kunit *test)
{
	kthread_complete_and_exit(&test->ended, 0);
}

#define kunit_mark_skipped(test_or_suite, fmt, ...)					\
do {											\
	typeof(test_or_suite) __skipped = (test_or_suite);				\
											\
	WRITE_ONCE(__skipped->status, KUNIT_SKIPPED);					\
	scnprintf(__skipped->status_comment, KUNIT_STATUS_COMMENT_SIZE,			\
		  fmt, ##__VA_ARGS__);							\
} while (0)

#define kunit_skip(test, fmt, ...)							\
do {											\
	kunit_mark_skipped(test, fmt, ##__VA_ARGS__);					\
	kunit_abort(test);								\
} while (0)

/* Actions: run when the case has ended, last one first. */

typedef void (kunit_action_t)(void *data);

struct kunit_action {
	struct list_head node;
	kunit_action_t *fn;
	void *data;
};

#define KUNIT_DEFINE_ACTION_WRAPPER(wrapper, fn, type)					\
	static void wrapper(void *data)							\
	{										\
		fn((type)data);								\
	}

static inline int kunit_add_action(struct kunit *test, kunit_action_t *fn, void *data)
{
	struct kunit_action *action;
	unsigned long flags;

	action = kmalloc(sizeof(*action), GFP_KERNEL);
	if (!action)
		return -ENOMEM;

	action->fn = fn;
	action->data = data;
	spin_lock_irqsave(&test->lock, flags);
	list_add(&action->node, &test->actions);
	spin_unlock_irqrestore(&test->lock, flags);
	return 0;
}

static inline int kunit_add_action_or_reset(struct kunit *test, kunit_action_t *fn, void *data)
{
	int ret;

	ret = kunit_add_action(test, fn, data);
	if (ret)
		fn(data);
	return ret;
}

/* The latest action, or with @fn the latest of that @fn and @data. */
static inline struct kunit_action *kunit_take_action(struct kunit *test, kunit_action_t *fn,
						     void *data)
{
	struct kunit_action *action, *found = NULL;
	unsigned long flags;

	spin_lock_irqsave(&test->lock, flags);
	list_for_each_entry(action, &test->actions, node) {
		if (fn && (action->fn != fn || action->data != data))
			continue;
		list_del(&action->node);
		found = action;
		break;
	}
	spin_unlock_irqrestore(&test->lock, flags);
	return found;
}

static inline void kunit_remove_action(struct kunit *test, kunit_action_t *fn, void *data)
{
	kfree(kunit_take_action(test, fn, data));
}

static inline void kunit_release_action(struct kunit *test, kunit_action_t *fn, void *data)
{
	kunit_remove_action(test, fn, data);
	fn(data);
}

static inline void kunit_kfree_action(void *data)
{
	kfree(data);
}

static inline void *kunit_kmalloc(struct kunit *test, size_t size, gfp_t gfp)
{
	void *p = kmalloc(size, gfp);

	if (!p || kunit_add_action_or_reset(test, kunit_kfree_action, p))
		return NULL;
	return p;
}

static inline void *kunit_kmalloc_array(struct kunit *test, size_t n, size_t size, gfp_t gfp)
{
	return kunit_kmalloc(test, array_size(n, size), gfp);
}

static inline void *kunit_kzalloc(struct kunit *test, size_t size, gfp_t gfp)
{
	return kunit_kmalloc(test, size, gfp | __GFP_ZERO);
}

static inline void *kunit_kcalloc(struct kunit *test, size_t n, size_t size, gfp_t gfp)
{
	return kunit_kzalloc(test, array_size(n, size), gfp);
}

static inline void kunit_kfree(struct kunit *test, const void *p)
{
	if (p)
		kunit_release_action(test, kunit_kfree_action, (void *)p);
}

/* Expectations, and assertions, which also end the case */

static inline void kunit_report(struct kunit *test, const char *what, const char *how,
				struct va_format *message)
{
	WRITE_ONCE(test->status, KUNIT_FAILURE);
	kunit_err(test, "%s\n", what);
	if (how)
		kunit_err(test, "%s\n", how);
	if (message->fmt)
		kunit_err(test, "%pV\n", message);
}

static inline __printf(4, 5) void kunit_fail(struct kunit *test, const char *what,
					     const char *how, const char *fmt, ...)
{
	struct va_format message = { .fmt = fmt };
	va_list args;

	va_start(args, fmt);
	message.va = &args;
	kunit_report(test, what, how, &message);
	va_end(args);
}

struct kunit_compared {
	const char *text;	/* left, operator, right, as in the source */
	long long left;
	long long right;
};

static inline __printf(4, 5) void kunit_fail_compared(struct kunit *test, const char *what,
						      const struct kunit_compared *compared,
						      const char *fmt, ...)
{
	struct va_format message = { .fmt = fmt };
	char how[256];
	va_list args;

	snprintf(how, sizeof(how), "Expected %s, but it is %lld (%#llx) and %lld (%#llx)",
		 compared->text, compared->left, compared->left,
		 compared->right, compared->right);
	va_start(args, fmt);
	message.va = &args;
	kunit_report(test, what, how, &message);
	va_end(args);
}

#define __KUNIT_STRING(x)	#x
#define __KUNIT_LINE(line)	__KUNIT_STRING(line)
#define __KUNIT_WHERE(kind)	kind " FAILED at " __FILE__ ":" __KUNIT_LINE(__LINE__)

/* EXPECT only reports a failure. ASSERT ends the test, too. */
#define __KUNIT_EXPECTATION(test)	do { } while (0)
#define __KUNIT_ASSERTION(test)		kunit_abort(test)

#define __KUNIT_UNARY(test, kind, condition, text, fmt, ...)				\
do {											\
	struct kunit *__unary = (test);							\
											\
	if (likely(condition))								\
		break;									\
	kunit_fail(__unary, __KUNIT_WHERE(#kind), "Expected " text, fmt, ##__VA_ARGS__); \
	__KUNIT_##kind(__unary);							\
} while (0)

#define __KUNIT_BINARY(test, kind, a, op, b, fmt, ...)				\
do {											\
	struct kunit *__binary = (test);						\
	const typeof(a) __left = (a);							\
	const typeof(b) __right = (b);							\
											\
	if (likely(__left op __right))							\
		break;									\
	kunit_fail_compared(__binary, __KUNIT_WHERE(#kind),				\
			    &(struct kunit_compared) {					\
				.text = #a " " #op " " #b,				\
				.left = (long long)__left,				\
				.right = (long long)__right,				\
			    }, fmt, ##__VA_ARGS__);					\
	__KUNIT_##kind(__binary);							\
} while (0)

#define KUNIT_FAIL(test, fmt, ...)							\
	kunit_fail(test, __KUNIT_WHERE("EXPECTATION"), NULL, fmt, ##__VA_ARGS__)
#define KUNIT_FAIL_AND_ABORT(test, fmt, ...)						\
do {											\
	KUNIT_FAIL(test, fmt, ##__VA_ARGS__);						\
	kunit_abort(test);								\
} while (0)
#define KUNIT_SUCCEED(test)	do { } while (0)

#define KUNIT_EXPECT_TRUE_MSG(test, x, fmt, ...)					\
	__KUNIT_UNARY(test, EXPECTATION, (x), #x " to be true", fmt, ##__VA_ARGS__)
#define KUNIT_ASSERT_TRUE_MSG(test, x, fmt, ...)					\
	__KUNIT_UNARY(test, ASSERTION, (x), #x " to be true", fmt, ##__VA_ARGS__)
#define KUNIT_EXPECT_FALSE_MSG(test, x, fmt, ...)					\
	__KUNIT_UNARY(test, EXPECTATION, !(x), #x " to be false", fmt, ##__VA_ARGS__)
#define KUNIT_ASSERT_FALSE_MSG(test, x, fmt, ...)					\
	__KUNIT_UNARY(test, ASSERTION, !(x), #x " to be false", fmt, ##__VA_ARGS__)
#define KUNIT_EXPECT_NULL_MSG(test, p, fmt, ...)					\
	__KUNIT_UNARY(test, EXPECTATION, !(p), #p " to be NULL", fmt, ##__VA_ARGS__)
#define KUNIT_ASSERT_NULL_MSG(test, p, fmt, ...)					\
	__KUNIT_UNARY(test, ASSERTION, !(p), #p " to be NULL", fmt, ##__VA_ARGS__)
#define KUNIT_EXPECT_NOT_NULL_MSG(test, p, fmt, ...)					\
	__KUNIT_UNARY(test, EXPECTATION, !!(p), #p " not to be NULL", fmt, ##__VA_ARGS__)
#define KUNIT_ASSERT_NOT_NULL_MSG(test, p, fmt, ...)					\
	__KUNIT_UNARY(test, ASSERTION, !!(p), #p " not to be NULL", fmt, ##__VA_ARGS__)
#define KUNIT_EXPECT_NOT_ERR_OR_NULL_MSG(test, p, fmt, ...)				\
	__KUNIT_UNARY(test, EXPECTATION, !IS_ERR_OR_NULL(p), #p " to be a pointer",	\
		      fmt, ##__VA_ARGS__)
#define KUNIT_ASSERT_NOT_ERR_OR_NULL_MSG(test, p, fmt, ...)				\
	__KUNIT_UNARY(test, ASSERTION, !IS_ERR_OR_NULL(p), #p " to be a pointer",	\
		      fmt, ##__VA_ARGS__)
#define KUNIT_EXPECT_STREQ_MSG(test, a, b, fmt, ...)					\
	__KUNIT_UNARY(test, EXPECTATION, !strcmp(a, b), #a " to read as " #b,		\
		      fmt, ##__VA_ARGS__)
#define KUNIT_ASSERT_STREQ_MSG(test, a, b, fmt, ...)					\
	__KUNIT_UNARY(test, ASSERTION, !strcmp(a, b), #a " to read as " #b,		\
		      fmt, ##__VA_ARGS__)
#define KUNIT_EXPECT_MEMEQ_MSG(test, a, b, size, fmt, ...)				\
	__KUNIT_UNARY(test, EXPECTATION, !memcmp(a, b, size), #a " to hold " #b,	\
		      fmt, ##__VA_ARGS__)
#define KUNIT_ASSERT_MEMEQ_MSG(test, a, b, size, fmt, ...)				\
	__KUNIT_UNARY(test, ASSERTION, !memcmp(a, b, size), #a " to hold " #b,		\
		      fmt, ##__VA_ARGS__)

#define KUNIT_EXPECT_TRUE(test, x)		KUNIT_EXPECT_TRUE_MSG(test, x, NULL)
#define KUNIT_ASSERT_TRUE(test, x)		KUNIT_ASSERT_TRUE_MSG(test, x, NULL)
#define KUNIT_EXPECT_FALSE(test, x)		KUNIT_EXPECT_FALSE_MSG(test, x, NULL)
#define KUNIT_ASSERT_FALSE(test, x)		KUNIT_ASSERT_FALSE_MSG(test, x, NULL)
#define KUNIT_EXPECT_NULL(test, p)		KUNIT_EXPECT_NULL_MSG(test, p, NULL)
#define KUNIT_ASSERT_NULL(test, p)		KUNIT_ASSERT_NULL_MSG(test, p, NULL)
#define KUNIT_EXPECT_NOT_NULL(test, p)		KUNIT_EXPECT_NOT_NULL_MSG(test, p, NULL)
#define KUNIT_ASSERT_NOT_NULL(test, p)		KUNIT_ASSERT_NOT_NULL_MSG(test, p, NULL)
#define KUNIT_EXPECT_NOT_ERR_OR_NULL(test, p)	KUNIT_EXPECT_NOT_ERR_OR_NULL_MSG(test, p, NULL)
#define KUNIT_ASSERT_NOT_ERR_OR_NULL(test, p)	KUNIT_ASSERT_NOT_ERR_OR_NULL_MSG(test, p, NULL)
#define KUNIT_EXPECT_STREQ(test, a, b)		KUNIT_EXPECT_STREQ_MSG(test, a, b, NULL)
#define KUNIT_ASSERT_STREQ(test, a, b)		KUNIT_ASSERT_STREQ_MSG(test, a, b, NULL)
#define KUNIT_EXPECT_MEMEQ(test, a, b, size)	KUNIT_EXPECT_MEMEQ_MSG(test, a, b, size, NULL)
#define KUNIT_ASSERT_MEMEQ(test, a, b, size)	KUNIT_ASSERT_MEMEQ_MSG(test, a, b, size, NULL)

#define KUNIT_EXPECT_EQ_MSG(test, a, b, fmt, ...)					\
	__KUNIT_BINARY(test, EXPECTATION, a, ==, b, fmt, ##__VA_ARGS__)
#define KUNIT_ASSERT_EQ_MSG(test, a, b, fmt, ...)					\
	__KUNIT_BINARY(test, ASSERTION, a, ==, b, fmt, ##__VA_ARGS__)
#define KUNIT_EXPECT_NE_MSG(test, a, b, fmt, ...)					\
	__KUNIT_BINARY(test, EXPECTATION, a, !=, b, fmt, ##__VA_ARGS__)
#define KUNIT_ASSERT_NE_MSG(test, a, b, fmt, ...)					\
	__KUNIT_BINARY(test, ASSERTION, a, !=, b, fmt, ##__VA_ARGS__)
#define KUNIT_EXPECT_LT_MSG(test, a, b, fmt, ...)					\
	__KUNIT_BINARY(test, EXPECTATION, a, <, b, fmt, ##__VA_ARGS__)
#define KUNIT_ASSERT_LT_MSG(test, a, b, fmt, ...)					\
	__KUNIT_BINARY(test, ASSERTION, a, <, b, fmt, ##__VA_ARGS__)
#define KUNIT_EXPECT_LE_MSG(test, a, b, fmt, ...)					\
	__KUNIT_BINARY(test, EXPECTATION, a, <=, b, fmt, ##__VA_ARGS__)
#define KUNIT_ASSERT_LE_MSG(test, a, b, fmt, ...)					\
	__KUNIT_BINARY(test, ASSERTION, a, <=, b, fmt, ##__VA_ARGS__)
#define KUNIT_EXPECT_GT_MSG(test, a, b, fmt, ...)					\
	__KUNIT_BINARY(test, EXPECTATION, a, >, b, fmt, ##__VA_ARGS__)
#define KUNIT_ASSERT_GT_MSG(test, a, b, fmt, ...)					\
	__KUNIT_BINARY(test, ASSERTION, a, >, b, fmt, ##__VA_ARGS__)
#define KUNIT_EXPECT_GE_MSG(test, a, b, fmt, ...)					\
	__KUNIT_BINARY(test, EXPECTATION, a, >=, b, fmt, ##__VA_ARGS__)
#define KUNIT_ASSERT_GE_MSG(test, a, b, fmt, ...)					\
	__KUNIT_BINARY(test, ASSERTION, a, >=, b, fmt, ##__VA_ARGS__)
#define KUNIT_EXPECT_PTR_EQ_MSG(test, a, b, fmt, ...)					\
	__KUNIT_BINARY(test, EXPECTATION, (void *)(a), ==, (void *)(b), fmt, ##__VA_ARGS__)
#define KUNIT_ASSERT_PTR_EQ_MSG(test, a, b, fmt, ...)					\
	__KUNIT_BINARY(test, ASSERTION, (void *)(a), ==, (void *)(b), fmt, ##__VA_ARGS__)
#define KUNIT_EXPECT_PTR_NE_MSG(test, a, b, fmt, ...)					\
	__KUNIT_BINARY(test, EXPECTATION, (void *)(a), !=, (void *)(b), fmt, ##__VA_ARGS__)
#define KUNIT_ASSERT_PTR_NE_MSG(test, a, b, fmt, ...)					\
	__KUNIT_BINARY(test, ASSERTION, (void *)(a), !=, (void *)(b), fmt, ##__VA_ARGS__)

#define KUNIT_EXPECT_EQ(test, a, b)	KUNIT_EXPECT_EQ_MSG(test, a, b, NULL)
#define KUNIT_ASSERT_EQ(test, a, b)	KUNIT_ASSERT_EQ_MSG(test, a, b, NULL)
#define KUNIT_EXPECT_NE(test, a, b)	KUNIT_EXPECT_NE_MSG(test, a, b, NULL)
#define KUNIT_ASSERT_NE(test, a, b)	KUNIT_ASSERT_NE_MSG(test, a, b, NULL)
#define KUNIT_EXPECT_LT(test, a, b)	KUNIT_EXPECT_LT_MSG(test, a, b, NULL)
#define KUNIT_ASSERT_LT(test, a, b)	KUNIT_ASSERT_LT_MSG(test, a, b, NULL)
#define KUNIT_EXPECT_LE(test, a, b)	KUNIT_EXPECT_LE_MSG(test, a, b, NULL)
#define KUNIT_ASSERT_LE(test, a, b)	KUNIT_ASSERT_LE_MSG(test, a, b, NULL)
#define KUNIT_EXPECT_GT(test, a, b)	KUNIT_EXPECT_GT_MSG(test, a, b, NULL)
#define KUNIT_ASSERT_GT(test, a, b)	KUNIT_ASSERT_GT_MSG(test, a, b, NULL)
#define KUNIT_EXPECT_GE(test, a, b)	KUNIT_EXPECT_GE_MSG(test, a, b, NULL)
#define KUNIT_ASSERT_GE(test, a, b)	KUNIT_ASSERT_GE_MSG(test, a, b, NULL)
#define KUNIT_EXPECT_PTR_EQ(test, a, b)	KUNIT_EXPECT_PTR_EQ_MSG(test, a, b, NULL)
#define KUNIT_ASSERT_PTR_EQ(test, a, b)	KUNIT_ASSERT_PTR_EQ_MSG(test, a, b, NULL)
#define KUNIT_EXPECT_PTR_NE(test, a, b)	KUNIT_EXPECT_PTR_NE_MSG(test, a, b, NULL)
#define KUNIT_ASSERT_PTR_NE(test, a, b)	KUNIT_ASSERT_PTR_NE_MSG(test, a, b, NULL)

/* Running */

static inline int kunit_try_case(void *data)
{
	struct kunit *test = data;
	int ret = test->suite->init ? test->suite->init(test) : 0;

	if (ret)
		KUNIT_FAIL(test, "failed to initialize: %d", ret);
	else
		test->test_case->run_case(test);
	kunit_abort(test);
}

static inline int kunit_try_cleanup(void *data)
{
	struct kunit *test = data;
	struct kunit_action *action;

	if (test->suite->exit)
		test->suite->exit(test);
	while ((action = kunit_take_action(test, NULL, NULL))) {
		action->fn(action->data);
		kfree(action);
	}
	kunit_abort(test);
}

/* Have @fn run in a thread, so that it can be ended from anywhere in it. */
static inline void kunit_try(struct kunit *test, int (*fn)(void *data))
{
	struct task_struct *task;

	init_completion(&test->ended);
	task = kthread_run(fn, test, "kunit");
	if (IS_ERR(task))
		KUNIT_FAIL(test, "no thread: %ld", PTR_ERR(task));
	else
		wait_for_completion(&test->ended);
}

static inline void kunit_print_result(const char *indent, enum kunit_status status,
				      unsigned int number, const char *name, const char *comment)
{
	printk(KERN_INFO "%s%s %u %s%s%s\n", indent, status == KUNIT_FAILURE ? "not ok" : "ok",
	       number, name, status == KUNIT_SKIPPED ? " # SKIP " : "",
	       status == KUNIT_SKIPPED ? comment : "");
}

/* Runs a case once, and prints its result as that of @name. */
static inline enum kunit_status kunit_run_once(const struct kunit_suite *suite,
					       const struct kunit_case *test_case,
					       const void *param, const char *indent,
					       unsigned int number, const char *name)
{
	struct kunit *test = kzalloc(sizeof(*test), GFP_KERNEL);
	enum kunit_status status = KUNIT_FAILURE;

	if (test) {
		test->name = test_case->name;
		test->suite = suite;
		test->test_case = test_case;
		test->param_value = param;
		spin_lock_init(&test->lock);
		INIT_LIST_HEAD(&test->actions);
		kunit_try(test, kunit_try_case);
		kunit_try(test, kunit_try_cleanup);
		status = test->status;
	}
	kunit_print_result(indent, status, number, name, test ? test->status_comment : "");
	kfree(test);
	return status;
}

/* The whole fails with one of its parts, and is skipped with all of them. */
static inline enum kunit_status kunit_sum_up(enum kunit_status sum, enum kunit_status part)
{
	return sum == KUNIT_SKIPPED || part == KUNIT_FAILURE ? part : sum;
}

/* Runs a case with each of its parameters. */
static inline enum kunit_status kunit_run_params(const struct kunit_suite *suite,
						 const struct kunit_case *test_case,
						 unsigned int number)
{
	static const char indent[] = KUNIT_SUBTEST_INDENT KUNIT_SUBTEST_INDENT;
	enum kunit_status sum = KUNIT_SKIPPED;
	char desc[KUNIT_PARAM_DESC_SIZE];
	const void *param = NULL;
	unsigned int n = 0;

	printk(KERN_INFO "%sKTAP version 1\n", indent);
	printk(KERN_INFO "%s# Subtest: %s\n", indent, test_case->name);
	while ((param = test_case->generate_params(param, desc)))
		sum = kunit_sum_up(sum, kunit_run_once(suite, test_case, param, indent, ++n, desc));
	kunit_print_result(KUNIT_SUBTEST_INDENT, sum, number, test_case->name, "");
	return sum;
}

static inline void kunit_run_cases(struct kunit_suite *suite)
{
	const struct kunit_case *test_case;
	enum kunit_status status;
	unsigned int number = 0;

	suite->status = KUNIT_SKIPPED;
	for (test_case = suite->test_cases; test_case->run_case; test_case++) {
		if (test_case->generate_params)
			status = kunit_run_params(suite, test_case, ++number);
		else
			status = kunit_run_once(suite, test_case, NULL, KUNIT_SUBTEST_INDENT,
						++number, test_case->name);
		suite->status = kunit_sum_up(suite->status, status);
	}
}

static inline void kunit_run_suite(struct kunit_suite *suite, unsigned int number)
{
	unsigned int nr_cases = 0;

	while (suite->test_cases[nr_cases].run_case)
		nr_cases++;
	printk(KERN_INFO KUNIT_SUBTEST_INDENT "KTAP version 1\n");
	printk(KERN_INFO KUNIT_SUBTEST_INDENT "# Subtest: %s\n", suite->name);
	printk(KERN_INFO KUNIT_SUBTEST_INDENT "1..%u\n", nr_cases);

	if (suite->suite_init && suite->suite_init(suite))
		suite->status = KUNIT_FAILURE;
	else if (suite->status != KUNIT_SKIPPED)
		kunit_run_cases(suite);
	if (suite->suite_exit)
		suite->suite_exit(suite);
	kunit_print_result("", suite->status, number, suite->name, suite->status_comment);
}

#define kunit_test_suites(...)								\
static int __init kunit_module_init(void)						\
{											\
	struct kunit_suite *suites[] = { __VA_ARGS__ };					\
	unsigned int i;									\
											\
	printk(KERN_INFO "KTAP version 1\n");						\
	printk(KERN_INFO "1..%zu\n", ARRAY_SIZE(suites));				\
	for (i = 0; i < ARRAY_SIZE(suites); i++)					\
		kunit_run_suite(suites[i], i + 1);					\
	return 0;									\
}											\
module_init(kunit_module_init);								\
											\
static void __exit kunit_module_exit(void) { }						\
module_exit(kunit_module_exit)

#define kunit_test_suite(suite)	kunit_test_suites(&(suite))

#endif /* _PMUK_COMPAT_KUNIT_TEST_H */
