// SPDX-License-Identifier: GPL-2.0
/*
 * Messages of a context to its consumer. There is a pile for each kind of message and CPU. If
 * something happens again before its message was read, the pile counts it. So no message is lost,
 * and memory is bounded.
 *
 * A pile that gets its first message owes the consumer one completion. An irq_work gives that
 * completion, as the message may have been posted in NMI. So there are as many completions as
 * messages to be read. The read that takes a message consumes one, and the next wait sleeps.
 */
#include <linux/bitmap.h>
#include <linux/completion.h>
#include <linux/export.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "context.h"
#include "message.h"

static void pmuk_mail_complete(struct irq_work *work)
{
	struct pmuk_mailbox *mail = container_of(work, struct pmuk_mailbox, irq_work);
	int owed = atomic_xchg(&mail->owed, 0);

	for (; owed; owed--)
		complete(mail->completion);
}

int pmuk_mail_init(struct pmuk_mailbox *mail, struct completion *completion)
{
	mail->nr = nr_cpu_ids * PMUK_MSG_KINDS;
	mail->completion = completion;
	raw_spin_lock_init(&mail->lock);
	mail->irq_work = IRQ_WORK_INIT_HARD(pmuk_mail_complete);
	mail->piles = kvcalloc(mail->nr, sizeof(*mail->piles), GFP_KERNEL);
	mail->full = bitmap_zalloc(mail->nr, GFP_KERNEL);
	return mail->piles && mail->full ? 0 : -ENOMEM;
}

/*
 * Free the mailbox. The completion is not touched after this. Nobody has posted since the latest
 * grace period: several CPUs may have run the irq_work at once, in hardirq, and irq_work_sync()
 * waits for the first of them to end.
 */
void pmuk_mail_end(struct pmuk_mailbox *mail)
{
	irq_work_sync(&mail->irq_work);
	bitmap_free(mail->full);
	kvfree(mail->piles);
}

/* Post a message that context @by has caused. May be called in any context, NMI too. */
void pmuk_post_by(struct pmuk_context *ctx, enum pmuk_msg_kind kind, int cpu, u64 count,
		  u32 counters, u16 set, u64 by)
{
	struct pmuk_mailbox *mail = &ctx->mail;
	unsigned int nr = cpu * PMUK_MSG_KINDS + kind;
	struct pmuk_pile *pile = &mail->piles[nr];

	atomic_or(counters, &pile->counters);
	WRITE_ONCE(pile->set, set);
	if (by)
		WRITE_ONCE(pile->by, by);
	atomic64_inc(&mail->posted);
	if (atomic64_fetch_add(count, &pile->count))
		return;
	set_bit(nr, mail->full);
	if (!mail->completion)
		return;
	atomic_inc(&mail->owed);
	irq_work_queue(&mail->irq_work);
}

/* Does what find_next_bit() does, and reads each word once: other CPUs set bits meanwhile. */
static unsigned int pmuk_mail_next(const struct pmuk_mailbox *mail, unsigned int from)
{
	unsigned int nr;
	unsigned long word;

	for (nr = from; nr < mail->nr; nr = round_up(nr + 1, BITS_PER_LONG)) {
		word = READ_ONCE(mail->full[BIT_WORD(nr)]) & BITMAP_FIRST_WORD_MASK(nr);
		if (word)
			return round_down(nr, BITS_PER_LONG) + __ffs(word);
	}
	return mail->nr;
}

/* Take the next pile. A search begins where the last one ended, so a busy pile hides no other. */
static bool pmuk_mail_take(struct pmuk_mailbox *mail, struct pmuk_msg *msg)
{
	struct pmuk_pile *pile;
	unsigned int nr;

	guard(raw_spinlock_irqsave)(&mail->lock);
	nr = pmuk_mail_next(mail, mail->next);
	if (nr >= mail->nr)
		nr = pmuk_mail_next(mail, 0);
	if (nr >= mail->nr)
		return false;

	mail->next = nr + 1;
	clear_bit(nr, mail->full);
	smp_mb__after_atomic();	/* if a post comes after the xchg() below, it sets the bit again */
	pile = &mail->piles[nr];
	msg->kind = nr % PMUK_MSG_KINDS;
	msg->cpu = nr / PMUK_MSG_KINDS;
	msg->count = atomic64_xchg(&pile->count, 0);
	/* Take the counters after the count: pmuk_post() notes a counter before it counts. */
	msg->counters = atomic_xchg(&pile->counters, 0);
	msg->set = READ_ONCE(pile->set);
	msg->by = xchg(&pile->by, 0);
	return true;
}

/*
 * Take a message, if there is one, and a completion, if there is one, each by itself. The caller
 * may have consumed the message's completion before this call. And the completion may be that of
 * another context, if contexts share it.
 */
static int pmuk_mail_try(struct pmuk_mailbox *mail, struct pmuk_msg *msg)
{
	bool taken = pmuk_mail_take(mail, msg);
	bool completed = mail->completion && try_wait_for_completion(mail->completion);

	if (taken)
		return 1;
	return completed ? 0 : -EAGAIN;
}

static int pmuk_mail_read(struct pmuk_context *ctx, struct pmuk_msg *msg, long timeout)
{
	long left;

	if (IS_ERR_OR_NULL(ctx) || IS_ERR_OR_NULL(msg))
		return -EINVAL;
	if (!timeout)
		return pmuk_mail_try(&ctx->mail, msg);
	if (!ctx->mail.completion)
		return -EINVAL;
	left = wait_for_completion_interruptible_timeout(ctx->mail.completion, timeout);
	if (left > 0)
		return pmuk_mail_take(&ctx->mail, msg);
	return left ?: -ETIMEDOUT;
}

/**
 * pmuk_read() - take a message
 * @ctx: the context
 * @msg: where to put it
 * @noblock: do not wait for one
 *
 * Consumes one completion of &pmuk_context_attr.completion, a message's or another one. If the
 * caller has waited for the completion itself, or pmuk_read() of another context that shares the
 * completion has returned 0, read with @noblock: that takes a message whose completion was consumed
 * already. If the message's completion comes later, a later read consumes it, and returns 0.
 *
 * Follows pfmk_read() of perfmon2's KAPI, which never copied the message out, and left its
 * completion behind for the next wait.
 *
 * Context: May sleep; any but NMI with @noblock.
 * Return: 1 and the message; 0 if a completion was consumed and there is no message;
 * -EAGAIN if @noblock and there is neither; -ERESTARTSYS if a signal came first;
 * -EINVAL if @ctx or @msg is NULL or an ERR_PTR(), or there is no completion to wait for.
 */
int pmuk_read(struct pmuk_context *ctx, struct pmuk_msg *msg, bool noblock)
{
	return pmuk_mail_read(ctx, msg, noblock ? 0 : MAX_SCHEDULE_TIMEOUT);
}
EXPORT_SYMBOL_GPL(pmuk_read);

/**
 * pmuk_read_timeout() - take a message, or give up waiting
 * @ctx: the context
 * @msg: where to put it
 * @timeout: in jiffies; 0: do not wait
 *
 * Context: May sleep.
 * Return: As pmuk_read(); -ETIMEDOUT when the time is over, -EAGAIN if @timeout is 0.
 */
int pmuk_read_timeout(struct pmuk_context *ctx, struct pmuk_msg *msg, unsigned long timeout)
{
	return pmuk_mail_read(ctx, msg, min_t(unsigned long, timeout, MAX_SCHEDULE_TIMEOUT));
}
EXPORT_SYMBOL_GPL(pmuk_read_timeout);
