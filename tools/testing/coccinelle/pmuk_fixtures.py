#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Shows that a rule of scripts/coccinelle/api/pmuk_*.cocci finds what it is there for, and nothing else.

    pmuk_fixtures.py RULE...        RULE: leak, use_after_destroy, ...

Of pmuk_RULE_bad.c, lines with a "report: TEXT" comment must be reported, with TEXT in what is said,
and no others; of pmuk_RULE_good.c none.
"""
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
RULES = os.path.join(HERE, '..', '..', '..', 'scripts', 'coccinelle', 'api')
CASES = 4   # of each kind at least
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
    """What a rule reports: {line: [text]}."""
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
    """The same, of the rule of that name."""
    path = os.path.join(RULES, f'pmuk_{rule}.cocci')
    with open(path, encoding='utf-8') as source:
        options = re.search(r'^// Options: (.*)', source.read(), re.M)[1].split()
    return spatch(path, file, '-D', 'report', *options)


def functions(file):
    """The lines at which a function begins that spatch can parse: in others it finds nothing."""
    with tempfile.NamedTemporaryFile('w', suffix='.cocci', encoding='utf-8') as rule:
        rule.write(SEEN)
        rule.flush()
        return spatch(rule.name, file, '--no-includes').keys()


def compare(rule, kind):
    """What is wrong with a fixture, a line for each."""
    file = os.path.join(HERE, f'pmuk_{rule}_{kind}.c')
    name = os.path.basename(file)
    with open(file, encoding='utf-8') as source:
        lines = source.read().splitlines()
    wanted = {number: found[1] for number, line in enumerate(lines, 1)
              if (found := re.search(r'/\* report: (.*) \*/', line))}
    said = apply(rule, file)
    begun = {number for number, line in enumerate(lines, 1) if line == '{'}
    for number in begun - functions(file):
        yield f'{name}:{number}: a function that spatch cannot parse'
    if len(begun) < CASES or bool(wanted) != (kind == 'bad') or kind == 'bad' and len(wanted) < CASES:
        yield f'{name}: {len(begun)} functions, {len(wanted)} to be reported: not what it is for'
    for number in sorted(wanted.keys() | said.keys()):
        got = said.get(number, [])
        if number not in wanted:
            yield f'{name}:{number}: is fine, and reported: {got}'
        elif len(got) != 1 or wanted[number] not in got[0]:
            yield f'{name}:{number}: "{wanted[number]}" was to be reported, and this was: {got}'


def main():
    wrong = [line for rule in sys.argv[1:] for kind in ('bad', 'good') for line in compare(rule, kind)]
    for line in wrong:
        print(line)
    return 1 if wrong or not sys.argv[1:] else 0


if __name__ == '__main__':
    sys.exit(main())
