/* SPDX-License-Identifier: GPL-2.0 */
/* Registers that are kept for contexts until these start. */
#ifndef _PMU_KAPI_RESERVE_H
#define _PMU_KAPI_RESERVE_H

#include "context.h"

struct seq_file;

void pmuk_reserve_init(void);
void pmuk_reserve_exit(void);
void pmuk_inst_reserve(struct pmuk_inst *inst) __must_hold(&inst->ctx->lock);
void pmuk_inst_unreserve(struct pmuk_inst *inst) __must_hold(&inst->ctx->lock);
void pmuk_context_reserve(struct pmuk_context *ctx) __must_hold(&ctx->lock);
void pmuk_context_unreserve(struct pmuk_context *ctx) __must_hold(&ctx->lock);
bool pmuk_reserve_lend(struct pmuk_inst *to) __must_hold(&to->ctx->lock);
void pmuk_reserve_placed(int cpu);
void pmuk_reserve_prefer(int cpu, enum pmuk_rank rank);
void pmuk_reserve_recall(void);
void pmuk_reserve_flush(void);
void pmuk_reserve_show(struct seq_file *m, struct pmuk_inst *inst, const char *rank)
	__must_hold(&inst->ctx->lock);

#endif /* _PMU_KAPI_RESERVE_H */
