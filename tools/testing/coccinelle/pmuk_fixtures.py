#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Checks that a rule of scripts/coccinelle/api/pmuk_*.cocci reports what it should, and no more.

    pmuk_fixtures.py RULE...        RULE: leak, use_after_destroy, ...

In pmuk_RULE_bad.c, the rule must report each line with a comment "report: TEXT", by a message that
has TEXT, and no other line. In pmuk_RULE_good.c, it must report no line.
"""
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
RULES = os.path.join(HERE, '..', '..', '..', 'scripts', 'coccinelle', 'api')
CASES = 4   # the least number of functions in a fixture, and of reports in a bad one
SEEN = '''
@f@
attribute name __free;
iterator name scoped_guard, pmuk_for_each_record;
identifier fn;
position p;
@@

fn(...) {@p ... }

@script:python@
p << f.p;
@@

coccilib.report.print_report(p[0], "seen")
'''


def spatch(path, file, *options):
    """Returns the reports of a rule: {line: [text]}."""
    done = subprocess.run(['spatch', '--no-show-diff', '--very-quiet', *options, '--cocci-file', path, file],
                          capture_output=True, text=True, check=False)
    if done.returncode or done.stderr.strip():
        sys.exit(f'spatch, {path}: status {done.returncode}\n{done.stderr}')
    said = {}
    for line in done.stdout.splitlines():
        found = re.match(r'.*?:(\d+):\d+-\d+: (.*)', line)
        if not found:
            sys.exit(f'spatch, {path}: {line}')
        said.setdefault(int(found[1]), []).append(found[2])
    return said


def apply(rule, file):
    """Returns the reports of the rule of that name."""
    path = os.path.join(RULES, f'pmuk_{rule}.cocci')
    with open(path, encoding='utf-8') as source:
        options = re.search(r'^// Options: (.*)', source.read(), re.M)[1].split()
    return spatch(path, file, '-D', 'report', *options)


def functions(file):
    """Returns the lines at which functions begin that spatch can parse. It ignores others."""
    with tempfile.NamedTemporaryFile('w', suffix='.cocci', encoding='utf-8') as rule:
        rule.write(SEEN)
        rule.flush()
        return spatch(rule.name, file, '--no-includes').keys()


def compare(rule, kind):
    """Yields a line for each fault of a fixture."""
    file = os.path.join(HERE, f'pmuk_{rule}_{kind}.c')
    name = os.path.basename(file)
    with open(file, encoding='utf-8') as source:
        lines = source.read().splitlines()
    wanted = {number: found[1] for number, line in enumerate(lines, 1)
              if (found := re.search(r'/\* report: (.*) \*/', line))}
    said = apply(rule, file)
    begun = {number for number, line in enumerate(lines, 1) if line == '{'}
    for number in begun - functions(file):
        yield f'{name}:{number}: spatch cannot parse this function'
    if len(begun) < CASES or bool(wanted) != (kind == 'bad') or kind == 'bad' and len(wanted) < CASES:
        yield f'{name}: {len(begun)} functions, {len(wanted)} to be reported: too few'
    for number in sorted(wanted.keys() | said.keys()):
        got = said.get(number, [])
        if number not in wanted:
            yield f'{name}:{number}: is correct, but reported: {got}'
        elif len(got) != 1 or wanted[number] not in got[0]:
            yield f'{name}:{number}: the report should be "{wanted[number]}", and is {got}'


def main():
    wrong = [line for rule in sys.argv[1:] for kind in ('bad', 'good') for line in compare(rule, kind)]
    for line in wrong:
        print(line)
    return 1 if wrong or not sys.argv[1:] else 0


if __name__ == '__main__':
    sys.exit(main())
