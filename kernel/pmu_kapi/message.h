/* SPDX-License-Identifier: GPL-2.0 */
/* Messages of a context. */
#ifndef _PMU_KAPI_MESSAGE_H
#define _PMU_KAPI_MESSAGE_H

#include "context.h"

int pmuk_mail_init(struct pmuk_mailbox *mail, struct completion *completion);
void pmuk_mail_end(struct pmuk_mailbox *mail);
void pmuk_post_by(struct pmuk_context *ctx, enum pmuk_msg_kind kind, int cpu, u64 count,
		  u32 counters, u16 set, u64 by);

static inline void pmuk_post(struct pmuk_context *ctx, enum pmuk_msg_kind kind, int cpu,
			     u64 count, u32 counters, u16 set)
{
	pmuk_post_by(ctx, kind, cpu, count, counters, set, 0);
}

#endif /* _PMU_KAPI_MESSAGE_H */
