/*
 * The performance counters of x86 CPUs, for TCG
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A CPU of Intel has the architectural PMU, version 2: four general and three fixed counters, with
 * full-width writes. A CPU of AMD has the core extension's six counters; if its CPUID reaches leaf
 * 0x80000022 (-cpu ...,xlevel=0x80000022), it has the global registers of PerfMonV2, too. All
 * counters have 48 bits.
 *
 * Cycles pass at 1 GHz of virtual time while the CPU is not halted. Under -icount each CPU counts its
 * own instructions, to which tcg_spin() may add some; without -icount they read 0, and Intel's CPUID
 * says that the event is missing. Other events read 0, too.
 *
 * A counter is brought up to date when the guest reads it, when an overflow is due, and before anything
 * changes that decides whether it counts: its registers, the privilege level, HLT, SVM's world.
 *
 * Hardware does more in these cases: it refuses reserved bits with #GP, where we store them; it
 * freezes counters on an interrupt when IA32_DEBUGCTL says so; with AnyThread it counts the core's
 * other thread; and while EFER.SVME is clear, AMD's host-only counters do not count.
 */
#include "qemu/osdep.h"
#include "qemu/timer.h"
#include "qemu/main-loop.h"
#include "cpu.h"
#include "exec/helper-proto.h"
#include "system/cpu-timers.h"
#include "hw/i386/apic.h"
#include "tcg/helper-tcg.h"

#define COUNTER_MAX     (1ULL << 48)
#define INTEL_GENERAL   4
#define INTEL_FIXED     3
#define AMD_GENERAL     6

/* fields of the event select registers, of Intel and AMD */
#define SEL_EVENT       0xf0000ffffULL  /* bits 35:32 are AMD's */
#define SEL_USR         (1 << 16)
#define SEL_OS          (1 << 17)
#define SEL_INT         (1 << 20)
#define SEL_EN          (1 << 22)
#define SEL_EDGE        (1 << 18)
#define SEL_COMPARE     0xff800000ULL   /* the threshold, and whether to invert its comparison */
#define SEL_GUEST       (1ULL << 40)    /* AMD's */
#define SEL_HOST        (1ULL << 41)

/* Intel's control register has four bits for each fixed counter */
#define FIXED_OS        1
#define FIXED_USR       2
#define FIXED_INT       8

#define PERF_CAP_FW_WRITE       (1 << 13)
#define MISC_ENABLE_EMON        (1 << 7)        /* the CPU has a PMU */
#define INTEL_PMC0              0x4c1   /* the counters of MSR_P6_PERFCTR0, which take all bits here */
#define AMD_LEGACY_SEL0         0xc0010000
#define AMD_LEGACY_CTR0         0xc0010004
#define AMD_CORE0               0xc0010200      /* event selects at even addresses, counters at odd ones */
#define AMD_GLOBAL_STATUS       0xc0000300
#define AMD_GLOBAL_CTL          0xc0000301
#define AMD_GLOBAL_STATUS_CLR   0xc0000302
#define AMD_GLOBAL_STATUS_SET   0xc0000303

typedef enum { NOTHING, CYCLES, INSNS } What;

typedef struct {
    uint64_t *value;
    uint64_t flag;              /* the counter's bit in the global registers */
    What what;
    bool usr, os, guest, host;  /* the levels and worlds in which it counts */
    bool interrupts;
} Counter;

static bool is_amd(CPUX86State *env)
{
    return IS_AMD_CPU(env);
}

static bool has_global(CPUX86State *env)
{
    return !is_amd(env) || env->cpuid_xlevel >= 0x80000022;
}

static int nr_general(CPUX86State *env)
{
    return is_amd(env) ? AMD_GENERAL : INTEL_GENERAL;
}

static int nr_fixed(CPUX86State *env)
{
    return is_amd(env) ? 0 : INTEL_FIXED;
}

static What intel_event(uint64_t sel)
{
    switch (sel & SEL_EVENT) {
    case 0x003c:                /* unhalted core cycles */
    case 0x013c:                /* unhalted reference cycles */
        return CYCLES;
    case 0x00c0:
        return INSNS;
    }
    return NOTHING;
}

static What amd_event(uint64_t sel)
{
    switch (sel & SEL_EVENT) {
    case 0x0076:                /* cycles not in halt */
    case 0x100000120:           /* cycles not in halt, at the P0 frequency */
        return CYCLES;
    case 0x00c0:
        return INSNS;
    }
    return NOTHING;
}

