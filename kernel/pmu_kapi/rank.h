/* SPDX-License-Identifier: GPL-2.0 */
/* Contexts of lower rank give way. */
#ifndef _PMU_KAPI_RANK_H
#define _PMU_KAPI_RANK_H

#include "context.h"

void pmuk_inst_set_missed(struct pmuk_inst *inst, bool missed) __must_hold(&inst->ctx->lock);
int pmuk_rank_make_room(struct pmuk_inst *inst, int (*place)(struct pmuk_inst *inst))
	__must_hold(&inst->ctx->lock);
int pmuk_rank_place(struct pmuk_inst *inst, int (*place)(struct pmuk_inst *inst))
	__must_hold(&inst->ctx->lock);
void pmuk_rank_placed(struct pmuk_inst *inst) __must_hold(&inst->ctx->lock);
void pmuk_rank_recover(struct pmuk_inst *inst) __must_hold(&inst->ctx->lock);
void pmuk_rank_yield(struct pmuk_inst *inst) __must_hold(&inst->ctx->lock);
void pmuk_rank_came_back(struct pmuk_inst *inst) __must_hold(&inst->ctx->lock);
void pmuk_rank_recall(struct pmuk_context *ctx) __must_hold(&ctx->lock);

#endif /* _PMU_KAPI_RANK_H */
