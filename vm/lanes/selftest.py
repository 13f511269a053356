#!/usr/bin/env python3
"""Shows that the judge of `make test` finds what it is there for: vm/lanes/selftest.py KUNIT-DIR

A sound log must pass; each of the damaged ones must fail, and say why.
"""
import os
import subprocess
import sys
import tempfile

MANIFEST = '''
# a comment
one.adds
one.subtracts
skip: one.divides # nobody has time
two.waits
lane.boots
'''
ALLOWED = '''
# The machine has no such thing.
RETBleed: WARNING: nothing to see
'''

REASONS = '^it is Sunday\n'
NO_PMU = 'pmuk-vm: no PMU: no compiler\n'

LOG = '''[    0.000000] Booting Linux on physical CPU 0x0000000000
[    0.010000] RETBleed: WARNING: nothing to see
[    0.500000] KTAP version 1
[    0.500001] 1..1
[    0.500002]     KTAP version 1
[    0.500003]     # Subtest: one
[    0.500004]     # module: one_kunit
[    0.500005]     1..3
[    0.500006]     ok 1 adds
[    0.500007] a line of somebody else
[    0.500008]     ok 2 subtracts
[    0.500009]     ok 3 divides # SKIP nobody has time
[    0.500010] # one: pass:2 fail:0 skip:1 total:3
[    0.500011] ok 1 one
[    2.000000] KTAP version 1
[    2.000001] 1..1
[    2.000002]     KTAP version 1
[    2.000003]     # Subtest: two
[    2.000004]     1..1
[    2.000005]     ok 1 waits
[    2.000006] ok 2 two
[    3.000000] KTAP version 1
[    3.000001] 1..1
[    3.000002] ok 1 boots
[    4.000000] pmuk-vm: exit 0
'''


def swap(old, new):
    assert old in LOG, old
    return LOG.replace(old, new, 1)


def without(*words):
    return ''.join(line for line in LOG.splitlines(keepends=True)
                   if not any(word in line for word in words))


FAILURE = '''    # subtracts: EXPECTATION FAILED at one.c:7
[    0.500009]     # subtracts: Expected a == b
[    0.500009]     not ok 2 subtracts'''
SPLAT = '''[    2.000004] ------------[ cut here ]------------
[    2.000004] WARNING: kernel/events/core.c:1 at perf_event_read+0x1/0x2, CPU#0: kunit/1
[    2.000005]     ok 1 waits'''

RACE = '''[    2.000004] ==================================================================
[    2.000004] BUG: KCSAN: data-race in wake_up / try_to_wake_up
[    2.000004] 
[    2.000004] write to 0xff11 of 8 bytes by task 1 on cpu 0:
[    2.000004]  wake_up+0x1/0x2
[    2.000004] 
[    2.000004] read to 0xff11 of 8 bytes by interrupt on cpu 1:
[    2.000004]  {}
[    2.000004] 
[    2.000004] ==================================================================
[    2.000005]     ok 1 waits
[    2.000005] pmuk-vm: error: ==================================================================
[    2.000005] pmuk-vm: error: BUG: KCSAN: data-race in wake_up / try_to_wake_up
[    2.000005] pmuk-vm: error: read to 0xff11 of 8 bytes by interrupt on cpu 1:'''


def race(*stack):
    return swap('[    2.000005]     ok 1 waits', RACE.format('\n[    2.000004]  '.join(stack)))


