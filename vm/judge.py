#!/usr/bin/env python3
"""Judges one lane of `make test` from what it printed.

    vm/judge.py LANE LOG --kunit DIR [--status N] [--suite GLOB] [--result FILE] [--ours FILE]
    vm/judge.py LANE LOG --kunit DIR --write-manifest
    vm/judge.py LANE --selects GLOB

KTAP is parsed by the kernel's own kunit_parser, from DIR = tools/testing/kunit of its tree. vm/lanes/
has tests: the manifest of the tests that must run and that must be skipped in each lane (vm/manifest.py);
LANE.allow: regular expressions of lines that look bad and are not, with the reason as a comment;
LANE.reasons: regular expressions of reasons for which any test may be skipped there.
--ours FILE names functions of ours; those called pmuk_... need no such list.
The lane fails when a test fails, is missing, or is not in the manifest; when it is skipped, or not, against
the manifest, or for another reason; when the log has a line that a sound kernel does not print; when the KTAP
is broken; when the machine did not end well. A lane with LANE.reasons may pass tests that it does not list.
When the log says that the machine has no PMU, tests that want one may be skipped, and others run.
"""
import argparse
import collections
import fnmatch
import os
import re
import sys

import manifest

ERROR = 'pmuk-vm: error: '     # how vm/lanes/guest.sh marks what the kernel logged as an error

NO_PMU = 'pmuk-vm: no PMU: '    # how vm/boot and lanes say so, and why
OF_PMU = re.compile(r'\bPMU\b')  # in a test's reason to be skipped: it depends on the PMU

# Messages that a sound kernel does not print.
BAD = re.compile('|'.join((
    r'WARNING: ', r'\bBUG: ', r'kernel BUG at', r'\bOops\b', r'Call [Tt]race:', r'Kernel panic',
    r'K[AC]SAN: ', r'UBSAN: ', r'KFENCE: ', r'KMSAN: ', r'ODEBUG: ', r'refcount_t: ',
    r'INFO: (rcu|task|trying|possible|lockdep)', r'rcu: INFO: ', r'detected stall',
    r'blocked for more than \d+ seconds', r'soft lockup', r'hard LOCKUP',
    r'possible (circular|recursive|irq)', r'inconsistent lock state', r'suspicious RCU usage',
    r'sleeping function called', r'scheduling while atomic', r'Invalid wait context',
    r'unreferenced object', r'new suspected memory leaks', r'bad page', r'list_\w+ corruption',
    r'general protection fault', r'Unable to handle kernel', r'Internal error: ', r'segfault at ',
    r'unhandled exception', r'nobody cared', r'Out of memory', ERROR,
)))

# KCSAN's report of a data race: its name, the two accesses, and the functions on their stacks.
RACE = re.compile(r'BUG: KCSAN: (.*)')
ACCESS = re.compile(r'.* to 0x\w+ of \d+ bytes by ')
FRAME = re.compile(r' +(?:\+-> reordered to: )?(\S+)\+0x\w+/0x\w+(?: \[(\w+)\])?')
RULE = '=' * 66
# Functions that access only memory that they are handed: the caller races.
HANDED = re.compile(r'(__)?(mem|str|list_|rb_|bitmap_|_find_|sort|bsearch|k[vz]?m?alloc|kv?free|_?copy_)')

BETWEEN = re.compile(r'\W+')        # the words of a parameter's name; becomes "_"
STAMP = re.compile(r'^\[ *\d+\.\d+\](\[ *[CT]\d+\])? ')
COMMENT = re.compile(r' *# ')      # a comment of KTAP; no kernel message begins so
HEADER = re.compile(r'^K?TAP version \d+$')
INNER = re.compile(r' +KTAP version 1$')    # "# Subtest: NAME" comes next, and tells as much
SHOWN = 10