static Counter general_counter(CPUX86State *env, int i)
{
    uint64_t sel = env->msr_gp_evtsel[i];
    uint64_t worlds = is_amd(env) ? sel & (SEL_GUEST | SEL_HOST) : 0;
    Counter c = {
        .value = &env->msr_gp_counters[i],
        .flag = 1ULL << i,
        .usr = sel & SEL_USR,
        .os = sel & SEL_OS,
        .guest = worlds != SEL_HOST,
        .host = worlds != SEL_GUEST,
        .interrupts = sel & SEL_INT,
    };

    if ((sel & SEL_EN) && !(sel & (SEL_EDGE | SEL_COMPARE))) {
        c.what = is_amd(env) ? amd_event(sel) : intel_event(sel);
    }
    return c;
}

static Counter fixed_counter(CPUX86State *env, int i)
{
    int control = env->msr_fixed_ctr_ctrl >> (4 * i);

    return (Counter) {
        .value = &env->msr_fixed_counters[i],
        .flag = 1ULL << (32 + i),
        .what = i == 0 ? INSNS : CYCLES,
        .usr = control & FIXED_USR,
        .os = control & FIXED_OS,
        .guest = true,
        .host = true,
        .interrupts = control & FIXED_INT,
    };
}

/* Describes counter @i in @c; returns false when the CPU has no such counter */
static bool counter(CPUX86State *env, int i, Counter *c)
{
    if (i < nr_general(env)) {
        *c = general_counter(env, i);
    } else if (i < nr_general(env) + nr_fixed(env)) {
        *c = fixed_counter(env, i - nr_general(env));
    } else {
        return false;
    }
    if (has_global(env) && !(env->msr_global_ctrl & c->flag)) {
        c->what = NOTHING;
    }
    return true;
}

static bool counts_now(CPUX86State *env, const Counter *c)
{
    bool user = (env->hflags & HF_CPL_MASK) == 3;
    bool guest = env->hflags & HF_GUEST_MASK;

    return c->what != NOTHING && !env->pmu.halted &&
           (user ? c->usr : c->os) && (guest ? c->guest : c->host);
}

static void interrupt(CPUX86State *env)
{
    bool locked = bql_locked();

    if (!locked) {
        bql_lock();
    }
    /* Intel's local APIC masks the entry on delivery, AMD's does not. */
    env->pmu.held = !apic_deliver_pmi(env_archcpu(env)->apic_state, !is_amd(env));
    if (!locked) {
        bql_unlock();
    }
}

/*
 * The guest has unmasked LVTPC. Deliver the interrupt that was held meanwhile, unless the guest has
 * cleared the status since.
 */
void x86_pmu_unmasked(CPUX86State *env)
{
    bool held = env->pmu.held;

    env->pmu.held = false;
    if (held && env->msr_global_status) {
        interrupt(env);
    }
}

/* Adds what has passed since the last call to all counters that count. Only the CPU's own thread may call */
static void bring_up_to_date(CPUX86State *env)
{
    uint64_t now = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
    uint64_t insns = icount_enabled() ? icount_get_cpu(env_cpu(env)) : 0;
    uint64_t passed[] = {
        [CYCLES] = now - env->pmu.ns,
        [INSNS] = insns - env->pmu.insns,
    };
    bool overflow = false;
    Counter c;

    env->pmu.ns = now;
    env->pmu.insns = insns;
    for (int i = 0; counter(env, i, &c); i++) {
        if (!counts_now(env, &c)) {
            continue;
        }
        *c.value += passed[c.what];
        if (*c.value >= COUNTER_MAX) {
            *c.value -= COUNTER_MAX;
            env->msr_global_status |= c.flag;
            overflow |= c.interrupts;
        }
    }
    if (overflow) {
        interrupt(env);
    }
}

/*
 * Sets the timer to the next overflow. The timer may expire early, as other CPUs' instructions move
 * the time on, too; it is then set again.
 */
static void set_timer(CPUX86State *env)
{
    uint64_t left = UINT64_MAX;
    Counter c;

    for (int i = 0; counter(env, i, &c); i++) {
        if (c.interrupts && counts_now(env, &c) && (c.what == CYCLES || icount_enabled())) {
            uint64_t rest = COUNTER_MAX - *c.value;

            left = MIN(left, c.what == CYCLES ? rest : icount_to_ns(rest));
        }
    }
    if (left == UINT64_MAX) {
        timer_del(env->pmu.timer);
    } else {
        timer_mod(env->pmu.timer, env->pmu.ns + left);
    }
}

