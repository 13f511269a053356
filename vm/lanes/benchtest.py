#!/usr/bin/env python3
"""Shows that vm/bench-report finds in logs what vm/bench measured, and draws it, and that vm/bench refuses what it does
not know."""
import json
import os
import subprocess
import sys
import tempfile

VM = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..')
NS = '''[    1.000000] read_raw_ns 9.000
bench: reads: round 1 of 3: bench_read
read_raw_ns 300.000
read_raw_ns 100.000
read_raw_ns 200.000
read_pmuk_local_ns 300.000
read_pmuk_local_insn 1.000
# no _insn: instructions cannot be counted here (-2)
'''
INSN = '''read_pmuk_local_ns 1.000
read_pmuk_local_insn 43.000
read_perf_local_insn 172.000
switch_on_ns 218.000
switch_stream_ns 318.500
ctx_load_ns 77900.000
ctx_load_8set_ns 300000.000
ctx_load_32set_ns 1200000.000
ctx_unload_ns 9000000.000
ctx_unload_grace_periods 2.000
readers_10_entries 12.000
read_surprise_insn 1.000
# no aux_pmu_begin_end: perf core has no AUX output of kernel counters
'''
STOCK = '''switch_on_ns 150.000
switch_stream_ns 240.000
switch_idle_insn 190.000
'''
OURS = '''wdt_latency_200 1.100
wdt_latency_200 missed
wdt_latency_1000 1.300
wdt_false 2
wdt_false 1
wdt_nmis_per_threshold 3.5
'''
ALL = 'reads,records,aux,switch,contexts,watchdog'
LAST = {'read_raw_ns': 400.0, 'read_pmuk_local_insn': 45.0, 'x86_read_raw_ns': 1.0}
KEPT = {'read_user_ns': 1.0, 'rec_pmuk_insn': 46.3, 'no_longer_ns': 1.0, 'x86_read_raw_ns': 7.0,
        'x86_read_user_ns': 1.0}

# name: the measured parts, words of the report, numbers in build/bench.json (None: no number)
CASES = {
    'the median, only of ns.log': (f'arm64:{ALL}', [], {'read_raw_ns': 200.0}),
    'instructions, only of insn.log':
        (f'arm64:{ALL}', [], {'read_pmuk_local_insn': 43.0, 'read_pmuk_local_ns': 300.0}),
    'virtual nanoseconds are instructions':
        (f'arm64:{ALL}', [], {'switch_on_insn': 218.0, 'ctx_load_8set_insn': 300000.0, 'switch_on_ns': None}),
    'a record is what a stream adds': (f'arm64:{ALL}', [], {'switch_record_insn': 100.5}),
    'a target that is met': ('arm64:reads', ['read_pmuk_local_insn <= 0.3 x read_perf_local_insn: met (0.25)'], {}),
    'targets that are missed': ('arm64:reads', ['read_pmuk_local_ns <= 1.3 x read_raw_ns: missed (1.5)',
                                                'read_pmuk_local_insn <= 36: missed (43)'], {}),
    'a target that cannot be told': ('arm64:reads', ['read_syscall_ns >= 27 x read_pmuk_local_ns: not measured'], {}),
    'a verdict beside the number': ('arm64:switch', ['missed  pmuk_sched\n'], {}),
    'the change in per cent': ('arm64:reads', ['200.0     -50%'], {}),
    'the change of instructions': ('arm64:reads', ['43.0       -2'], {}),
    'curves': ('arm64:contexts', ['77900.0           300000.0'], {}),
    'how a curve grows': ('arm64:contexts', ['      37431   15.40'], {}),
    'grace periods': ('arm64:contexts', ['ctx_unload_grace_periods <= 1: missed (2)'], {'ctx_unload_insn': 9000000.0}),
    'entries of a stretch': ('arm64:switch', ['entries, by tasks'], {'readers_10_entries': 12.0}),
    'the stock kernel': ('arm64:switch', ['switch_on_stock_insn <= 160: met (150)'],
                         {'switch_on_stock_insn': 150.0, 'switch_record_stock_insn': 90.0,
                          'switch_idle_stock_insn': 190.0, 'switch_on_insn': 218.0, 'switch_on_stock_ns': None}),
    'lockups': ('arm64:watchdog', ['wdt_latency_missed <= 0: missed (1)', 'wdt_latency_p100 <= 1.05: missed (1.3)'],
                {'wdt_latency_lockups': 3, 'wdt_latency_p0': 1.1, 'wdt_false': 3.0}),
    'what was not measured is said': (f'arm64:{ALL}', ['insn.log: insn of read_raw, read_pmuk_snapshot,'], {}),
    'what no table has is said': (f'arm64:{ALL}', ['in no table: read_surprise_insn'], {}),
    'a remark': (f'arm64:{ALL}', ['# no aux_pmu_begin_end: perf core has'], {}),
    'other parts and machines keep their numbers':
        ('arm64:reads', [], {'rec_pmuk_insn': 46.3, 'x86_read_raw_ns': 7.0, 'read_user_ns': None,
                             'no_longer_ns': None}),
    'x86_64': ('x86_64:reads', ['x86_read_pmuk_local_insn <= 0.3 x x86_read_perf_local_insn: met'],
               {'x86_read_raw_ns': 200.0, 'x86_read_user_ns': None, 'read_user_ns': 1.0}),
    'a machine that never came up': ('arm64:aux', ['insn of aux_begin_end'], {'aux_begin_end_ns': None}),
}