class Lane:
    """What vm/lanes/ says of a lane, as far as it is asked for."""

    def __init__(self, directory, name, suite, ours):
        self.name = name
        self.ours = ours
        self.suite = suite
        self.allowed = [re.compile(line) for line in self.lines(directory, 'allow')]
        self.reasons = [re.compile(line) for line in self.lines(directory, 'reasons')]
        self.manifest = manifest.Manifest(os.path.join(directory, 'tests'))
        self.tests = {test: why for test, why in self.manifest.tests(name).items() if self.selected(test)}

    def lines(self, directory, kind):
        path = os.path.join(directory, f'{self.name}.{kind}')
        if not os.path.exists(path):
            return []
        with open(path, encoding='utf-8') as file:
            return [line.rstrip('\n') for line in file if line.strip() and line[0] != '#']

    def selected(self, test):
        """As kunit.filter_glob: SUITE or SUITE.TEST, either with wildcards."""
        if not self.suite:
            return True
        suite, _, case = test.partition('.')
        glob, _, case_glob = self.suite.partition('.')
        return fnmatch.fnmatchcase(suite, glob) and any(
            fnmatch.fnmatchcase(name, case_glob or '*') for name in (case, case.rpartition('.')[0]))

    def may_skip(self, got, said):
        return got == 'skipped' and any(rule.search(said[0]) for rule in self.reasons)

    def has_made(self, report):
        """Whether an access of a data race is by a function of ours, or by memcpy() and the like for
        one. What others do on their own account when we call them is not: perf core's counts, or
        the flags of the current task."""
        nearest = False
        for line in report:
            frame = FRAME.match(line)
            if ACCESS.match(line):
                nearest = True
            elif frame and nearest:
                if frame[1].startswith('pmuk_') or frame[1] in self.ours or \
                        frame[2] and frame[2].startswith(('pmuk_', 'pmu_kapi')):
                    return True
                nearest = HANDED.match(frame[1])
        return False


class Results:
    """The tests of a log: name -> (passed|failed|skipped, what it said), and what is wrong with it."""

    def __init__(self, lane, kunit, lines):
        sys.path.insert(0, kunit)
        import kunit_parser         # pylint: disable=import-outside-toplevel
        self.parser = kunit_parser
        self.lane = lane
        self.tests = {}
        self.errors = []
        for document in self.documents(lines):
            self.take(kunit_parser.parse_run_tests(document, self))

    # kunit_parser calls these functions to print. Only its errors matter.
    def print_with_timestamp(self, message):
        if message.startswith('[ERROR]') and not self.harmless(message):
            self.errors.append(message)

    def red(self, message):
        return message

    yellow = green = red

    def color_len(self):
        return 0

    @staticmethod
    def harmless(message):
        # KUnit goes on counting suites from one module to the next, and may have none at boot.
        return 'Test: main: Expected test number' in message or \
            re.search(r'Test: [\w-]+: Expected test number 1 but found', message) or \
            'Test: main: 0 tests run!' in message

    @staticmethod
    def documents(lines):
        """Each module that is loaded prints a KTAP document of its own. Lines INNER are left out: if the kernel
        prints a message between one and its "# Subtest: NAME", kunit_parser takes them for two tests."""
        document = None
        for line in lines:
            if HEADER.match(line):
                if document:
                    yield document
                document = []
            if document is not None and not INNER.match(line):
                document.append(line)
        if document:
            yield document

    def take(self, main):
        for test in main.subtests:
            if test.subtests:
                for case in test.subtests:
                    self.add(f'{test.name}.{case.name}', case)
            if not test.subtests:
                self.add(f'{self.lane.name}.{test.name}', test)
            elif test.status == self.parser.TestStatus.FAILURE and \
                    all(case.ok_status() for case in test.subtests):
                self.add(f'{test.name}.suite', test)

    def add(self, name, test):
        status = self.parser.TestStatus
        result = {status.SUCCESS: 'passed', status.SKIPPED: 'skipped'}.get(test.status, 'failed')
        # subtests are a test's parameters: those that failed speak first
        parts = sorted(test.subtests + [test], key=lambda part: part.ok_status())
        said = [line.strip() for part in parts for line in part.log if line.strip()]
        if result == 'skipped':
            said = [part.skip_reason for part in parts if part.skip_reason] or ['no reason given']
        if self.tests.get(name, ('passed',))[0] != 'failed':
            self.tests[name] = (result, said)
        # a case passes if some of its parameters ran: each that was skipped is a test of its own
        for part in test.subtests if result != 'skipped' else ():
            if part.status == status.SKIPPED:
                self.add(f'{name}.{BETWEEN.sub("_", part.name)}', part)


