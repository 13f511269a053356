#!/usr/bin/env python3
"""Draws which file of a module calls which, and fails where an edge points back.

    vm/rooms.py [--dot] TOP OBJ DIRECTORY...

TOP has the sources and OBJ what was compiled of them. A directory's Makefile lists its objects from the top:
a file may use functions and data of files further down only. An exception is a comment there:

    # back: LOW -> HIGH: REASON

One exception is allowed in each directory. A file that another Makefile compiles has a comment as well:

    # elsewhere: FILE.o: REASON

--dot prints the graph for graphviz.
"""
import os
import re
import subprocess
import sys
from collections import defaultdict

BACK = re.compile(r'^# back: (\w+) -> (\w+): \S', re.M)
ELSEWHERE = re.compile(r'^# elsewhere: (\w+)\.o: \S', re.M)
ALLOWED = 1


def order(makefile):
    """The objects of a Makefile's module, in the order in which they are listed."""
    return re.findall(r'(\w+)\.o\b', ' '.join(re.findall(r'^\w+-(?:y|objs|\$\(\w+\)) \+?:?= *(.*)', makefile, re.M)))


def symbols(path):
    """What an object defines, and what it uses of others."""
    defined, used = set(), set()
    for line in subprocess.run(['nm', path], capture_output=True, text=True, check=True).stdout.splitlines():
        kind, name = line.split()[-2:]
        (used if kind == 'U' else defined if kind.isupper() else set()).add(name)
    return defined, used


def graph(directory, files):
    """A dict of edges, (user, definer) to the symbols used."""
    uses, home = {}, {}
    for file in files:
        defined, uses[file] = symbols(os.path.join(directory, file + '.o'))
        home.update(dict.fromkeys(defined, file))
    edges = defaultdict(set)
    for file, used in uses.items():
        for name in used:
            if home.get(name, file) != file:
                edges[file, home[name]].add(name)
    return edges


def largest_circle(files, edges):
    """The largest set of files each of which reaches all the others."""
    reach = {file: {high for low, high in edges if low == file} for file in files}
    for via in files:
        for file in files:
            if via in reach[file]:
                reach[file] |= reach[via]
    return max(1 + sum(other in reach[file] and file in reach[other] for other in files if other != file)
               for file in files)


def check(top, obj, directory):
    """Prints the graph's figures. Yields what is wrong."""
    with open(os.path.join(top, directory, 'Makefile'), encoding='utf-8') as source:
        makefile = source.read()
    sources = {name[:-2] for name in os.listdir(os.path.join(top, directory)) if name.endswith('.c')}
    files = [file for file in order(makefile) if file in sources]
    for file in sorted(sources - set(files) - set(ELSEWHERE.findall(makefile))):
        yield f'{directory}: {file}.c is no object of the Makefile'
    edges = graph(os.path.join(obj, directory), [file for file in files if os.path.exists(
        os.path.join(obj, directory, file + '.o'))])
    excused = set(BACK.findall(makefile))
    for (user, definer), names in sorted(edges.items()):
        if files.index(user) > files.index(definer) and (user, definer) not in excused:
            yield f'{directory}: {user}.c is below {definer}.c, and uses {", ".join(sorted(names))}'
    for user, definer in sorted(excused):
        if (user, definer) not in edges:
            yield f'{directory}: {user}.c does not use {definer}.c, which the Makefile excuses'
    if len(excused) > ALLOWED:
        yield f'{directory}: {len(excused)} exceptions, and {ALLOWED} is allowed'
    print(f'{directory}: {len(files)} files, {len(edges)} edges, {len(excused)} exceptions, '
          f'the largest circle has {largest_circle(files, edges)}')


def dot(top, obj, directory):
    """The graph, for graphviz."""
    with open(os.path.join(top, directory, 'Makefile'), encoding='utf-8') as source:
        files = [file for file in order(source.read()) if os.path.exists(os.path.join(obj, directory, file + '.o'))]
    print(f'digraph {os.path.basename(directory)} {{')
    for user, definer in sorted(graph(os.path.join(obj, directory), files)):
        print(f'\t{user} -> {definer}')
    print('}')


def main():
    args = sys.argv[1:]
    if args[0] == '--dot':
        for directory in args[3:]:
            dot(args[1], args[2], directory)
        return 0
    broken = [wrong for directory in args[2:] for wrong in check(args[0], args[1], directory)]
    for wrong in broken:
        print(wrong)
    return 1 if broken else 0


if __name__ == '__main__':
    sys.exit(main())
