// SPDX-License-Identifier: GPL-2.0
/// Find results of pmuk's create calls that are used without IS_ERR(), or compared
/// with NULL, which these calls never return.
//# pmuk's calls refuse an ERR_PTR() with -EINVAL, so a missing check loses only the
//# reason. The rules do not look into functions that get the object, and that may
//# check it.
///
// Confidence: Moderate
// Options: --no-includes --include-headers
// Keywords: pmuk_counter_create, pmuk_buffer_create, pmuk_create_context, IS_ERR

virtual context
virtual org
virtual report

// An expression may check and use a result, or compare it with NULL and check it.
@guarded@
iterator name scoped_guard;
expression x, E;
identifier ask =~ "ERR";
position p;
@@

(
 (<+... ask(..., x, ...) ...+>) || (<+... x@p ...+>)
|
 (<+... x@p ...+>) || (<+... ask(..., x, ...) ...+>)
|
 (<+... ask(..., x, ...) ...+>) && (<+... x@p ...+>)
|
 (<+... x@p ...+>) && (<+... ask(..., x, ...) ...+>)
|
 (<+... ask(..., x, ...) ...+>) ?: (<+... x@p ...+>)
|
 (<+... ask(..., x, ...) ...+>) ? E : (<+... x@p ...+>)
|
 (<+... ask(..., x, ...) ...+>) ? (<+... x@p ...+>) : E
)

@used exists@
attribute name __free;
expression x, E;
identifier make =~ "^pmuk_(counter_create|buffer_create|create_context)$";
identifier use =~ "^pmuk_(counter_[^d]|buffer_[^d]|counter_disable|[^bc])";
identifier other !~ "^pmuk_";
position made, p != guarded.p;
@@

x = make@made(...)
... when != x = E
    when != other(..., x, ...)
use(..., x@p, ...)

@compared exists@
attribute name __free;
expression x, E;
identifier make =~ "^pmuk_(counter_create|buffer_create|create_context)$";
identifier other !~ "^pmuk_";
position made, p != guarded.p;
@@

x = make@made(...)
... when != x = E
    when != other(..., x, ...)
(
x@p == NULL
|
x@p != NULL
)

@depends on context@
position used.p;
expression x;
@@

* x@p

@depends on context@
position compared.p;
expression x;
@@

* x@p

@script:python depends on report@
made << used.made;
make << used.make;
p << used.p;
@@

coccilib.report.print_report(p[0],
    "ERROR: result of %s() on line %s used without IS_ERR()" % (make, made[0].line))

@script:python depends on report@
made << compared.made;
make << compared.make;
p << compared.p;
@@

coccilib.report.print_report(p[0],
    "ERROR: result of %s() on line %s is never NULL: use IS_ERR()" % (make, made[0].line))

@script:python depends on org@
made << used.made;
make << used.make;
p << used.p;
@@

cocci.print_main(make, made)
cocci.print_secs("used without IS_ERR()", p)

@script:python depends on org@
made << compared.made;
make << compared.make;
p << compared.p;
@@

cocci.print_main(make, made)
cocci.print_secs("never NULL", p)
