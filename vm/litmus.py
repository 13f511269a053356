#!/usr/bin/env python3
"""Runs the litmus tests over the memory model, and sees that they are those of the sources.

    vm/litmus.py HERD MODEL TOP     HERD: herd7; MODEL: tools/memory-model of a kernel tree

Prints KTAP: a line for each Documentation/litmus-tests/pmu_kapi/*.litmus, which must say in its header
what herd7 finds, "Result: Never" or "Result: Sometimes DATARACE"; one for what ties them to the LMM()
labels of the sources, where each access has the ordering that it has in the tests; and one that shows that a
wrong one of either kind would be found.

The memory model's judgelitmus.sh judges less. Where a test models a data race, as half of these do, judgelitmus.sh
forgives a wrong Always, Sometimes or Never. It looks for the word in the whole Observation line, which also has the
test's name.
"""
import glob
import os
import re
import signal
import subprocess
import sys
import tempfile

TESTS = 'Documentation/litmus-tests/pmu_kapi'
DOC = re.compile(r'/\*\*\n \* DOC: .*?\*/', re.S)
LABEL = re.compile(r'LMM\((\w+:[A-Z])\)')
MARK = re.compile(r'//.*?\b(\w+:[A-Z])\b')
COMMENT = re.compile(r'/\*.*|//.*')
ORDER = re.compile(r'acquire|release|relaxed|smp_r?w?mb')


def expected(text):
    found = re.search(r'^ \* Result: (Never|Sometimes|Always)( DATARACE)?$', text, re.M)
    return found[0].partition(': ')[2] if found else None


