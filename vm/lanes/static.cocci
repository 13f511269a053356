# Lines of our own files that our rules report, and that are right: FILE: the line. See item_cocci_ours of vm/check.
# The hint to use pmuk does not hold for tests that need perf's own events beside pmuk's.
lib/tests/pmuk_rights.h: struct perf_event *event = perf_event_create_kernel_counter(&attr, cpu, NULL, NULL, NULL);
lib/tests/pmuk_counter_sim_kunit.c: event = perf_event_create_kernel_counter(&attr, r->cpu, NULL, NULL, NULL);
lib/tests/pmuk_counter_sw_kunit.c: event = perf_event_create_kernel_counter(&attr, cpu, NULL, fill_for_another, NULL);
lib/tests/pmuk_irq.c: event = perf_event_create_kernel_counter(&attr, cpu, NULL, irq_nmi_overflow, NULL);
lib/tests/pmuk_share_kunit.c: event = perf_event_create_kernel_counter(&pa, cpu, NULL, no_overflow, NULL);
lib/tests/pmuk_sim.c: event = perf_event_create_kernel_counter(&attr, cpu, NULL, NULL, NULL);
lib/tests/pmuk_sim_kunit.c: event = perf_event_create_kernel_counter(&attr, 0, NULL, NULL, NULL);
lib/tests/pmuk_sim_kunit.c: event = perf_event_create_kernel_counter(&attr, cpu, NULL,
lib/tests/pmuk_bench_context.c: c->events[i] = perf_event_create_kernel_counter(&attr, raw_smp_processor_id(),
lib/tests/pmuk_context_hw_kunit.c: event = perf_event_create_kernel_counter(&attr, hw->cpu, NULL, NULL, NULL);
# A second close is refused before it sleeps.
lib/tests/pmuk_context_errno_kunit.c: again = deferred ? pmuk_close_deferred(a->ctx, NULL) : pmuk_close(a->ctx);
lib/tests/pmuk_context_kunit.c: e->third = pmuk_close(e->ctx);
# The values that the test expects are none if there is no counter.
lib/tests/pmuk_counter_overflow_kunit.c: pmuk_counter_read(c, &value);
lib/tests/pmuk_counters.h: event = perf_event_create_kernel_counter(attr, -1, task, NULL, NULL);
lib/tests/pmuk_guests.c: event = perf_event_create_kernel_counter(&attr, 0, NULL, NULL, NULL);