def reports(lines):
    """The data races that KCSAN reports: what it calls each, and its lines."""
    race = start = None
    for number, line in enumerate(lines + [RULE]):
        if RACE.match(line):
            race, start = RACE.match(line)[1], number
        elif race and line == RULE:
            yield race, lines[start:number]
            race = None


class Verdict:
    def __init__(self, lane):
        self.lane = lane
        self.counts = {'passed': 0, 'failed': 0, 'skipped': 0}
        self.missing = []
        self.no_pmu = None      # why the machine has none
        self.without = 0        # tests that are skipped for that

    def say(self, *words):
        print(f'{self.lane.name}:', *words)

    def fail(self, what, details=()):
        self.counts['failed'] += 1
        self.say('FAILED', what)
        for line in details[:2 * SHOWN]:
            print('        ' + line)
        if len(details) > 2 * SHOWN:
            print(f'        … {len(details) - 2 * SHOWN} more lines')

    @staticmethod
    def some(names):
        more = f' and {len(names) - SHOWN} more' if names[SHOWN:] else ''
        return ', '.join(names[:SHOWN]) + more

    def tests(self, results):
        for name, why in self.lane.tests.items():
            if name in results.tests:
                self.listed(name, why, *results.tests[name])
            elif results.tests.get(name.rpartition('.')[0], [''])[0] == 'skipped':
                self.counts['skipped'] += 1     # a parameter, with the whole case
            else:
                self.missing.append(name)
        self.unlisted({name: result for name, result in results.tests.items()
                       if name not in self.lane.tests and self.lane.selected(name)})
        if self.lane.reasons:
            self.reasons(results)
        if self.missing:
            self.counts['failed'] += len(self.missing) - 1
            self.fail(f'missing: {self.some(self.missing)}')

    def listed(self, name, why, got, said):
        """Judges a test of the manifest, which says why it is skipped, '' if it must run."""
        reason = said[0] if got == 'skipped' else ''
        if got == 'failed':
            self.fail(name, said)
        elif reason == why or self.lane.may_skip(got, said):
            self.counts[got] += 1
        elif self.no_pmu and OF_PMU.search(f'{why} {reason}'):
            self.counts[got] += 1
            self.without += got == 'skipped'
        elif not reason:
            self.fail(f'{name}: has run, and {manifest.PATH} says skip')
        elif why:
            self.fail(f'{name}: skipped for another reason: {reason}; {manifest.PATH} says: {why}')
        else:
            self.fail(f'{name}: skipped, and must run here: {reason}')

    def unlisted(self, results):
        """Judges tests that are not in the manifest."""
        new = [name for name, (got, _) in results.items() if got == 'passed']
        for name, (got, said) in results.items():
            if self.lane.may_skip(got, said):
                self.counts['skipped'] += 1
            elif self.no_pmu and got == 'skipped' and OF_PMU.search(said[0]) and \
                    name.rpartition('.')[0] in self.lane.tests:     # a parameter
                self.counts['skipped'] += 1
                self.without += 1
            elif got != 'passed':
                self.fail(f'{name}: {got}, and {manifest.PATH} has no row for it', said)
        if new and self.lane.reasons:
            self.counts['passed'] += len(new)
            self.say(f'note: not in {manifest.PATH}: {self.some(new)}')
        elif new:
            self.counts['failed'] += len(new) - 1
            self.fail(f'ran, and {manifest.PATH} has no row for it: {self.some(new)}')

    def reasons(self, results):
        """What a machine lacks that no lane was made for."""
        said = collections.Counter(said[0] for name, (got, said) in results.tests.items()
                                   if got == 'skipped' and self.lane.selected(name))
        for reason, times in said.most_common():
            self.say(f'note: {times} skipped: {reason}')

    def races(self, lines):
        """Fails the data races of ours, and counts the kernel's own. What is left are the lines
        without these reports, and without what guests repeat of them."""
        ours, others, said = {}, collections.Counter(), {RULE}
        for race, report in reports(lines):
            said.update(report)
            if self.lane.has_made(report):
                ours.setdefault(race, report)
            else:
                others[race] += 1
        for race, report in ours.items():
            self.fail(f'{self.lane.name}.race: {race}', report[1:])
        if others:
            self.say(f'note: {others.total()} data races that are the kernel\'s own: '
                     f'{self.some([race for race, _ in others.most_common()])}')
        return ['' if RACE.match(line) or line.startswith(ERROR) and line.removeprefix(ERROR) in said
                else line for line in lines]

    def console(self, lines):
        bad = {}        # message -> line; guests repeat errors at their end
        for number, line in enumerate(self.races(lines), 1):
            if BAD.search(line) and not COMMENT.match(line) and \
                    not any(rule.search(line) for rule in self.lane.allowed):
                bad.setdefault(line.removeprefix(ERROR), f'line {number}: {line}')
        self.check('console', not bad, 'has lines that a sound kernel does not print',
                   list(bad.values()))

    def check(self, name, good, what, details=()):
        if good:
            self.counts['passed'] += 1
        else:
            self.fail(f'{self.lane.name}.{name}: {what}', details)

    def __str__(self):
        return ', '.join(f'{count} {what}' for what, count in self.counts.items())