def observed(herd, model, path):
    """What herd7 finds, in the words of a header; and all that it has said."""
    run = subprocess.run(['timeout', '4h', 'prlimit', '--cpu=1200', herd, '-conf', 'linux-kernel.cfg', path], cwd=model, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if run.returncode == -signal.SIGKILL:
        return None, 'no result after twenty minutes of CPU time'
    name = os.path.basename(path).removesuffix('.litmus')
    found = re.search(rf'^Observation {re.escape(name)} (\w+) (\d+) (\d+)$', run.stdout, re.M)
    if run.returncode or not found or found[2] == found[3] == '0':
        return None, run.stdout
    race = ' DATARACE' if re.search('^Flag data-race$', run.stdout, re.M) else ''
    return found[1] + race, run.stdout


def misjudged(herd, model, path, text):
    """What is wrong with a test, a line each."""
    wanted = expected(text)
    got, said = observed(herd, model, path)
    if not wanted:
        return ['its header has no Result:']
    if not got:
        return ['herd7 has no result:', *said.splitlines()]
    if wanted != got:
        return [f'its header says {wanted}, herd7 finds {got}:', *said.splitlines()]
    if wanted != 'Never' and not path.endswith('-broken.litmus'):
        return [f'{wanted}, and not called broken']
    if wanted == 'Never' and path.endswith('-broken.litmus'):
        return ['called broken, and nothing happens']
    return []


def read(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


def collect(top):
    """The DOC: blocks, the sources without them, and the tests: name -> text."""
    paths = [path for place in ('kernel/pmu_kapi/*.[ch]', 'include/linux/*.h',
                                             'drivers/watchdog/pmuk_wdt/*.[ch]')
             for path in sorted(glob.glob(os.path.join(top, place)))]
    text = ''.join(map(read, paths))
    tests = {os.path.basename(path): read(path)
             for path in sorted(glob.glob(os.path.join(top, TESTS, '*.litmus')))}
    return '\n'.join(DOC.findall(text)), DOC.sub('', text), tests


def pairs(doc):
    """Labels and test of each pair in the DOC: blocks."""
    for found in re.finditer(r'^ \* (\S.*/ LMM\(.*)\n((?: \*\t.*\n)*)', doc, re.M):
        test = re.search(r'\S+\.litmus', found[2])
        yield LABEL.findall(found[1]), test[0] if test else None


def accesses(text, mark):
    """Each label, with the ordering of its access. If a label has a line of its own, the access is in the next."""
    lines = text.split('\n')
    for line, following in zip(lines, [*lines[1:], '']):
        for label in mark.findall(line):
            access = COMMENT.sub('', line) if COMMENT.sub('', line).strip() else following
            yield label, ''.join(ORDER.findall(access))


def reordered(code, tests):
    """Accesses of the sources whose ordering is not that of the tests, of which some may do with less."""
    modelled = {}
    for name, text in tests.items():
        if not name.endswith('-broken.litmus'):
            for label, order in accesses(text, MARK):
                modelled.setdefault(label, set()).add(order)
    for label, order in accesses(code, LABEL):
        wanted = modelled.get(label, {order})
        if order != max(wanted):
            yield f'LMM({label}): its access has {order or "no ordering"}, that of the tests {max(wanted) or "none"}'


def untied(doc, code, tests, readme):
    """What does not fit together of labels, pairs and tests."""
    labels, used = set(LABEL.findall(doc)), set(LABEL.findall(code))
    for label in sorted(used - labels):
        yield f'LMM({label}) is in no pair'
    for label in sorted(labels - used):
        yield f'LMM({label}) is in a pair, and at no access'
    for members, test in pairs(doc):
        if test not in tests:
            yield f'{" / ".join(members)}: there is no {test}'
        for label in members:
            if label not in tests.get(test, label):
                yield f'{test} does not mention {label}'
    sound = [name.removesuffix('.litmus') for name in tests if not name.endswith('-broken.litmus')]
    for name in sound:
        if f'{name}-broken.litmus' not in tests:
            yield f'{name}.litmus has no broken twin'
        if f'\n{name}.litmus\n' not in readme:
            yield f'README does not mention {name}.litmus'
    for name, text in tests.items():
        if name.endswith('-broken.litmus') and not any(name.startswith(twin + '-') for twin in sound):
            yield f'{name} is the twin of none'
        for label in sorted(set(re.findall(r'\b\w+:[A-Z]\b', text)) - labels):
            yield f'{name}: there is no LMM({label})'
    yield from reordered(code, tests)


def damaged(name, text):
    """Tests that must not pass: what is wrong, the name, the text."""
    yield 'Sometimes for Never', name, text.replace('Result: Never', 'Result: Sometimes')
    yield 'a race that is none', name, text.replace('Result: Never', 'Result: Never DATARACE')
    yield 'no result', name, text.replace('Result: Never', '')
    yield 'no release', name, re.sub(r'smp_store_release\((\w+),', r'WRITE_ONCE(*\1,', text)
    yield 'called broken', name.replace('.', '-broken.'), text.replace('C ring-publish', 'C ring-publish-broken')
    yield 'another name', name, text.replace('C ring-publish', 'C ring-publisher')
    yield 'not a test', name, text.replace('P1(', 'P1')


def selftest(herd, model, doc, code, tests, readme):
    name = 'ring-publish.litmus'
    with tempfile.TemporaryDirectory() as directory:
        for what, file, text in (('sound', name, tests[name]), *damaged(name, tests[name])):
            path = os.path.join(directory, file)
            with open(path, 'w', encoding='utf-8') as test:
                test.write(text)
            if (what == 'sound') == bool(misjudged(herd, model, path, text)):
                yield f'{what}: misjudged'
    twin = name.replace('.', '-broken.')
    for what, damage in (
            ('no such pair', (doc.replace('LMM(pmuk_buffer_peek:A)', ''), code, tests, readme)),
            ('no such access', (doc, code.replace('LMM(pmuk_buffer_peek:A)', ''), tests, readme)),
            ('no test', (doc, code, {k: v for k, v in tests.items() if k != name}, readme)),
            ('no twin', (doc, code, {k: v for k, v in tests.items() if k != twin}, readme)),
            ('release missing', (doc, code.replace('store_release(&ring->commit, end)', 'store(ring->commit, end)'),
                                 tests, readme)),
            ('barrier missing', (doc, code.replace('smp_mb();	/* LMM(pmuk_publish:A)', '/* LMM(pmuk_publish:A)'),
                                 tests, readme)),
            ('label unknown', (doc, code, {**tests, name: tests[name] + 'pmuk_buffer_peek:Z'}, readme)),
            ('label missing', (doc, code, {**tests, name: ''}, readme)),
            ('not in README', (doc, code, tests, readme.replace(name, '')))):
        if not list(untied(*damage)):
            yield f'{what}: not found'


def main():
    herd, model, top = sys.argv[1:]
    doc, code, tests = collect(top)
    readme = read(os.path.join(top, TESTS, 'README'))
    items = [(name.removesuffix('.litmus'),
              lambda name=name: misjudged(herd, model, os.path.join(os.path.abspath(top), TESTS, name), tests[name]))
             for name in tests]
    items.append(('labels', lambda: list(untied(doc, code, tests, readme))))
    items.append(('selftest', lambda: list(selftest(herd, model, doc, code, tests, readme))))
    print(f'KTAP version 1\n1..{len(items)}')
    for number, (name, item) in enumerate(items, 1):
        said = item()
        for line in said:
            print('# ' + line)
        print(f'{"not ok" if said else "ok"} {number} {name}', flush=True)


if __name__ == '__main__':
    main()
