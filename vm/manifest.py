#!/usr/bin/env python3
"""The manifest of all tests, vm/lanes/tests: where each runs, and where and why it is skipped.

    vm/manifest.py          rewrites the manifest in its order, after an edit by hand
    vm/manifest.py LANE     lists the tests of a lane

The top of the manifest shows its format. `vm/test --write-manifest LANE` replaces what it says of a lane.
"""
import collections
import glob
import os
import re
import sys
import textwrap

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PATH = 'vm/lanes/tests'
WIDTH = 110

HEADING = re.compile(r'(\S[^:]*):([\w -]*)')
SKIP = re.compile(r' +skip ([\w -]+): (.+)')
FROM = re.compile(r' +from (\S+): (.+)')


class Manifest:
    def __init__(self, path=os.path.join(TOP, PATH)):
        self.path = path
        self.comments = []
        self.sources = []       # suite, lanes, and where its tests are listed: a pattern of files, one of lines
        self.rows = {}          # test -> lane -> why the test is skipped there, '' if it runs
        with open(path, encoding='utf-8') as file:
            self.parse(file.read().splitlines())

    def parse(self, lines):
        suites, lanes = [], {}
        for number, line in enumerate(lines, 1):
            if line.startswith('#'):
                self.comments.append(line)
            elif found := HEADING.fullmatch(line):
                suites, lanes = found[1].split(), dict.fromkeys(found[2].split(), '')
            elif found := SKIP.fullmatch(line):
                lanes.update(dict.fromkeys(found[1].split(), found[2]))
            elif found := FROM.fullmatch(line):
                self.sources += [(suite, lanes, *found.groups()) for suite in suites]
            elif line.strip():
                self.add(f'{self.path}:{number}', suites, line.split(), lanes)

    def add(self, place, suites, cases, lanes):
        for test in [f'{suite}.{case}' for suite in suites for case in cases]:
            if test in self.rows or not lanes:
                raise ValueError(f'{place}: {test} ' + ('has a row above' if lanes else 'is in no lane'))
            self.rows[test] = lanes

    def listed(self, lane):
        """The tests that other files list: they run where the manifest says so."""
        for suite, lanes, files, line in self.sources:
            for path in glob.glob(os.path.join(TOP, files)) if lane in lanes else ():
                with open(path, encoding='utf-8') as file:
                    yield from (f'{suite}.{case}' for case in re.findall(line, file.read(), re.M))

    def tests(self, lane):
        """Each test of a lane, and why it is skipped there, '' if it runs."""
        rows = {test: lanes[lane] for test, lanes in self.rows.items() if lane in lanes}
        return {**dict.fromkeys(self.listed(lane), ''), **rows}

    def replace(self, lane, tests):
        """Replaces what the manifest says of a lane."""
        listed = set(self.listed(lane))
        for test in self.rows.keys() | tests.keys():
            lanes = {name: why for name, why in self.rows.pop(test, {}).items() if name != lane}
            if test in tests and (tests[test] or test not in listed):
                lanes[lane] = tests[test]
            if lanes:
                self.rows[test] = lanes

    def write(self):
        with open(self.path, 'w', encoding='utf-8') as file:
            file.write(str(self))

    def __str__(self):
        blocks = [heading([suite], lanes) + f'    from {files}: {line}\n'
                  for suite, lanes, files, line in sorted(self.sources, key=lambda source: source[0])]
        for groups, suites in self.alike().items():
            blocks += [heading(suites, dict(lanes)) + names(cases) for lanes, cases in groups]
        return '\n'.join(self.comments) + '\n\n' + '\n'.join(blocks)

    def alike(self):
        """Suites by what the manifest says of them: lanes and the tests there, usual ones first."""
        groups = collections.defaultdict(lambda: collections.defaultdict(list))
        for test, lanes in sorted(self.rows.items()):
            suite, _, case = test.partition('.')
            groups[suite][tuple(sorted(lanes.items()))].append(case)
        alike = collections.defaultdict(list)
        for suite, group in sorted(groups.items()):
            usual = sorted(group.items(), key=lambda item: (
                sum(bool(why) for _, why in item[0]), -len(item[0]), item))
            alike[tuple((lanes, tuple(cases)) for lanes, cases in usual)].append(suite)
        return alike


def heading(suites, lanes):
    skips = collections.defaultdict(list)
    for lane, why in sorted(lanes.items()):
        skips[why].append(lane)
    runs = skips.pop('', [])
    return ' '.join([*suites[:-1], suites[-1] + ':', *runs]) + '\n' + \
        ''.join(f'    skip {" ".join(skipped)}: {why}\n' for why, skipped in sorted(skips.items()))


def names(cases):
    """Tests as lines, another one for each initial: a new test then changes few lines."""
    initials = collections.defaultdict(list)
    for case in cases:
        initials[case[0]].append(case)
    return ''.join(textwrap.fill(' '.join(line), WIDTH, initial_indent=8 * ' ', subsequent_indent=8 * ' ',
                                 break_long_words=False, break_on_hyphens=False) + '\n'
                   for line in initials.values())


if __name__ == '__main__':
    if sys.argv[1:]:
        print(*Manifest().tests(sys.argv[1]), sep='\n')
    else:
        Manifest().write()
