#!/usr/bin/env python3
"""Removes from the files of a series the text that later patches add.

    vm/later.py TOP PATCH...

The working directory has the series as far as it is made, by these patches. TOP has the files as the last patch leaves
them, and a table, patches/7.3/later, of what each patch adds to a file of an earlier patch.
"""
import os
import sys


def plain(field):
    """Returns what a field of the table stands for."""
    return field.replace('\\t', '\t').replace('\\n', '\n')


def without(text, first, end, before):
    """Returns the text without an addition, or None if the addition is not there once."""
    if text.count(first) != 1:
        return None
    start, rest = text.split(first)
    if end == '$':
        return start + before
    if end == '-':
        return start + before + rest
    return start + before + rest[rest.index(end):] if end in rest else None


def main():
    top, made = sys.argv[1], sys.argv[2:]
    with open(os.path.join(top, 'patches/7.3/later'), encoding='utf-8') as table:
        rows = [line.rstrip('\n').split('\t') for line in table if not line.startswith('#')]
    texts = {}
    for patch, file, first, end, *before in rows:
        if not os.path.exists(os.path.join(top, file)):
            sys.exit(f'patches/7.3/later: there is no {file}')
        if not os.path.exists(file):
            continue
        if file not in texts:
            with open(os.path.join(top, file), encoding='utf-8') as source:
                texts[file] = source.read()
        if patch not in made:
            text = without(texts[file], plain(first), plain(end), plain(''.join(before)))
            if text is None:
                sys.exit(f'patches/7.3/later: {file} does not have "{first}" exactly once, with the end after it')
            texts[file] = text
    for file, text in texts.items():
        with open(file, 'w', encoding='utf-8') as shaped:
            shaped.write(text)


if __name__ == '__main__':
    main()
