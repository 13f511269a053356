#!/usr/bin/env python3
"""Checks rules of this project that no checker of Linux has.

    vm/conventions.py KIND TOP      KIND: exports, functions, files, errnos, comments, names, fields, shown

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
CONSUMERS = ('drivers', 'kernel/sched', 'samples')
CORE = 'kernel/events/'     # perf core's files, whose exports pmuk itself uses
DECLARATION = re.compile(r'^(?=\w)[^{}=]*?\);$', re.M)
INLINE = re.compile(r'^static (?:__always_)?inline [^;{}]*?\b(\w+)\([^;{}]*\)\n\{\n(.*?)^\}', re.M | re.S)
MACRO = re.compile(r'^#[ \t]*define (\w+)\([^)\n]*\)((?:.*\\\n)*.*)$', re.M)
FREE = re.compile(r'^DEFINE_FREE\((\w+),(.*)\)$', re.M)
USE = re.compile(r'\b(\w+)\(|\b__free\((\w+)\)')


def uses(text):
    """Returns the functions and macros that a piece of code uses."""
    return {name or 'free ' + free for name, free in USE.findall(text)}


def wrappers(top):
    """Returns the names that each inline function, macro and DEFINE_FREE() of include/ uses."""
    inner = {}
    for path, text in sources(top, '.h'):
        if path.startswith('include'):
            text = COMMENT.sub('', text)
            for name, body in INLINE.findall(text) + MACRO.findall(text):
                inner.setdefault(name, set()).update(uses(body) - {name})
            for name, body in FREE.findall(text):
                inner.setdefault('free ' + name, set()).update(uses(body))
    return inner


def users(top):
    """Returns the names that a consumer or a sample uses, or whose users the documentation names.

    A wrapper in include/ is no user: what it calls is used if the wrapper itself is.
    """
    used = set()
    for path, text in sources(top, ('.c', '.h')):
        if path.startswith(CONSUMERS):
            used |= uses(DECLARATION.sub('', COMMENT.sub('', text)))
    with open(os.path.join(top, API), encoding='utf-8') as source:
        documented = re.search(r'^Calls and who needs them\n=+\n(.*?)^[^\n]+\n===', source.read(), re.M | re.S)
    used |= set(re.findall(r'\b(\w+)\(\)', documented[1] if documented else ''))
    inner = wrappers(top)
    found = used & inner.keys()
    while found:
        new = set().union(*(inner[name] for name in found)) - used
        used |= new
        found = new & inner.keys()
    return used


def exports(top):
    """Each export is GPL-only, has a user, and is documented with its context and what it returns."""
    used = users(top)
    for path, text in sources(top, '.c'):
        for found in re.finditer(r'^EXPORT_SYMBOL\w*\(.*', text, re.M):
            if not found[0].startswith(('EXPORT_SYMBOL_GPL(', 'EXPORT_SYMBOL_IF_KUNIT(')):
                yield f'{path}: {found[0]} is not EXPORT_SYMBOL_GPL'
        for name in re.findall(r'^EXPORT_SYMBOL_GPL\((\w+)\)', text, re.M):
            if re.search(r'/\*\*\n \* var ' + name + ' - ', text):
                continue    # data have no context and return nothing
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
    """Each file has a licence and a purpose, and nothing forbidden."""
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
NEXT_TO = 3     # lines after a call in which a test names the errno


# headers that declare the calls on contexts, or define inline ones
CALLS = ('include/linux/pmu_kapi_context.h', 'include/linux/pmu_kapi_group.h')


def returned(top, calls):
    """Returns the documented errnos of each of @calls, those of "as other_call()" included."""
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
    """Yields (call, errno) that are next to each other in a test, or in a table of that call."""
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


# A comment that stands alone is a sentence, or names what follows. A comment behind code says what
# the code is.
C_COMMENT = re.compile(r'/\*(?!\*)(.*?)\*/', re.S)
ALWAYS = (r'What|Which|Whichever|Whatever|Who|Whom|Whose|Whoever|Of|That|Those|Whether|So|And|But|Nor|Likewise|'
          r'Nobody|Somebody|Nothing|Something|Anything|Everything|Others|Such|Neither|The same')
ALONE = re.compile(rf'({ALWAYS}|One|How|The others?|The rest|Same)\b', re.I)
BEHIND = re.compile(rf'({ALWAYS}|It|Its|They|Them|Their|This|These|'
                    r'One(?= (of|that|is|who|which|more)\b|[,;.]|$))\b', re.I)
# "All loads come first" has a subject, "All that a reader sees" has none
QUANTITY = re.compile(r'(All|Some|Both|Either|Another|Each of) (that|of|is|are|in|but|this|it|there|what|else|'
                      r'at|from|with|who|which|to|on|have|has|can|may|must|was|were|do|does|be|by|go|come|'
                      r'these|those)\b', re.I)
# "Without NMIs, CPUs watch each other" has a main clause, "Without what a terminal takes for
# commands" has none
CLAUSE = re.compile(r'(As|Where|By|Without|Behind|Before|Until|With|For|Beside|Below)\b(?! long as)', re.I)
MAIN_CLAUSE = re.compile(r', (?!which|who|that|and|or|but|so|too)')
PRONOUN = re.compile(r'(It|Its|They|Them|Their|This|These|He|Here|There)\b')
DANGLING = re.compile(r'\b(of|for|by|with|to|from|at|about|beside|behind)(?<!accounted for)[.:]?$')
NO_PROSE = re.compile(r'SPDX|----|!?CONFIG_|[A-Z_0-9]+_H$|LMM\(|shellcheck|!')
LABEL = re.compile(r'\A[\w./-]+(?: [^:a-z]+| \[[^:]*)?: +')   # a shell function's "name ARGUMENT: "
MOST_PRONOUNS = 5       # per cent of the comments of a directory
FEW = 20                # comments; a directory with fewer counts with its parent


def words(text, marks=' \t*'):
    return ' '.join(line.strip(marks) for line in text.splitlines()).strip()


def c_comments(text):
    """Yields (line, stands alone, words) for each comment of C."""
    for found in C_COMMENT.finditer(text):
        before = text[text.rfind('\n', 0, found.start()) + 1:found.start()].strip()
        after = text[found.end():].partition('\n')[0].strip()
        if not after:
            yield text.count('\n', 0, found.start()) + 1, not before, words(found[1])


def hash_comments(text):
    """Yields (line, stands alone, words) for each comment of a script; adjoining lines are one comment."""
    block, start = [], 0
    for number, line in enumerate(text.splitlines() + [''], 1):
        alone = re.match(r'\s*#+(?!!)(?: |\t|$)(.*)', line)
        if alone and not NO_PROSE.match(alone[1]):
            start = start if block else number
            block.append(alone[1])
            continue
        if block:
            yield start, True, LABEL.sub('', words('\n'.join(block), ' \t'), count=1)
        block = []
        behind = re.search(r'\S(?:\t+|  +)# (\w.*)$', line)
        if behind and not re.match(r'\s*#', line):
            yield number, False, behind[1]


def added(text):
    """Returns the added lines of a patch, with empty lines in place of the others."""
    return '\n'.join(line[1:] if re.match(r'\+(?!\+\+ )', line) else '' for line in text.splitlines())


def all_comments(top):
    """Yields (path, line, stands alone, words) for each comment."""
    for path, text in sources(top, ('.c', '.h'), 'tools/testing', 'compat-include', 'vm'):
        for line, alone, text in c_comments(text):
            yield path, line, alone, text
    for path, text in sources(top, '.patch', 'patches'):
        for line, alone, text in c_comments(added(text)):
            yield path, line, alone, text
    for directory, _, files in os.walk(os.path.join(top, 'vm')):
        for file in sorted(files):
            path = os.path.relpath(os.path.join(directory, file), top)
            if not file.endswith(('.c', '.patch', '.pyc')):
                with open(os.path.join(top, path), encoding='utf-8') as source:
                    for line, alone, text in hash_comments(source.read()):
                        yield path, line, alone, text


def fault(alone, text):
    """Returns the words that make a comment hard to read, or None."""
    found = (ALONE if alone else BEHIND).match(text) or QUANTITY.match(text)
    if alone and not found:
        first = re.split(r'(?<=[.;:?])\s', text)[0]
        found = not MAIN_CLAUSE.search(first) and CLAUSE.match(text) or DANGLING.search(text)
    return found[0] if found else None


def shares(counts):
    """Adds directories with few comments to their parents: {directory: (comments, pronouns)}."""
    for depth in range(max(name.count('/') for name in counts), 0, -1):
        few = [name for name in counts if name.count('/') == depth and counts[name][0] < FEW]
        for name in few:
            number, pronouns = counts.pop(name)
            there = counts.get(os.path.dirname(name), (0, 0))
            counts[os.path.dirname(name)] = (there[0] + number, there[1] + pronouns)
    return counts


def comments(top):
    """Each comment opens with its subject, and ends without a dangling preposition."""
    counts, number = {}, 0
    for path, line, alone, text in all_comments(top):
        if not text or NO_PROSE.match(text):
            continue
        number += 1
        found = fault(alone, text)
        if found:
            yield f'{path}:{line}: a comment with "{found}": {text[:60]}'
        if alone:
            there = counts.get(os.path.dirname(path), (0, 0))
            counts[os.path.dirname(path)] = (there[0] + 1, there[1] + bool(PRONOUN.match(text)))
    most = 0
    for directory, (all_there, pronouns) in shares(counts).items():
        share = 100 * pronouns / all_there
        most = max(most, share)
        if share > MOST_PRONOUNS:
            yield f'{directory}: {share:.1f} % of {all_there} comments open with a pronoun'
    print(f'{number} comments; at most {most:.1f} % of a directory open with a pronoun')


TYPE = re.compile(r'^(?:typedef .*\b(\w+);|(?:typedef )?(?:struct|union|enum) (\w+) \{)', re.M)
FUNCTION = re.compile(r'^(?!#|typedef|return|else)\w[^;=(){}\n]*[ *](\w+)\([^;{}]*\)'
                      r'[^;{}()]*(?:\([^;{}]*\)[^;{}()]*)*\n\{', re.M)


def program_of(path):
    """Returns a name for the files that are compiled together with a file."""
    if path.startswith('tools/testing/selftests') and path.endswith('.c'):
        return path
    return os.path.dirname(path) if path.startswith('tools') else 'the kernel'


def names(top):
    """No type has the name of a function of the same file, or of a header."""
    types, functions_there = {}, {}
    for path, text in sources(top, ('.c', '.h'), 'tools/testing'):
        where = program_of(path), '' if path.endswith('.h') else path
        text = COMMENT.sub(lambda found: '\n' * found[0].count('\n'), text)
        for found in TYPE.finditer(text):
            line = text.count('\n', 0, found.start()) + 1
            types.setdefault((*where, found[1] or found[2]), f'{path}:{line}')
        for found in FUNCTION.finditer(text):
            functions_there.setdefault((*where, found[1]), path)
    print(f'{len(types)} types, {len(functions_there)} functions')
    by_name = {}
    for (program, file, name), path in functions_there.items():
        by_name.setdefault((program, name), []).append((file, path))
    for (program, file, name), line in types.items():
        for other, path in by_name.get((program, name), ()):
            if file == other or not file or not other:
                yield f'{line}: {name} is a type, and a function in {path}'


# These leave perf's structures to perf core: linux/perf_local*.h, kernel/events/local*.c and asm/perf_arch.h
GUESTS = ('kernel/pmu_kapi/', 'kernel/sched/pmuk_stats/', 'drivers/watchdog/pmuk_wdt/', 'samples/',
          'include/linux/pmu_kapi')
DRIVERS = ('kernel/pmu_kapi/rider.c',)      # a PMU's driver keeps the state of its own events
KNOWN = {'perf_event': ('attr', 'id', 'overflow_handler_context'), 'pmu': ('type',)}
INNER = re.compile(r'struct (hw_perf_event|perf_event_context|perf_event_pmu_context|perf_cpu_\w+)\b')
# fields that no structure of ours has: these are found even if the type of what they belong to is not
UNIQUE = re.compile(r'(?:->|\.)(attach_state|check_period|child_list|child_mutex|hw|mmap_mutex|oncpu|period_left|'
                    r'pinned_active|pmu_disable_count|prev_count|task_epc|tp_event|tstamp)\b')


def pointers(kind, text):
    """A regular expression for what points to a struct @kind in @text: variables, members, casts."""
    names = set(re.findall(r'\bstruct ' + kind + r' \*(?:\*|const\b|\s)*(\w+)\b', text))
    names.update({'perf_event': (r'\w+(?:->|\.)events?(?:\[\w+\])?', r'\(struct perf_event \*\)\w+\)'),
                  'pmu': (r'\w+->pmu',)}[kind])
    return r'(?<![\w>.])(?:\w+(?:\[\w+\])?(?:->|\.))*?(?:' + '|'.join(sorted(names)) + r')(?:\[\w+\])?'


def foreign(text):
    """Where in @text, a function with what is before it, something of perf's own is used: pairs of offset and name."""
    for found in INNER.finditer(text):
        yield found.start(), found[0]
    for found in UNIQUE.finditer(text):
        yield found.start(), found[0]
    for kind, known in KNOWN.items():
        for found in re.finditer(r'(?:' + pointers(kind, text) + r')->(?!(?:' + '|'.join(known) + r')\b)(\w+)', text):
            # the PMU's type, by way of the event
            if not re.match(r'pmu->type\b', text[found.start(1):]):
                yield found.start(), found[0]
        for found in re.finditer(r'\bstruct ' + kind + r', (?!(?:' + '|'.join(known) + r')\b)\w+', text):
            yield found.start(), found[0]   # offsetof(), container_of()


