// SPDX-License-Identifier: GPL-2.0
/// Find counters, buffers, contexts and readers of pmuk that a function makes
/// and leaks.
//# The rules take an object as passed on, and report no leak, once it is returned,
//# assigned, compared or passed to a function that is not pmuk's. Conditions that
//# depend on each other can give false positives.
///
// Confidence: Moderate
// Options: --no-includes --include-headers
// Keywords: pmuk_counter_create, pmuk_buffer_create, pmuk_create_context
// Keywords: pmuk_buffer_claim, pmuk_buffer_release

virtual report

// ---- Variables that outlive the function, or that __free() cleans up

@elsewhere@
global idexpression x;
identifier make =~ "^pmuk_(counter_create|buffer_create|create_context)$";
position made;
@@

x = make@made(...)

@freed exists@
attribute name __free;
type T;
identifier x;
expression E;
identifier make =~ "^pmuk_(counter_create|buffer_create|create_context)$";
position made;
@@

(
T x __free(...) = make@made(...);
|
T x __free(...);
... when any
x = make@made(...)
|
T x __free(...) = E;
... when any
x = make@made(...)
)

// ---- Uses after which the function still owns the object. A counter borrows its buffer.

@harmless@
identifier x;
identifier end =~ "^pmuk_(counter_destroy|buffer_destroy|close)(_deferred)?$";
identifier call =~ "^(pmuk_.*|IS_ERR|IS_ERR_OR_NULL|PTR_ERR|PTR_ERR_OR_ZERO)$";
struct pmuk_attr attr;
struct pmuk_attr *pattr;
position p, ended;
@@

(
end(x@ended, ...)
|
call(..., x@p, ...)
|
attr.buffer = x@p
|
pattr->buffer = x@p
)

@lent@
identifier x, v;
position p;
@@

struct pmuk_attr v = {..., .buffer = x@p, ...};

// ---- Objects that are leaked after a check, or after a use

@checked exists@
iterator name scoped_guard;
type T;
identifier x;
identifier make =~ "^pmuk_(counter_create|buffer_create|create_context)$";
statement S;
position made != {elsewhere.made, freed.made}, left;
position gone != {harmless.p, lent.p};
@@

(
x = make@made(...);
|
T x = make@made(...);
)
... when != x@gone
if (\(IS_ERR(x)\|IS_ERR_OR_NULL(x)\|IS_ERR(x) || ...\)) S
... when != x@gone
    when != scoped_guard(...) { ... x@gone ... }
(
return <+... x@gone ...+>;
|
return@left ...;
)

@used exists@
iterator name scoped_guard;
type T;
identifier x;
identifier make =~ "^pmuk_(counter_create|buffer_create|create_context)$";
identifier use =~ "^pmuk_(counter_[^d]|buffer_[^d]|counter_disable|[^bc])";
position made != {elsewhere.made, freed.made}, left;
position gone != {harmless.p, lent.p};
@@

(
x = make@made(...);
|
T x = make@made(...);
)
... when != x@gone
use(..., x, ...)
... when != x@gone
    when != scoped_guard(...) { ... x@gone ... }
(
return <+... x@gone ...+>;
|
return@left ...;
)

// ---- Objects in a structure that is freed

@stored exists@
expression s, E;
identifier m, f;
identifier make =~ "^pmuk_(counter_create|buffer_create|create_context)$";
identifier end =~ "^pmuk_(counter_destroy|buffer_destroy|close)(_deferred)?$";
identifier free =~ "^k(v|z)?free(_sensitive|_rcu)?$";
statement S;
position made, left;
@@

s->m = make@made(...)
...
if (\(IS_ERR(s->m)\|IS_ERR_OR_NULL(s->m)\|IS_ERR(s->m) || ...\)) S
... when != E = s->m
    when != end(s->m, ...)
    when != f(..., s, ...)
free@left(s, ...)

// ---- Readers

@walk@
iterator name pmuk_for_each_record;
identifier r;
expression rec;
statement S;
position p;
@@

pmuk_for_each_record(rec, &r@p) S

@reading@
identifier r;
identifier call =~ "^pmuk_buffer_(claim|peek|consume|next)$";
position p;
@@

call(..., &r@p, ...)

@claimed exists@
identifier r;
expression b;
statement S;
position made, left;
position gone != {reading.p, walk.p};
@@

struct pmuk_reader r;
... when any
if (pmuk_buffer_claim@made(b, &r)) S
... when != r@gone
return@left ...;

@walked exists@
identifier r;
expression b, rec;
iterator name pmuk_for_each_record;
statement S;
position made, left;
position gone != {reading.p, walk.p};
@@

struct pmuk_reader r;
... when any
pmuk_buffer_claim@made(b, &r)
...
pmuk_for_each_record(rec, &r) S
... when != r@gone
return@left ...;

@peeked exists@
identifier r;
expression b;
position made, left;
position gone != {reading.p, walk.p};
@@

struct pmuk_reader r;
... when any
pmuk_buffer_claim@made(b, &r)
...
\(pmuk_buffer_peek\|pmuk_buffer_consume\|pmuk_buffer_next\)(&r)
... when != r@gone
return@left ...;

// ---- Reports. Two rules may find the same place, which is reported once

@initialize:python@
@@

reported = set()

def new(left):
    if (left.file, left.line) in reported:
        return False
    reported.add((left.file, left.line))
    return True

@script:python depends on report@
make << checked.make;
made << checked.made;
left << checked.left;
@@

if new(left[0]):
    coccilib.report.print_report(left[0],
        "ERROR: the result of %s() on line %s is leaked" % (make, made[0].line))

@script:python depends on report@
make << used.make;
made << used.made;
left << used.left;
@@

if new(left[0]):
    coccilib.report.print_report(left[0],
        "ERROR: the result of %s() on line %s is leaked" % (make, made[0].line))

@script:python depends on report@
make << stored.make;
made << stored.made;
left << stored.left;
@@

if new(left[0]):
    coccilib.report.print_report(left[0],
        "ERROR: the result of %s() on line %s is leaked" % (make, made[0].line))

@script:python depends on report@
made << claimed.made;
left << claimed.left;
@@

if new(left[0]):
    coccilib.report.print_report(left[0],
        "ERROR: the reader claimed on line %s is not released" % made[0].line)

@script:python depends on report@
made << walked.made;
left << walked.left;
@@

if new(left[0]):
    coccilib.report.print_report(left[0],
        "ERROR: the reader claimed on line %s is not released" % made[0].line)

@script:python depends on report@
made << peeked.made;
left << peeked.left;
@@

if new(left[0]):
    coccilib.report.print_report(left[0],
        "ERROR: the reader claimed on line %s is not released" % made[0].line)
