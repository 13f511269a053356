// SPDX-License-Identifier: GPL-2.0
/// Find calls of pmuk that may sleep where sleeping is forbidden: under a
/// spinlock, with preemption, interrupts or bottom halves off, in an RCU read-side
/// section, or in a function that an interrupt calls.
//# The rules look at one function at a time. They see neither its callers nor the
//# functions that it calls.
///
// Confidence: Moderate
// Options: --no-includes --include-headers
// Keywords: pmuk, might_sleep, spin_lock, preempt_disable, rcu_read_lock, overflow

virtual report

@fast@
symbol true;
position p;
@@

pmuk_read@p(..., true, ...)

@sleeps@
identifier call =~ "^pmuk_(counter_(create|destroy|enable|disable|read)|buffer_(create|destroy)|create_context|close|(un)?load_context|start|stop|restart(_cpu)?|write_pm[cd]s|read_pmds|(create|delete|getinfo)_evtsets|switch_evtset|read|read_timeout|(un)?register_format|room)$";
@@

call(...)

// ---- Calls between a call that forbids sleeping and its counterpart

@locked exists@
expression l;
identifier lock =~ "^(raw_)?spin_lock(_nested|_bh|_irq|_irqsave|_irqsave_nested)?$|^(read|write)_lock(_bh|_irq|_irqsave)?$";
identifier unlock =~ "^(raw_)?spin_unlock(_bh|_irq|_irqrestore)?$|^(read|write)_unlock(_bh|_irq|_irqrestore)?$";
identifier sleeps.call;
position at, p != fast.p;
@@

lock@at(l, ...)
... when != unlock(l, ...)
call@p(...)

@preempt exists@
identifier off =~ "^(preempt_disable|preempt_disable_notrace|get_cpu|get_cpu_var|get_cpu_ptr)$";
identifier on =~ "^(preempt_enable|preempt_enable_notrace|preempt_enable_no_resched|put_cpu|put_cpu_var|put_cpu_ptr)$";
identifier sleeps.call;
position at, p != fast.p;
@@

off@at(...)
... when != on(...)
call@p(...)

@irqs exists@
identifier off =~ "^(local_irq_disable|local_irq_save)$";
identifier on =~ "^(local_irq_enable|local_irq_restore)$";
identifier sleeps.call;
position at, p != fast.p;
@@

off@at(...)
... when != on(...)
call@p(...)

@bh exists@
identifier off =~ "^(local_bh_disable)$";
identifier on =~ "^(local_bh_enable)$";
identifier sleeps.call;
position at, p != fast.p;
@@

off@at(...)
... when != on(...)
call@p(...)

@rcu exists@
identifier off =~ "^(rcu_read_lock(_bh|_sched)?)$";
identifier on =~ "^(rcu_read_unlock(_bh|_sched)?)$";
identifier sleeps.call;
position at, p != fast.p;
@@

off@at(...)
... when != on(...)
call@p(...)

// ---- Calls in the scope of a guard, which ends with its block

@closed exists@
identifier g1;
identifier g =~ "^((raw_)?spinlock|(read|write)_lock|preempt|irq|rcu)";
identifier sleeps.call;
expression E, E1, E2;
statement S;
position p;
@@

(
if (E) {
... when any
guard(g)(...);
... when any
} else S
|
while (E) {
... when any
guard(g)(...);
... when any
}
|
for (E; E1; E2) {
... when any
guard(g)(...);
... when any
}
)
... when != guard(g1)(...)
call@p(...)

@guarded exists@
identifier g =~ "^((raw_)?spinlock|(read|write)_lock|preempt|irq|rcu)";
identifier sleeps.call;
position at, p != {fast.p, closed.p};
@@

{
... when any
guard(g)@at(...);
... when any
call@p(...)
... when any
}

@scoped@
iterator name scoped_guard;
expression E;
identifier g =~ "^((raw_)?spinlock|(read|write)_lock|preempt|irq|rcu)";
identifier sleeps.call;
position at, p != fast.p;
@@

(
scoped_guard@at(g, ...) {
<+...
call@p(...)
...+>
}
|
scoped_guard@at(g, ...)
	call@p(...);
|
scoped_guard@at(g, ...)
	E = call@p(...);
|
scoped_guard@at(g, ...)
	return call@p(...);
)

// ---- Calls in a function that is registered as an atomic callback

@initialize:python@
@@

handlers = {}
reported = set()

def report_once(p, text):
    if (p.file, p.line) not in reported:
        reported.add((p.file, p.line))
        coccilib.report.print_report(p, "ERROR: " + text)