def fields(top):
    """Only perf core's own files use the fields of its structures."""
    number = 0
    for path, text in sources(top, ('.c', '.h')):
        if not path.startswith(GUESTS) or path in DRIVERS:
            continue
        number += 1
        text = COMMENT.sub(lambda found: re.sub(r'[^\n]', ' ', found[0]), text)
        start = 0
        for part in re.split(r'(?<=\n}\n)', text):
            seen = {}
            for offset, name in foreign(part):
                seen.setdefault(text.count('\n', 0, start + offset) + 1, name)
            for line, name in sorted(seen.items()):
                yield f"{path}:{line}: {name}: perf core's own"
            start += len(part)
    print(f'{number} files')


def tests_of(top):
    """The tests of each suite in vm/lanes/tests, also the parts of their names."""
    suites, tests = [], {}
    with open(os.path.join(top, 'vm/lanes/tests'), encoding='utf-8') as rows:
        for line in rows:
            if re.match(r'\w', line):
                suites = line.split(':')[0].split()
            elif re.match(r' +(?!skip |from )\S', line):
                for suite in suites:
                    tests.setdefault(suite, set()).update(re.findall(r'\w+', line))
    return tests


def shown(top):
    """The tests that tables of documents name, in a column "shown by" of "SUITE: TEST, TEST", exist."""
    tests = tests_of(top)
    number = 0
    for path, text in sources(top, ('.rst',), 'Documentation'):
        for first, rows in re.findall(r'^(=+ +)=+\n[^\n]*\bshown by\n=+ +=+\n(.*?)^=+ +=+$', text, re.M | re.S):
            suite = None
            for name, colon in re.findall(r'([\w.-]+)(:?)', ' '.join(row[len(first):] for row in rows.splitlines())):
                if colon:
                    suite = name
                elif not name.endswith('.litmus'):
                    number += 1
                    if name not in tests.get(suite, ()) and name not in tests:
                        yield f'{path}: {suite} has no test {name}'
    print(f'{number} names')
    if not number:
        yield 'no document names a test'


def main():
    kinds = {'exports': exports, 'functions': functions, 'files': files, 'errnos': errnos,
             'comments': comments, 'names': names, 'fields': fields, 'shown': shown}
    broken = list(kinds[sys.argv[1]](sys.argv[2]))
    for line in broken:
        print(line)
    return 1 if broken else 0


if __name__ == '__main__':
    sys.exit(main())
