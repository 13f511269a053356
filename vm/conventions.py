#!/usr/bin/env python3
"""This project's own rules for its kernel files, where no checker of Linux has them.

    vm/conventions.py KIND TOP      KIND: exports, functions, files, errnos, comments

Prints what breaks a rule, and ends with 1 if something does.
"""
import os
import re
import statistics
import sys

OVERLAY = ('arch', 'include', 'kernel', 'drivers', 'lib', 'samples', 'tools/pmuk')
COMMENT = re.compile(r'/\*.*?\*/', re.S)


def sources(top, suffixes, *more):
    for base in OVERLAY + more:
        for directory, _, files in os.walk(os.path.join(top, base)):
            for file in sorted(files):
                if file.endswith(suffixes):
                    path = os.path.join(directory, file)
                    with open(path, encoding='utf-8') as source:
                        yield os.path.relpath(path, top), source.read()


API = 'Documentation/core-api/pmu-kapi.rst'
CONSUMERS = ('drivers', 'kernel/sched', 'samples', 'include')
CORE = 'kernel/events/'     # perf core's, which pmuk itself uses


def users(top):
    """The names that a consumer, a sample or an inline function uses, or whose users the documentation names."""
    used = set()
    for path, text in sources(top, ('.c', '.h')):
        if path.startswith(CONSUMERS):
            used.update(re.findall(r'\b(\w+)\(', re.sub(r'^(?=\w)[^{}=]*?\);$', '', COMMENT.sub('', text), flags=re.M)))
    with open(os.path.join(top, API), encoding='utf-8') as source:
        told = re.search(r'^Calls and who needs them\n=+\n(.*?)^[^\n]+\n===', source.read(), re.M | re.S)
    return used | set(re.findall(r'\b(\w+)\(\)', told[1] if told else ''))


def exports(top):
    """Each export is GPL-only, has a user, and is documented with its context and what it returns."""
    used = users(top)
    for path, text in sources(top, '.c'):
        for found in re.finditer(r'^EXPORT_SYMBOL\w*\(.*', text, re.M):
            if not found[0].startswith(('EXPORT_SYMBOL_GPL(', 'EXPORT_SYMBOL_IF_KUNIT(')):
                yield f'{path}: {found[0]} is not EXPORT_SYMBOL_GPL'
        for name in re.findall(r'^EXPORT_SYMBOL_GPL\((\w+)\)', text, re.M):
            if re.search(r'/\*\*\n \* var ' + name + ' - ', text):
                continue    # data: no context, and nothing that it returns
            if path.startswith('kernel/') and not path.startswith(CORE) and name not in used:
                yield f'{path}: {name}() is exported, and who needs it is neither in the tree nor in {API}'
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
        if path.startswith(('kernel/', 'include/', 'tools/pmuk/')) and path.endswith(('.c', '.h')):
            if not re.match(r'//.*\n/\*|/\*.*\*/\n/\*', text):
                yield f'{path}: does not open with what it is for'
    for path, text in sources(top, '.h', 'compat-include'):
        if path.startswith('compat-include'):
            if '#include_next' not in text:
                yield f'{path}: no #include_next of what it completes'


ERRNO = re.compile(r'-(E[A-Z0-9]+)\b')
ROWS = re.compile(r'^static const struct row (\w+)_rows\[\] = {\n(.*?)^};', re.M | re.S)
NEXT_TO = 3     # lines from a call on, to the one that says what it returns


# the headers that declare the calls on contexts, or define those that are inline
CALLS = ('include/linux/pmu_kapi_context.h', 'include/linux/pmu_kapi_group.h')


def returned(top, calls):
    """What each of @calls is documented to return, also by "as" and another call's name."""
    said = {}
    for path, text in sources(top, ('.c', '.h')):
        if path.startswith(('kernel/', 'include/')):
            for call, doc in re.findall(r'/\*\*\n \* (\w+)\(\) - (.*?)\*/', text, re.S):
                if call in calls:
                    said[call] = doc.partition('\n * Return:')[2]

    def names(call):
        referred = re.findall(r'\b[Aa]s (\w+)\(\)', said[call])
        return set(ERRNO.findall(said[call])).union(*(names(other) for other in referred if other in calls))

    return {call: names(call) for call in said}


def asserted(top, calls):
    """Pairs of a call and an errno, next to each other in a test or in a table of that call."""
    for path, text in sources(top, '.c'):
        if not path.startswith('lib/tests/pmuk_'):
            continue
        lines = text.splitlines()
        for call in calls:
            for number, line in enumerate(lines):
                if call + '(' in line:
                    near = '\n'.join(lines[number:number + 1 + NEXT_TO])
                    yield from ((call, name) for name in ERRNO.findall(near))
            # the sweep expects -ENOMEM of each call that it makes
            if path.endswith('/pmuk_context_fail_kunit.c') and call + '(' in text:
                yield call, 'ENOMEM'
        for table, rows in ROWS.findall(text):
            of = [call for call in calls if f'pmuk_{table}_'.startswith(call + '_')]
            yield from ((max(of, key=len), name) for name in ERRNO.findall(rows) if of)


def errnos(top):
    """Each errno that a call on contexts is documented to return, a test expects of it."""
    calls = []
    for path in CALLS:
        with open(os.path.join(top, path), encoding='utf-8') as header:
            calls += re.findall(r'^(?:int|static __always_inline int|struct pmuk_context \*) ?(pmuk_\w+)\(',
                                header.read(), re.M)
    documented, tested = returned(top, calls), set(asserted(top, calls))
    print(f'{sum(map(len, documented.values()))} errnos of {len(documented)} calls')
    for call in calls:
        if call not in documented:
            yield f'{call}(): no kernel-doc'
        for name in sorted(documented.get(call, ())):
            if (call, name) not in tested:
                yield f'{call}(): no test expects -{name}'


ALONE = re.compile(r'^[ \t]*/\*(?!\*)(.*?)\*/[ \t]*$', re.M | re.S)
FRAGMENT = re.compile(r'(What|Which|One|Of|Whoever|Who|Whose|That|Those|So|And|But|The same|Likewise|As(?! long))\b')
PRONOUN = re.compile(r'(It|Its|They|Them|Their|This|These|He)\b')
DANGLING = re.compile(r'\b(of|for|by|with|to|from|at|about|beside|behind)(?<!accounted for)[.:]?$')


def comments(top):
    """A comment that stands alone opens with its subject, and ends with no dangling preposition."""
    number = pronouns = 0
    for path, text in sources(top, ('.c', '.h'), 'tools/testing', 'compat-include', 'vm'):
        for found in ALONE.finditer(text):
            words = ' '.join(line.strip(' \t*') for line in found[1].splitlines()).strip()
            number += 1
            pronouns += bool(PRONOUN.match(words))
            wrong = FRAGMENT.match(words) or DANGLING.search(words)
            if wrong:
                line = text.count('\n', 0, found.start()) + 1
                yield f'{path}:{line}: a comment with "{wrong[0]}": {words[:60]}'
    print(f'{number} comments that stand alone; {100 * pronouns / number:.0f} % open with a pronoun')


def main():
    kinds = {'exports': exports, 'functions': functions, 'files': files, 'errnos': errnos,
             'comments': comments}
    broken = list(kinds[sys.argv[1]](sys.argv[2]))
    for line in broken:
        print(line)
    return 1 if broken else 0


if __name__ == '__main__':
    sys.exit(main())
