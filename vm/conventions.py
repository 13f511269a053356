#!/usr/bin/env python3
"""This project's own rules for its kernel files, where no checker of Linux has them.

    vm/conventions.py KIND TOP      KIND: exports, functions, files

Prints what breaks a rule, and ends with 1 if something does.
"""
import os
import re
import statistics
import sys

OVERLAY = ('include', 'kernel', 'drivers', 'lib', 'samples')
COMMENT = re.compile(r'/\*.*?\*/', re.S)


def sources(top, suffixes, *more):
    for base in OVERLAY + more:
        for directory, _, files in os.walk(os.path.join(top, base)):
            for file in sorted(files):
                if file.endswith(suffixes):
                    path = os.path.join(directory, file)
                    with open(path, encoding='utf-8') as source:
                        yield os.path.relpath(path, top), source.read()


def exports(top):
    """Each export is GPL-only, and documented with its context and what it returns."""
    for path, text in sources(top, '.c'):
        for found in re.finditer(r'^EXPORT_SYMBOL\w*\(.*', text, re.M):
            if not found[0].startswith('EXPORT_SYMBOL_GPL('):
                yield f'{path}: {found[0]} is not EXPORT_SYMBOL_GPL'
        for name in re.findall(r'^EXPORT_SYMBOL_GPL\((\w+)\)', text, re.M):
            doc = re.search(r'/\*\*\n \* ' + name + r'\(\) - .*?\*/\n(.*?)\n?\{', text, re.S)
            if not doc:
                yield f'{path}: {name}() is exported and has no kernel-doc'
                continue
            if '\n * Context:' not in doc[0]:
                yield f'{path}: {name}(): no "Context:"'
            if '\n * Return:' not in doc[0] and not re.match(r'(__\w+ )*void \w', doc[1]):
                yield f'{path}: {name}(): no "Return:"'


def functions(top):
    """Functions fit a screen: median <= 12 lines, nine in ten <= 40, none > 80."""
    lengths = []
    for path, text in sources(top, ('.c', '.h')):
        start = None
        for number, line in enumerate(text.splitlines(), 1):
            if line == '{':
                start = number
            elif line == '}' and start:
                lengths.append(number - start - 1)
                if lengths[-1] > 80:
                    yield f'{path}:{start}: a function of {lengths[-1]} lines'
                start = None
    median = statistics.median(lengths)
    ninth = statistics.quantiles(lengths, n=10)[8]
    print(f'{len(lengths)} functions: median {median}, nine in ten <= {ninth}, longest {max(lengths)}')
    if median > 12:
        yield f'the median function has {median} lines, more than 12'
    if ninth > 40:
        yield f'one function in ten is longer than {ninth} lines; 40 are allowed'


FORBIDDEN = (
    (r'LINUX_VERSION_CODE|KERNEL_VERSION\(', 'kernel versions are for compat-include/'),
    (r'kallsyms_lookup_name', 'exported symbols only'),
    (r'\b(TO' r'DO|FIX' r'ME|XX' r'X|HA' r'CK)\b', 'an unfinished mark'),
)


def files(top):
    """Licences, and what must not be in a source."""
    for path, text in sources(top, ('.c', '.h', 'Makefile', 'Kconfig'), 'compat-include'):
        if 'SPDX-License-Identifier: GPL-2.0' not in ''.join(text.splitlines()[:1]):
            yield f'{path}: the first line is no SPDX-License-Identifier of GPL-2.0'
        for pattern, why in FORBIDDEN:
            if path.startswith('compat-include') and 'compat-include' in why:
                continue
            found = re.search(pattern, COMMENT.sub('', text) if 'only' in why else text)
            if found:
                yield f'{path}: {found[0]}: {why}'
        if path.startswith(('kernel/', 'include/')) and path.endswith(('.c', '.h')):
            if not re.match(r'//.*\n/\*|/\*.*\*/\n/\*', text):
                yield f'{path}: does not open with what it is for'
    for path, text in sources(top, '.h', 'compat-include'):
        if path.startswith('compat-include'):
            if '#include_next' not in text:
                yield f'{path}: no #include_next of what it completes'


def main():
    broken = list({'exports': exports, 'functions': functions, 'files': files}[sys.argv[1]](sys.argv[2]))
    for line in broken:
        print(line)
    return 1 if broken else 0


if __name__ == '__main__':
    sys.exit(main())