static void overflow_is_due(CPUState *cs, run_on_cpu_data data)
{
    bring_up_to_date(cpu_env(cs));
    set_timer(cpu_env(cs));
}

/* The timer's callback runs on a thread of its own, which must not touch the CPU's state. */
static void expired(void *cs)
{
    async_run_on_cpu(cs, overflow_is_due, RUN_ON_CPU_NULL);
}

void x86_pmu_init(CPUX86State *env)
{
    env->pmu.timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, expired, env_cpu(env));
}

/*
 * After reset, the general counters are enabled globally, so that software that knows no global
 * control finds them counting. An INIT restores all registers afterwards.
 */
void x86_pmu_reset(CPUX86State *env)
{
    if (!env->pmu.timer) {
        return;
    }
    env->pmu.halted = env_cpu(env)->halted;
    env->msr_global_ctrl = MAKE_64BIT_MASK(0, nr_general(env));
    if (!is_amd(env)) {
        env->msr_ia32_misc_enable |= MISC_ENABLE_EMON;
    }
}

/* The CPU enters HLT, or leaves it */
void x86_pmu_halt(CPUX86State *env, bool halted)
{
    if (env->pmu.timer && env->pmu.halted != halted) {
        bring_up_to_date(env);
        env->pmu.halted = halted;
        set_timer(env);
    }
}

/* Changes hflags to @hflags, in which the privilege level or SVM's world may differ */
void x86_pmu_switch(CPUX86State *env, uint32_t hflags)
{
    if (!env->pmu.picky || hflags == env->hflags) {
        env->hflags = hflags;
        return;
    }
    bring_up_to_date(env);
    env->hflags = hflags;
    set_timer(env);
}

/* The guest has changed a register */
static void settle(CPUX86State *env)
{
    Counter c;

    env->pmu.picky = false;
    for (int i = 0; counter(env, i, &c); i++) {
        env->pmu.picky |= c.what != NOTHING && !(c.usr && c.os && c.guest && c.host);
    }
    set_timer(env);
}

/* Finds the counter, event select or control register of @msr; returns NULL when @msr is none of them */
static uint64_t *amd_register(CPUX86State *env, uint32_t msr)
{
    uint32_t i = msr - AMD_CORE0;

    if (i < 2 * nr_general(env)) {
        return i % 2 ? &env->msr_gp_counters[i / 2] : &env->msr_gp_evtsel[i / 2];
    }
    switch (msr) {
    case AMD_LEGACY_SEL0 ... AMD_LEGACY_SEL0 + 3:
        return &env->msr_gp_evtsel[msr - AMD_LEGACY_SEL0];
    case AMD_LEGACY_CTR0 ... AMD_LEGACY_CTR0 + 3:
        return &env->msr_gp_counters[msr - AMD_LEGACY_CTR0];
    case AMD_GLOBAL_CTL:
        return has_global(env) ? &env->msr_global_ctrl : NULL;
    }
    return NULL;
}

static uint64_t *intel_register(CPUX86State *env, uint32_t msr)
{
    switch (msr) {
    case MSR_P6_EVNTSEL0 ... MSR_P6_EVNTSEL0 + INTEL_GENERAL - 1:
        return &env->msr_gp_evtsel[msr - MSR_P6_EVNTSEL0];
    case MSR_P6_PERFCTR0 ... MSR_P6_PERFCTR0 + INTEL_GENERAL - 1:
        return &env->msr_gp_counters[msr - MSR_P6_PERFCTR0];
    case INTEL_PMC0 ... INTEL_PMC0 + INTEL_GENERAL - 1:
        return &env->msr_gp_counters[msr - INTEL_PMC0];
    case MSR_CORE_PERF_FIXED_CTR0 ... MSR_CORE_PERF_FIXED_CTR0 + INTEL_FIXED - 1:
        return &env->msr_fixed_counters[msr - MSR_CORE_PERF_FIXED_CTR0];
    case MSR_CORE_PERF_FIXED_CTR_CTRL:
        return &env->msr_fixed_ctr_ctrl;
    case MSR_CORE_PERF_GLOBAL_CTRL:
        return &env->msr_global_ctrl;
    }
    return NULL;
}

static bool is_counter(CPUX86State *env, uint64_t *reg)
{
    return (reg >= env->msr_gp_counters && reg < env->msr_gp_counters + MAX_GP_COUNTERS) ||
           (reg >= env->msr_fixed_counters && reg < env->msr_fixed_counters + MAX_FIXED_COUNTERS);
}

