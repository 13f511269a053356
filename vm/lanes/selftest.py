#!/usr/bin/env python3
"""Shows that the judge of `make test` finds what it is there for: vm/lanes/selftest.py KUNIT-DIR

A sound log must pass; each of the damaged ones must fail, and say why.
"""
import os
import subprocess
import sys
import tempfile

VM = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, VM)
import manifest     # pylint: disable=import-error,wrong-import-position

MANIFEST = '''# a comment

host: host
        boots

lane: lane
        boots

one: host lane
        adds
        subtracts

one:
    skip host lane: nobody has time
        divides

two: host lane
        waits
'''
# the manifest after lane host has run with other results
REWRITTEN = '''# a comment

host: host
        boots
        sails

lane: lane
        boots

one: host lane
        adds

one: lane
        subtracts

one: host
    skip lane: nobody has time
        divides

two: lane
    skip host: too late
        waits
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


def amid(header, log):
    assert header in log, header
    return log.replace(header, f'a line of somebody else\n[    2.000005] {header}')


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


SAILS = swap('1..1\n[    3.000002] ok 1 boots', '1..2\n[    3.000002] ok 1 boots\n[    3.000003] ok 2 sails')

PARAMETERS = swap('    ok 1 waits', '''        KTAP version 1
[    2.000005]         # Subtest: waits
[    2.000005]         ok 1 long
[    2.000005]         ok 2 very, very long
[    2.000005]     # waits: pass:2 fail:0 skip:0 total:2
[    2.000005]     ok 1 waits''')
SKIPS = PARAMETERS.replace('very long', 'very long # SKIP too late')

# name: log, status of the machine, words of the verdict, arguments
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
    'a test is skipped for a reason of another lane':
        (swap('ok 2 subtracts', 'ok 2 subtracts # SKIP it is Sunday'), 0,
         'one.subtracts: skipped, and must run here: it is Sunday'),
    'a test is skipped for another reason': (
        swap('nobody has time', 'nobody has time left'), 0,
        'one.divides: skipped for another reason: nobody has time left; vm/lanes/tests says: nobody has time\n'),
    'a test is not skipped': (swap(' # SKIP nobody has time', ''), 0, 'one.divides: has run'),
    'an unknown test fails': (swap('ok 1 boots', 'not ok 1 reboots'), 0, 'lane.reboots: failed'),
    'an unknown test passes': (SAILS, 0, '\n'.join((
        'lane: FAILED ran, and vm/lanes/tests has no row for it: lane.sails', 'lane: 7 passed, 1 failed, 1 skipped'))),
    'sound, an unknown test that is not selected': (SAILS, 0, '4 passed, 0 failed, 0 skipped', '--suite', 'two'),
    'an unknown test is skipped': (swap('ok 1 boots', 'ok 1 x # SKIP y'), 0, 'lane.x: skipped'),
    'sound, a message is amid a header': (amid('    # Subtest: two', LOG), 0, '7 passed, 0 failed, 1 skipped'),
    'sound, a message is amid a header of parameters': (
        amid('        # Subtest: waits', PARAMETERS), 0, '7 passed, 0 failed, 1 skipped'),
    'sound, parameters run': (PARAMETERS, 0, '7 passed, 0 failed, 1 skipped'),
    'a parameter is skipped': (SKIPS, 0, 'two.waits.very_very_long: skipped, and vm/lanes/tests has no row for it'),
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
    'sound, skipped for want of a PMU, too': (NO_PMU + swap('nobody has time', 'no PMU counts'), 0,
                                             '1 tests skipped for want of a PMU: no compiler'),
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


# cases of lane host, which has REASONS
HOST_CASES = {
    'sound': (LOG, 0, '7 passed, 0 failed, 1 skipped'),
    'sound, a test is skipped for a reason of the lane': (
        swap('ok 2 subtracts', 'ok 2 subtracts # SKIP it is Sunday'), 0, '6 passed, 0 failed, 2 skipped'),
    'sound, a test is skipped for a reason of the lane instead': (
        swap('nobody has time', 'it is Sunday'), 0, '7 passed, 0 failed, 1 skipped'),
    'sound, an unknown test is skipped for a reason of the lane': (
        SAILS.replace('sails', 'sails # SKIP it is Sunday'), 0, '7 passed, 0 failed, 2 skipped'),
    'sound, an unknown test passes': (SAILS, 0, 'note: not in vm/lanes/tests: host.sails'),
    'an unknown test fails': (SAILS.replace('ok 2 sails', 'not ok 2 sails'), 0, 'host.sails: failed'),
    'a test is skipped': (swap('ok 2 subtracts', 'ok 2 subtracts # SKIP too late'), 0,
                          'one.subtracts: skipped, and must run here: too late'),
}


def write(directory, name, text):
    path = os.path.join(directory, name)
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)
    return path


def run(directory, kunit, lane, log, status, *args):
    return subprocess.run([sys.executable, os.path.join(VM, 'judge.py'), lane, write(directory, 'log', log),
                           '--kunit', kunit, '--lanes', directory, '--status', str(status),
                           '--ours', os.path.join(directory, 'lane.ours'), *args],
                          capture_output=True, text=True, check=False)


def misjudged(directory, kunit):
    """Logs of which the judge says something else."""
    for lane, cases in (('lane', CASES), ('host', HOST_CASES)):
        for name, (log, status, says, *args) in cases.items():
            got = run(directory, kunit, lane, log, status, *args)
            if got.returncode != (0 if name.startswith('sound') else 1) or says not in got.stdout:
                yield f'{lane}: {name}: status {got.returncode}, and not a word of "{says}":\n' \
                      f'{got.stdout}{got.stderr}'


def rewritten(directory, kunit):
    """A lane that has run replaces its own results in the manifest, and no others."""
    path = os.path.join(directory, 'tests')
    other = SAILS
    for old, new in (('1..3', '1..2'), ('[    0.500008]     ok 2 subtracts\n', ''),
                     ('ok 3 divides # SKIP nobody has time', 'ok 2 divides'),
                     ('ok 1 waits', 'ok 1 waits # SKIP too late')):
        assert old in other, old
        other = other.replace(old, new)
    for lane, log, expected in (('lane', LOG, MANIFEST), ('host', other, REWRITTEN), ('lane', LOG, REWRITTEN),
                                ('host', LOG, MANIFEST)):
        got = run(directory, kunit, lane, log, 0, '--write-manifest')
        with open(path, encoding='utf-8') as file:
            text = file.read()
        if got.returncode or text != expected:
            yield f'{lane} makes this of the manifest:\n{text}{got.stdout}{got.stderr}'
    if run(directory, kunit, 'lane', NO_PMU + other, 0, '--write-manifest').returncode != 1:
        yield 'a machine without a PMU has made a manifest'


def listed(directory, kunit):
    """A test that another file lists for a lane is missing there when it has not run, and has no row."""
    path = write(directory, 'list', 'test waits\nno test\n')
    text = MANIFEST.replace('two: host lane\n        waits', f'two: lane\n    from {path}: ^test (\\w+)')
    write(directory, 'tests', text)
    said = [run(directory, kunit, 'lane', LOG, 0, *args).stdout for args in ([], ['--write-manifest'])]
    with open(os.path.join(directory, 'tests'), encoding='utf-8') as file:
        if sorted(file) != sorted(text.splitlines(keepends=True)):
            yield 'what another file lists has got a row'
    write(directory, 'list', 'test waits\ntest comes\n')
    said += [run(directory, kunit, lane, LOG, 0).stdout for lane in ('lane', 'host')]
    for what, text in (('7 passed, 0 failed', said[0]), ('FAILED missing: two.comes', said[2]), ('0 failed', said[3])):
        if what not in text:
            yield f'with a list, not a word of "{what}": {text}'


def parameters(directory, kunit):
    """One that is skipped has a row, and is missing when it runs."""
    write(directory, 'tests', MANIFEST + '\ntwo: host\n    skip lane: too late\n        waits.very_very_long\n')
    for log, text in ((SKIPS, '7 passed, 0 failed, 2 skipped'),
                      (PARAMETERS, 'FAILED missing: two.waits.very_very_long')):
        said = run(directory, kunit, 'lane', log, 0).stdout
        if text not in said:
            yield f'with a row for a parameter, not a word of "{text}": {said}'


def refused(directory, kunit):
    """What no manifest may say."""
    for what, more in (('a test has two rows', '\none: other\n        adds\n'),
                       ('a test is in no lane', '\nthree:\n        adds\n')):
        write(directory, 'tests', MANIFEST + more)
        if 'ValueError: ' not in run(directory, kunit, 'lane', LOG, 0).stderr:
            yield what


def untidy():
    """What vm/manifest.py would change in vm/lanes/tests, and lanes that are not there."""
    real = manifest.Manifest()
    with open(real.path, encoding='utf-8') as file:
        if file.read() != str(real):
            yield f'{manifest.PATH} is not in its order: run vm/manifest.py'
    lanes = {lane for row in real.rows.values() for lane in row}
    lanes.update(lane for source in real.sources for lane in source[1])
    for lane in sorted(lanes):
        if not os.path.exists(os.path.join(VM, 'lanes', lane)):
            yield f'{manifest.PATH}: there is no lane {lane}'
    yield from (f'{manifest.PATH}: no test from {source[2]}' for source in real.sources
                if not any(test.startswith(source[0] + '.') for lane in source[1] for test in real.listed(lane)))


def main():
    kunit = sys.argv[1]
    with tempfile.TemporaryDirectory() as directory:
        for name, text in (('tests', MANIFEST), ('lane.allow', ALLOWED), ('host.allow', ALLOWED),
                           ('host.reasons', REASONS), ('lane.ours', 'post\n')):
            write(directory, name, text)
        wrong = [*misjudged(directory, kunit), *rewritten(directory, kunit), *listed(directory, kunit),
                 *parameters(directory, kunit), *refused(directory, kunit), *untidy()]
    print(*wrong, sep='\n')
    print(f'{len(CASES) + len(HOST_CASES)} logs, {len(wrong)} faults')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
