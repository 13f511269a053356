/* SPDX-License-Identifier: GPL-2.0 */
/* The tests of rights share these helpers. */
#ifndef _PMUK_RIGHTS_H
#define _PMUK_RIGHTS_H

#include <kunit/test.h>
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/perf_event.h>

#ifdef MODULE

/* The sysctl is not exported, and stays as it is. */
static inline void pmuk_test_be_paranoid(struct kunit *test) { }

#else /* !MODULE */

static void pmuk_test_reset_paranoid(void *level)
{
	WRITE_ONCE(sysctl_perf_event_paranoid, (long)level);
}

static inline void pmuk_test_be_paranoid(struct kunit *test)
{
	void *old = (void *)(long)sysctl_perf_event_paranoid;

	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, pmuk_test_reset_paranoid, old), 0);
	WRITE_ONCE(sysctl_perf_event_paranoid, 2);
}

#endif /* !MODULE */

/* Returns 0 or the error with which perf core refuses a counter of @cpu. */
static inline int pmuk_test_try_perf(int cpu)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE, .size = sizeof(attr),
					.config = PERF_COUNT_SW_CPU_CLOCK, .disabled = 1 };
	struct perf_event *event = perf_event_create_kernel_counter(&attr, cpu, NULL, NULL, NULL);

	if (IS_ERR(event))
		return PTR_ERR(event);
	perf_event_release_kernel(event);
	return 0;
}

static inline void pmuk_test_put_cred(void *cred)
{
	put_cred(cred);
}

/*
 * Returns credentials with which a task may not count on @cpu. Skips the test if all tasks may. No
 * assertion may fail, and end the thread, while it has these credentials.
 */
static inline const struct cred *pmuk_test_no_rights(struct kunit *test, int cpu)
{
	struct cred *cred = prepare_creds();
	const struct cred *old;
	int ret;

	KUNIT_ASSERT_NOT_NULL(test, cred);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, pmuk_test_put_cred, cred), 0);
	cap_lower(cred->cap_effective, CAP_PERFMON);
	cap_lower(cred->cap_effective, CAP_SYS_ADMIN);
	pmuk_test_be_paranoid(test);
	old = override_creds(cred);
	ret = pmuk_test_try_perf(cpu);
	revert_creds(old);
	if (!ret)
		kunit_skip(test, "this kernel lets everybody count on CPUs");
	KUNIT_ASSERT_EQ(test, ret, -EACCES);
	return cred;
}

#endif /* _PMUK_RIGHTS_H */