ENDS = {124: 'did not come to an end in time', 125: 'the machine died'}


def judge(lane, results, lines, status):
    verdict = Verdict(lane)
    verdict.no_pmu = next((line.removeprefix(NO_PMU) for line in lines if line.startswith(NO_PMU)), None)
    if verdict.no_pmu and len(lines) == 1 and status == 0:
        verdict.counts['skipped'] = verdict.without = len(lane.tests)
        return verdict
    verdict.check('end', status == 0, ENDS.get(status, f'ended with status {status}'), lines[-SHOWN:])
    if lines:
        verdict.console(lines)
        verdict.check('ktap', results.tests and not results.errors, 'results are broken or missing',
                      results.errors)
    verdict.tests(results)
    return verdict


def write_manifest(lane, results):
    """Makes the results of a log what the manifest says of the lane, for somebody to look at before it
    is committed."""
    lane.manifest.replace(lane.name, {name: said[0] if got == 'skipped' else ''
                                      for name, (got, said) in results.tests.items()})
    lane.manifest.write()


def read_log(path):
    if not os.path.exists(path):
        return []
    with open(path, encoding='utf-8', errors='replace') as file:
        return [STAMP.sub('', line.rstrip('\r\n')) for line in file]


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    args = argparse.ArgumentParser()
    args.add_argument('lane')
    args.add_argument('log', nargs='?')
    args.add_argument('--kunit')
    args.add_argument('--lanes', default=os.path.join(here, 'lanes'))
    args.add_argument('--status', type=int, default=0)
    args.add_argument('--suite', default='')
    args.add_argument('--selects')
    args.add_argument('--result')
    args.add_argument('--ours', default='')
    args.add_argument('--write-manifest', action='store_true')
    args = args.parse_args()

    lane = Lane(args.lanes, args.lane, args.selects or args.suite, set(read_log(args.ours)))
    if args.selects:
        return 0 if lane.tests else 1
    lines = read_log(args.log)
    results = Results(lane, args.kunit, lines)
    if args.write_manifest and any(line.startswith(NO_PMU) for line in lines):
        print(f'{args.lane}: no manifest without a PMU')
        return 1
    if args.write_manifest:
        write_manifest(lane, results)
        return 0
    verdict = judge(lane, results, lines, args.status)
    if args.result:
        with open(args.result, 'w', encoding='utf-8') as file:
            print(*verdict.counts.values(), file=file)
    if verdict.without:
        verdict.say(f'{verdict.without} tests skipped for want of a PMU: {verdict.no_pmu}')
    verdict.say(verdict)
    return 1 if verdict.counts['failed'] else 0


if __name__ == '__main__':
    sys.exit(main())