/* Intel's oldest addresses of the counters take 32 bits, and extend the sign */
static uint64_t counter_value(CPUX86State *env, uint32_t msr, uint64_t val)
{
    if (!is_amd(env) && msr - MSR_P6_PERFCTR0 < INTEL_GENERAL) {
        val = (int32_t)val;
    }
    return val & (COUNTER_MAX - 1);
}

/* The global status has one MSR to read it, one to clear bits, and AMD's has one to set bits */
static bool is_status(CPUX86State *env, uint32_t msr)
{
    return has_global(env) && msr == (is_amd(env) ? AMD_GLOBAL_STATUS : MSR_CORE_PERF_GLOBAL_STATUS);
}

static bool clears_status(CPUX86State *env, uint32_t msr)
{
    return has_global(env) && msr == (is_amd(env) ? AMD_GLOBAL_STATUS_CLR : MSR_CORE_PERF_GLOBAL_OVF_CTRL);
}

static bool sets_status(CPUX86State *env, uint32_t msr)
{
    return has_global(env) && is_amd(env) && msr == AMD_GLOBAL_STATUS_SET;
}

bool x86_pmu_rdmsr(CPUX86State *env, uint32_t msr, uint64_t *val)
{
    uint64_t *reg = is_amd(env) ? amd_register(env, msr) : intel_register(env, msr);

    if (!env->pmu.timer) {
        return false;
    }
    bring_up_to_date(env);
    if (reg) {
        *val = *reg;
    } else if (is_status(env, msr)) {
        *val = env->msr_global_status;
    } else if (clears_status(env, msr) || sets_status(env, msr)) {
        *val = 0;
    } else if (msr == MSR_IA32_PERF_CAPABILITIES && !is_amd(env)) {
        *val = PERF_CAP_FW_WRITE;
    } else {
        return false;
    }
    return true;
}

bool x86_pmu_wrmsr(CPUX86State *env, uint32_t msr, uint64_t val)
{
    uint64_t *reg = is_amd(env) ? amd_register(env, msr) : intel_register(env, msr);

    if (!env->pmu.timer) {
        return false;
    }
    bring_up_to_date(env);
    if (reg) {
        *reg = is_counter(env, reg) ? counter_value(env, msr, val) : val;
    } else if (clears_status(env, msr)) {
        env->msr_global_status &= ~val;
    } else if (sets_status(env, msr)) {
        env->msr_global_status |= val;
    } else {
        return is_status(env, msr);
    }
    settle(env);
    return true;
}

/* Finds the counter that RDPMC reads for ECX = @i; returns NULL when there is none */
static uint64_t *rdpmc_counter(CPUX86State *env, uint32_t i)
{
    if (i < nr_general(env)) {
        return &env->msr_gp_counters[i];
    }
    i -= 1 << 30;
    return i < nr_fixed(env) ? &env->msr_fixed_counters[i] : NULL;
}

void helper_rdpmc(CPUX86State *env)
{
    uint64_t *value = rdpmc_counter(env, env->regs[R_ECX]);

    if (!(env->cr[4] & CR4_PCE_MASK) && (env->hflags & HF_CPL_MASK)) {
        raise_exception_ra(env, EXCP0D_GPF, GETPC());
    }
    cpu_svm_check_intercept_param(env, SVM_EXIT_RDPMC, 0, GETPC());
    if (!env->pmu.timer || !value) {
        raise_exception_ra(env, EXCP0D_GPF, GETPC());
    }
    bring_up_to_date(env);
    env->regs[R_EAX] = (uint32_t)*value;
    env->regs[R_EDX] = (uint32_t)(*value >> 32);
}

/* Adds the PMU to what CPUID says. Bits that are set in leaf 0xa's EBX name events that are missing */
void x86_pmu_cpuid(CPUX86State *env, uint32_t leaf, uint32_t *eax, uint32_t *ebx, uint32_t *ecx, uint32_t *edx)
{
    if (is_amd(env)) {
        if (leaf == 0x80000001) {
            *ecx |= CPUID_EXT3_PERFCORE;
        } else if (leaf == 0x80000022) {
            *eax = has_global(env);
            *ebx = nr_general(env);
        }
    } else if (leaf == 1) {
        *ecx |= CPUID_EXT_PDCM;
    } else if (leaf == 0xa) {
        *eax = 2 | nr_general(env) << 8 | 48 << 16 | 7 << 24;
        *ebx = 0x78 | (icount_enabled() ? 0 : 2);
        *ecx = 0;
        *edx = nr_fixed(env) | 48 << 5;
    }
}