# name: log, status of the machine, what the verdict says, arguments
CASES = {
    'sound': (LOG, 0, '7 passed, 0 failed, 1 skipped'),
    'sound, one suite': (LOG, 0, '4 passed, 0 failed, 0 skipped', '--suite', 'two'),
    'sound, one test': (LOG, 0, '4 passed, 0 failed, 0 skipped', '--suite', 'one.a*'),
    'a test fails': (swap('    ok 2 subtracts', FAILURE), 0, 'EXPECTATION FAILED at one.c:7'),
    'a test is missing': (without('ok 2 subtracts').replace('1..3', '1..2')
                          .replace('ok 3', 'ok 2'), 0, 'missing: one.subtracts'),
    'a suite is missing': (without('two', 'waits', '[    2.'), 0, 'missing: two.waits'),
    'a test is skipped': (swap('ok 2 subtracts', 'ok 2 subtracts # SKIP too late'), 0,
                          'one.subtracts: skipped, and must run here: too late'),
    'sound, a test is skipped for a reason of the lane':
        (swap('ok 2 subtracts', 'ok 2 subtracts # SKIP it is Sunday'), 0,
         '6 passed, 0 failed, 2 skipped'),
    'a test is not skipped': (swap(' # SKIP nobody has time', ''), 0, 'one.divides: has run'),
    'an unknown test fails': (swap('ok 1 boots', 'not ok 1 reboots'), 0, 'lane.reboots: failed'),
    'an unknown test is skipped': (swap('ok 1 boots', 'ok 1 x # SKIP y'), 0, 'lane.x: skipped'),
    'the plan is not kept': (without('ok 3 divides'), 0, 'missing'),
    'cut off in a suite': (LOG[:LOG.index('[    0.500008]')], 125, 'the machine died'),
    'cut off before the end': (without('pmuk-vm'), 124, 'did not come to an end'),
    'all is well, and the status is not': (LOG, 3, 'ended with status 3'),
    'a suite fails on its own': (swap('ok 2 two', 'not ok 2 two'), 0, 'two.suite'),
    'a warning': (swap('[    2.000005]     ok 1 waits', SPLAT), 0, 'WARNING: kernel/events'),
    'sound, though others race': (race('schedule+0x1/0x2'), 0, '7 passed, 0 failed, 1 skipped'),
    'sound, though ours has called it': (race('a+0x1/0x2', 'b+0x1/0x2', 'pmuk_c+0x1/0x2'), 0,
                                         'wake_up / try_to_wake_up'),
    'sound, though on its own account': (race('device_del+0x1/0x2', 'pmuk_c+0x1/0x2'), 0,
                                         '7 passed, 0 failed, 1 skipped'),
    'a race of ours': (race('pmuk_post.part.0+0x1/0x2'), 0, 'lane.race: data-race in wake_up'),
    'a race in what ours calls': (race('memcpy+0x1/0x2', 'pmuk_post+0x1/0x2'), 0, 'lane.race: '),
    'a race of a module of ours': (race('post+0x1/0x2 [pmuk_count]'), 0, 'lane.race: '),
    'a race of a test': (race('post+0x1/0x2'), 0, 'lane.race: '),
    'a warning in a race of others': (race('a+0x1/0x2', 'WARNING: at a.c'), 0, 'WARNING: at a.c'),
    'no log': ('', 1, 'missing: '),
    'sound, without a PMU': (NO_PMU + swap('ok 2 subtracts', 'ok 2 subtracts # SKIP no PMU counts'), 0,
                             '1 tests skipped for want of a PMU: no compiler'),
    'skipped for want of a PMU that is there': (swap('ok 2 subtracts', 'ok 2 subtracts # SKIP no PMU counts'),
                                                0, 'one.subtracts: skipped, and must run here'),
    'skipped without a PMU, for something else': (
        NO_PMU + swap('ok 2 subtracts', 'ok 2 subtracts # SKIP too late'), 0,
        'one.subtracts: skipped, and must run here: too late'),
    'sound, a lane that is nothing without a PMU': (NO_PMU, 0, '0 passed, 0 failed, 5 skipped'),
    'no test has run, and there is no PMU': (NO_PMU + '[    0.000000] Booting\n', 0, 'missing: '),
}

for _line in ('BUG: KASAN: slab-use-after-free in x', 'Oops: 0002 [#1] SMP', 'Call trace:', 'Call Trace:',
              'UBSAN: shift-out-of-bounds in a.c:1', 'INFO: rcu_preempt self-detected stall on CPU',
              'rcu: INFO: rcu_preempt detected stalls', 'INFO: task x:1 blocked for more than 9 seconds.',
              'watchdog: BUG: soft lockup - CPU#0 stuck for 22s!',
              'WARNING: possible circular locking dependency detected',
              'ODEBUG: free active (active state 0) object', 'unreferenced object 0xffff (size 8):',
              'Kernel panic - not syncing: panic_on_warn set', 'Internal error: Oops: 96000004',
              'refcount_t: underflow; use-after-free.', 'pmuk-vm: error: pmuk_sim: cannot'):
    CASES[_line] = (swap('a line of somebody else', _line), 0, _line)


def run(directory, kunit, log, status, *args):
    path = os.path.join(directory, 'log')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(log)
    judge = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'judge.py')
    return subprocess.run([sys.executable, judge, 'lane', path, '--kunit', kunit, '--lanes', directory,
                           '--status', str(status), '--ours', os.path.join(directory, 'lane.ours'),
                           *args], capture_output=True, text=True, check=False)


def main():
    failed = 0
    with tempfile.TemporaryDirectory() as directory:
        for kind, text in (('tests', MANIFEST), ('allow', ALLOWED), ('reasons', REASONS), ('ours', 'post\n')):
            with open(os.path.join(directory, 'lane.' + kind), 'w', encoding='utf-8') as file:
                file.write(text)
        for name, (log, status, says, *args) in CASES.items():
            got = run(directory, sys.argv[1], log, status, *args)
            good = got.returncode == (0 if name.startswith('sound') else 1) and says in got.stdout
            if not good:
                failed += 1
                print(f'{name}: status {got.returncode}, and not a word of "{says}":')
                print(got.stdout + got.stderr)
    print(f'{len(CASES)} logs, {failed} misjudged')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
