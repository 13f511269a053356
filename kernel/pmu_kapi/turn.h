/* SPDX-License-Identifier: GPL-2.0 */
/* Turns of event sets. */
#ifndef _PMU_KAPI_TURN_H
#define _PMU_KAPI_TURN_H

#include "context.h"

struct pmuk_turn *pmuk_inst_turn(struct pmuk_inst *inst, u16 set);
struct pmuk_turn *pmuk_inst_first(struct pmuk_inst *inst);
struct pmuk_slot *pmuk_inst_slot(struct pmuk_inst *inst, u16 set, u16 num);
int pmuk_turn_enable(struct pmuk_inst *inst, struct pmuk_turn *turn, struct pmuk_slot **failed)
	__must_hold(&inst->lock);
int pmuk_turn_begin(struct pmuk_inst *inst, struct pmuk_turn *turn, struct pmuk_slot **failed)
	__must_hold(&inst->lock);
void pmuk_turn_end(struct pmuk_inst *inst) __must_hold(&inst->lock);
void pmuk_turn_watch(struct pmuk_turn *turn);
void pmuk_inst_init_switch(struct pmuk_inst *inst);
void pmuk_inst_switch(struct pmuk_inst *inst);
void pmuk_inst_go_on(struct pmuk_inst *inst) __must_hold(&inst->lock);

#endif /* _PMU_KAPI_TURN_H */