# name: the part that was measured, a plot of it, and words of that plot
PLOTS = {
    'a plot of curves': ('contexts', 'arm64-sets-insn.svg',
                         ['>sets of four in a context<', '>insn<', '> 128<', '>ctx_load: pmuk_load_context()<']),
    'a plot of lockups': ('watchdog', 'arm64-lockups.svg', ['>latency / threshold<', '>pmuk_wdt<', '> 100<']),
}
# A program that is run instead of gnuplot.
BROKEN = '#!/bin/sh\necho "line 7: a command that gnuplot does not know" >&2\nexit 3\n'

# The arguments that vm/bench must refuse, and its messages.
REFUSED = {
    'PART=nothing': "bench: no part 'nothing' (reads records aux switch contexts watchdog x86)\n",
    'PART=x86 ARCH=arm64': 'bench: PART=x86 has nothing to measure on ARCH=arm64\n',
    'ARCH=riscv': "bench: no architecture 'riscv' (arm64, x86_64)\n",
}


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)


def read(path):
    with open(path, encoding='utf-8') as file:
        return json.load(file)


def report(build, what, **variables):
    """The report of these logs."""
    for log, text in (('ns', NS), ('insn', INSN), ('stock', STOCK), ('ours', OURS)):
        write(os.path.join(build, 'bench', what.split(':')[0], log + '.log'), text)
    last = os.path.join(build, 'last.json')
    write(last, json.dumps(LAST))
    write(os.path.join(build, 'bench.json'), json.dumps(KEPT))
    return subprocess.run([sys.executable, os.path.join(VM, 'bench-report'), build, last, what],
                          capture_output=True, text=True, check=False, env={**os.environ, **variables})


def misreported(what, says, numbers):
    """What is wrong in the report of these logs."""
    with tempfile.TemporaryDirectory() as build:
        got = report(build, what)
        if got.returncode or got.stderr:
            return f'status {got.returncode}: {got.stderr}'
        found, lasts = read(os.path.join(build, 'bench.json')), read(os.path.join(build, 'last.json'))
        wrong = [f'not a word of "{text}"' for text in says if text not in got.stdout]
        wrong += [f'{name} is {found.get(name)}' for name, value in numbers.items() if found.get(name) != value]
        wrong += [f'{name} is forgotten' for name in LAST if name not in lasts]
        return '\n'.join(wrong + [got.stdout]) if wrong else ''


def misdrawn(part, plot, words):
    """What is wrong with a plot, which is of this part alone."""
    with tempfile.TemporaryDirectory() as build:
        got = report(build, f'arm64:{part}')
        path = os.path.join(build, 'bench', plot)
        if got.returncode or not os.path.exists(path):
            return f'status {got.returncode}, {os.listdir(os.path.dirname(path))}: {got.stderr}'
        with open(path, encoding='utf-8') as file:
            svg = file.read()
        return '\n'.join(f'no {word} in {plot}' for word in words if word not in svg)


def undrawn():
    """What is wrong with the report when gnuplot fails: it ends with an error, and the numbers are kept."""
    with tempfile.TemporaryDirectory() as build:
        gnuplot = os.path.join(build, 'bin', 'gnuplot')
        write(gnuplot, BROKEN)
        os.chmod(gnuplot, 0o755)
        got = report(build, 'arm64:contexts', PATH=f'{os.path.dirname(gnuplot)}:{os.environ["PATH"]}')
        kept = read(os.path.join(build, 'bench.json'))
        told = got.stderr.startswith('line 7: ') and 'bench-report: gnuplot ended with 3: no ' in got.stderr
        return '' if got.returncode and told and 'ctx_load_insn' in kept else f'status {got.returncode}: {got.stderr}'


def not_refused(words, says):
    got = subprocess.run(['env', '-u', 'PART', '-u', 'ARCH', *words.split(), os.path.join(VM, 'bench')],
                         capture_output=True, text=True, check=False)
    return '' if got.returncode and got.stderr == says else f'status {got.returncode}: {got.stdout}{got.stderr}'


def main():
    wrong = {name: misreported(*case) for name, case in CASES.items()}
    wrong |= {name: misdrawn(*case) for name, case in PLOTS.items()}
    wrong |= {'a plot that gnuplot cannot draw': undrawn()}
    wrong |= {name: not_refused(name, says) for name, says in REFUSED.items()}
    cases = len(wrong)
    wrong = {name: why for name, why in wrong.items() if why}
    for name, why in wrong.items():
        print(f'{name}: {why}')
    print(f'{cases} cases, {len(wrong)} failed')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
