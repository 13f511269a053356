#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Checks that standard input is OpenMetrics text, and prints the numbers of families and samples.

The HELP, TYPE and UNIT of a family are in one place. Its samples have the suffixes of its type, and
each label set comes once. Buckets of histograms are in order and cumulative, and +Inf equals the
count.
"""
import re
import sys

NAME = r'[a-zA-Z_:][a-zA-Z0-9_:]*'
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"'
SAMPLE = re.compile(rf'({NAME})(?:\{{({LABEL}(?:,{LABEL})*)?\}})? (\S+)')
VALUE = re.compile(r'\d+(\.\d+)?(e[+-]?\d+)?|[+-]Inf|NaN')
SUFFIXES = {'counter': ('_total', '_created'), 'gauge': ('',),
            'histogram': ('_bucket', '_count', '_sum', '_created')}


def fail(number, what):
    sys.exit(f'line {number}: {what}')


class Family:
    def __init__(self, name):
        self.name = name
        self.said = {}
        self.samples = {}       # (suffix, labels) -> value
        self.order = []

    def meta(self, number, key, text):
        if self.samples or key in self.said:
            fail(number, f'{key} of {self.name} is misplaced or twice')
        if key == 'TYPE' and text not in SUFFIXES:
            fail(number, f'type {text}')
        if key == 'UNIT' and not self.name.endswith('_' + text):
            fail(number, f'{self.name} does not end with its unit {text}')
        self.said[key] = text

    def sample(self, number, suffix, labels, value):
        if suffix not in SUFFIXES[self.said['TYPE']]:
            fail(number, f'{self.name}{suffix} of type {self.said["TYPE"]}')
        names = [name for name, _ in labels]
        if len(set(names)) != len(names):
            fail(number, 'a label twice')
        key = (suffix, tuple(sorted(labels)))
        if key in self.samples:
            fail(number, f'{self.name}{suffix} twice with the same labels')
        self.samples[key] = value
        self.order.append((suffix, labels, value))

    def check(self, number):
        if 'TYPE' not in self.said or 'HELP' not in self.said:
            fail(number, f'{self.name} has no TYPE or no HELP')
        if self.said['TYPE'] == 'counter' and self.name.endswith('_total'):
            fail(number, f'the family {self.name} ends with _total')
        if self.said['TYPE'] == 'histogram':
            self.check_buckets(number)

    def check_buckets(self, number):
        last = {}
        for suffix, labels, value in self.order:
            others = tuple(sorted(label for label in labels if label[0] != 'le'))
            if suffix == '_bucket':
                bound = float(dict(labels)['le'])
                before = last.get(others, (-1.0, 0.0))
                if bound <= before[0] or value < before[1]:
                    fail(number, f'{self.name}: buckets {others} are not in order, or shrink')
                last[others] = (bound, value)
        for others, (bound, value) in last.items():
            if bound != float('inf') or self.samples.get(('_count', others)) != value:
                fail(number, f'{self.name}: {others}: +Inf is missing, or is not the count')
            if ('_sum', others) not in self.samples:
                fail(number, f'{self.name}: {others}: no sum')


def find(families, name):
    """Returns the family of a sample, the latest one, and the sample's suffix; or None twice."""
    current = families[-1] if families else None
    if current and name.startswith(current.name):
        return current, name[len(current.name):]
    return None, None


def main():
    text = sys.stdin.buffer.read().decode('utf-8')
    lines = text.split('\n')
    if lines[-2:] != ['# EOF', ''] or text.count('# EOF') != 1:
        sys.exit('it does not end with # EOF')
    families, samples = [], 0
    for number, line in enumerate(lines[:-2], 1):
        meta = re.fullmatch(rf'# (HELP|TYPE|UNIT) ({NAME}) (.+)', line)
        if meta:
            if not families or families[-1].name != meta[2]:
                if meta[2] in [family.name for family in families]:
                    fail(number, f'{meta[2]} is in two places')
                families.append(Family(meta[2]))
            families[-1].meta(number, meta[1], meta[3])
            continue
        found = SAMPLE.fullmatch(line)
        if not found or not VALUE.fullmatch(found[7]):
            fail(number, f'not a sample: {line}')
        family, suffix = find(families, found[1])
        if not family:
            fail(number, f'{found[1]} is not of the family before it')
        family.sample(number, suffix, re.findall(LABEL, found[2] or ''), float(found[7]))
        samples += 1
    for family in families:
        family.check(len(lines))
    print(len(families), samples)


if __name__ == '__main__':
    main()
