// SPDX-License-Identifier: GPL-2.0
/// Find counters, buffers and contexts of pmuk that are used after they were
/// destroyed or closed.
//# If a close fails, the context may be used: the rules leave out the branch that
//# handles the failure. Conditions that depend on each other can give false
//# positives.
///
// Confidence: Moderate
// Options: --no-includes --include-headers
// Keywords: pmuk_counter_destroy, pmuk_buffer_destroy, pmuk_close
// Keywords: pmuk_counter_destroy_deferred, pmuk_close_deferred, use after free

virtual org
virtual report

@over@
expression x;
identifier end =~ "^pmuk_(counter_destroy|buffer_destroy|close)(_deferred)?$";
position p;
@@

end@p(x, ...);

@used exists@
iterator name scoped_guard;
expression over.x, part <= over.x, E;
identifier over.end, i;
identifier f !~ "^(IS_ERR|IS_ERR_OR_NULL|PTR_ERR|PTR_ERR_OR_ZERO|printk|pr_.*|dev_.*|trace_.*)$";
identifier leave =~ "^(KUNIT_ASSERT_|KUNIT_FAIL|kunit_skip|BUG|panic)";
iterator each;
statement S;
type T;
position over.p, at;
@@

end@p(x, ...)
... when != part = E
    when != &part
    when != T i = E;
    when != each(..., part, ...) S
    when != scoped_guard(...) { ... part = E ... }
    when != leave(...)
(
return@at x;
|
E =@at x
|
f@at(..., x, ...)
)

@deferred exists@
expression x, E;
identifier end =~ "^pmuk_(counter_destroy_deferred|close|close_deferred)$";
identifier f !~ "^(IS_ERR|IS_ERR_OR_NULL|PTR_ERR|PTR_ERR_OR_ZERO|printk|pr_.*|dev_.*|trace_.*)$";
identifier leave =~ "^(KUNIT_ASSERT_|KUNIT_FAIL|kunit_skip|BUG|panic)";
statement S;
position p, at;
@@

if (end@p(x, ...)) S
... when != x = E
    when != leave(...)
f@at(..., x, ...)

@script:python depends on report@
p << over.p;
at << used.at;
end << over.end;
@@

coccilib.report.print_report(at[0], "ERROR: used after %s() on line %s" % (end, p[0].line))

@script:python depends on report@
p << deferred.p;
at << deferred.at;
end << deferred.end;
@@

coccilib.report.print_report(at[0], "ERROR: used after %s() on line %s" % (end, p[0].line))

@script:python depends on org@
p << over.p;
at << used.at;
end << over.end;
@@

cocci.print_main(end, p)
cocci.print_secs("use", at)

@script:python depends on org@
p << deferred.p;
at << deferred.at;
end << deferred.end;
@@

cocci.print_main(end, p)
cocci.print_secs("use", at)
