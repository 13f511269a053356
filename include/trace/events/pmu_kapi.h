/* SPDX-License-Identifier: GPL-2.0 */
/* Tracepoints: contexts of pmuk come and go, exchange event sets, overflow and lose records. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM pmu_kapi

#if !defined(_TRACE_PMU_KAPI_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_PMU_KAPI_H

#include <linux/tracepoint.h>
#include <linux/types.h>

DECLARE_EVENT_CLASS(pmuk_context,
		    TP_PROTO(u64 id, int value),
		    TP_ARGS(id, value),
		    TP_STRUCT__entry(__field(u64, id)
				     __field(int, value)),
		    TP_fast_assign(__entry->id = id;
				   __entry->value = value;),
		    TP_printk("context=%llu value=%d", __entry->id, __entry->value)
);

/* A context was created; the value is its flags. */
DEFINE_EVENT(pmuk_context, pmuk_context_create,
	     TP_PROTO(u64 id, int value),
	     TP_ARGS(id, value)
);

/* A context was loaded, or could not be loaded; the value is 0 or -errno. */
DEFINE_EVENT(pmuk_context, pmuk_context_load,
	     TP_PROTO(u64 id, int value),
	     TP_ARGS(id, value)
);

/* A context is being closed; the value is 0. */
DEFINE_EVENT(pmuk_context, pmuk_context_close,
	     TP_PROTO(u64 id, int value),
	     TP_ARGS(id, value)
);

/*
 * A context has taken one event set off the PMU and put its next set on (multiplexing); ns is how
 * long that took.
 */
TRACE_EVENT(pmuk_switch,
	    TP_PROTO(u64 id, int cpu, u16 from, u16 to, u64 ns),
	    TP_ARGS(id, cpu, from, to, ns),
	    TP_STRUCT__entry(__field(u64, id)
			     __field(u64, ns)
			     __field(int, cpu)
			     __field(u16, from)
			     __field(u16, to)),
	    TP_fast_assign(__entry->id = id;
			   __entry->ns = ns;
			   __entry->cpu = cpu;
			   __entry->from = from;
			   __entry->to = to;),
	    TP_printk("context=%llu cpu=%d from=%u to=%u ns=%llu", __entry->id, __entry->cpu,
		      __entry->from, __entry->to, __entry->ns)
);

/* A context has given way on a CPU to one of higher rank. */
TRACE_EVENT(pmuk_give_way,
	    TP_PROTO(u64 id, int cpu, u64 to),
	    TP_ARGS(id, cpu, to),
	    TP_STRUCT__entry(__field(u64, id)
			     __field(u64, to)
			     __field(int, cpu)),
	    TP_fast_assign(__entry->id = id;
			   __entry->to = to;
			   __entry->cpu = cpu;),
	    TP_printk("context=%llu cpu=%d to=%llu", __entry->id, __entry->cpu, __entry->to)
);

/*
 * A counter has overflowed. action: the flags that the record format's handler returned, enum
 * pmuk_format_action.
 */
TRACE_EVENT(pmuk_overflow,
	    TP_PROTO(u64 id, int cpu, u16 set, u16 num, u32 action),
	    TP_ARGS(id, cpu, set, num, action),
	    TP_STRUCT__entry(__field(u64, id)
			     __field(int, cpu)
			     __field(u32, action)
			     __field(u16, set)
			     __field(u16, num)),
	    TP_fast_assign(__entry->id = id;
			   __entry->cpu = cpu;
			   __entry->action = action;
			   __entry->set = set;
			   __entry->num = num;),
	    TP_printk("context=%llu cpu=%d set=%u counter=%u action=%#x", __entry->id,
		      __entry->cpu, __entry->set, __entry->num, __entry->action)
);

/*
 * The time that an overflow has taken, if its context has a limit or debugfs measures. If the
 * context has exceeded its limit, over is 1.
 */
TRACE_EVENT(pmuk_cost,
	    TP_PROTO(u64 id, int cpu, u64 ns, bool over),
	    TP_ARGS(id, cpu, ns, over),
	    TP_STRUCT__entry(__field(u64, id)
			     __field(u64, ns)
			     __field(int, cpu)
			     __field(bool, over)),
	    TP_fast_assign(__entry->id = id;
			   __entry->ns = ns;
			   __entry->cpu = cpu;
			   __entry->over = over;),
	    TP_printk("context=%llu cpu=%d ns=%llu over=%d", __entry->id, __entry->cpu,
		      __entry->ns, __entry->over)
);

/* Records of a CPU's buffer were lost. */
TRACE_EVENT(pmuk_lost,
	    TP_PROTO(u64 id, int cpu, u64 count),
	    TP_ARGS(id, cpu, count),
	    TP_STRUCT__entry(__field(u64, id)
			     __field(u64, count)
			     __field(int, cpu)),
	    TP_fast_assign(__entry->id = id;
			   __entry->count = count;
			   __entry->cpu = cpu;),
	    TP_printk("context=%llu cpu=%d count=%llu", __entry->id, __entry->cpu,
		      __entry->count)
);

#endif /* _TRACE_PMU_KAPI_H */

#include <trace/define_trace.h>