@set1@
identifier fn;
expression E;
identifier set =~ "^(request_(threaded_|percpu_)?(irq|nmi)|register_nmi_handler|timer_setup(_on_stack)?|hrtimer_setup(_on_stack)?|tasklet_(init|setup)|init_irq_work|call_rcu|smp_call_function_(single|many)|on_each_cpu_mask)$";
position p;
@@

set(E, fn@p, ...)

@set2@
identifier fn;
expression E, E1;
identifier set =~ "^devm_request_(threaded_)?irq$";
position p;
@@

set(E, E1, fn@p, ...)

@set3@
identifier fn;
identifier set =~ "^(on_each_cpu|smp_call_function|IRQ_WORK_INIT(_LAZY|_HARD)?)$";
position p;
@@

set(fn@p, ...)

@set4@
declarer name DEFINE_TIMER, DEFINE_IRQ_WORK, DECLARE_TASKLET;
identifier fn, v;
position p;
@@

(
DEFINE_TIMER(v, fn@p);
|
DEFINE_IRQ_WORK(v, fn@p);
|
DECLARE_TASKLET(v, fn@p);
)

@set5@
struct pmuk_attr attr;
struct pmuk_attr *pattr;
struct hrtimer timer;
struct hrtimer *ptimer;
identifier fn;
position p;
@@

(
attr.overflow = fn@p
|
pattr->overflow = fn@p
|
timer.function = fn@p
|
ptimer->function = fn@p
)

@set6@
identifier fn, v;
position p;
@@

struct pmuk_attr v = {..., .overflow = fn@p, ...};

@set7@
identifier fn;
position p;
@@

 (struct pmuk_attr){..., .overflow = fn@p, ...}

@set8@
identifier fn, v;
position p;
@@

struct pmuk_format v = {..., .handler = fn@p, ...};

@script:python@
fn << set1.fn;
p << set1.p;
@@

handlers[p[0].file, fn] = p

@script:python@
fn << set2.fn;
p << set2.p;
@@

handlers[p[0].file, fn] = p

@script:python@
fn << set3.fn;
p << set3.p;
@@

handlers[p[0].file, fn] = p

@script:python@
fn << set4.fn;
p << set4.p;
@@

handlers[p[0].file, fn] = p

@script:python@
fn << set5.fn;
p << set5.p;
@@

handlers[p[0].file, fn] = p

@script:python@
fn << set6.fn;
p << set6.p;
@@

handlers[p[0].file, fn] = p

@script:python@
fn << set7.fn;
p << set7.p;
@@

handlers[p[0].file, fn] = p

@script:python@
fn << set8.fn;
p << set8.p;
@@

handlers[p[0].file, fn] = p

@inside exists@
identifier fn;
identifier sleeps.call;
position p != fast.p;
@@

fn(...)
{
<+...
call@p(...)
...+>
}

@script:python depends on report@
fn << inside.fn;
call << sleeps.call;
p << inside.p;
@@

if (p[0].file, fn) in handlers:
    report_once(p[0], "%s() may sleep, %s() may not: see line %s" %
         (call, fn, handlers[p[0].file, fn][0].line))

@script:python depends on report@
call << sleeps.call;
at << locked.at;
p << locked.p;
@@

report_once(p[0], "%s() may sleep, and must not after line %s" % (call, at[0].line))

@script:python depends on report@
call << sleeps.call;
at << preempt.at;
p << preempt.p;
@@

report_once(p[0], "%s() may sleep, and must not after line %s" % (call, at[0].line))

@script:python depends on report@
call << sleeps.call;
at << irqs.at;
p << irqs.p;
@@

report_once(p[0], "%s() may sleep, and must not after line %s" % (call, at[0].line))

@script:python depends on report@
call << sleeps.call;
at << bh.at;
p << bh.p;
@@

report_once(p[0], "%s() may sleep, and must not after line %s" % (call, at[0].line))

@script:python depends on report@
call << sleeps.call;
at << rcu.at;
p << rcu.p;
@@

report_once(p[0], "%s() may sleep, and must not after line %s" % (call, at[0].line))

@script:python depends on report@
call << sleeps.call;
at << guarded.at;
p << guarded.p;
@@

report_once(p[0], "%s() may sleep, and must not after line %s" % (call, at[0].line))

@script:python depends on report@
call << sleeps.call;
at << scoped.at;
p << scoped.p;
@@

report_once(p[0], "%s() may sleep, and must not after line %s" % (call, at[0].line))
