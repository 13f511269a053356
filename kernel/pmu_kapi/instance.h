/* SPDX-License-Identifier: GPL-2.0 */
/* The part of a context that is on one CPU, or on its task. */
#ifndef _PMU_KAPI_INSTANCE_H
#define _PMU_KAPI_INSTANCE_H

#include "context.h"

bool pmuk_inst_from(struct pmuk_context *ctx, unsigned int *cpu, struct pmuk_inst **inst)
	__must_hold(&ctx->lock) __assumes_ctx_lock(&(*inst)->ctx->lock);

#define pmuk_for_each_inst(inst, ctx)	\
	for (unsigned int __cpu = 0; pmuk_inst_from(ctx, &__cpu, &(inst)); __cpu++)

struct pmuk_inst *pmuk_inst_alloc(struct pmuk_context *ctx, int cpu) __must_hold(&ctx->lock);
void pmuk_inst_free(struct pmuk_inst *inst);
void pmuk_inst_tell_failed(const struct pmuk_inst *inst, struct pmuk_target *target);
int pmuk_inst_place(struct pmuk_inst *inst) __must_hold(&inst->ctx->lock);
void pmuk_inst_retire(struct pmuk_inst *inst) __must_hold(&inst->ctx->lock);
bool pmuk_cpu_is_isolated(int cpu);
void pmuk_inst_finish(struct pmuk_inst *inst) __must_hold(&inst->ctx->lock);
void pmuk_insts_call(struct pmuk_context *ctx, void (*fn)(struct pmuk_inst *inst))
	__must_hold(&ctx->lock);
int pmuk_inst_start(struct pmuk_inst *inst);
void pmuk_inst_stop(struct pmuk_inst *inst);
void pmuk_inst_restart(struct pmuk_inst *inst);
bool pmuk_inst_has_pinned(struct pmuk_inst *inst, const struct pmu *pmu, int rank);
bool pmuk_inst_has_used(struct pmuk_inst *inst, const struct pmu *pmu);
bool pmuk_inst_has_lost(struct pmuk_inst *inst) __must_hold(&inst->ctx->lock);
int pmuk_inst_reclaim(struct pmuk_inst *inst) __must_hold(&inst->ctx->lock);
void pmuk_inst_watch(struct pmuk_inst *inst) __must_hold(&inst->ctx->lock);

#endif /* _PMU_KAPI_INSTANCE_H */
