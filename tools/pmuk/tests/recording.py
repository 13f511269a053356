#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Writes a file as pmuk record does, with contents from which tests know what pmuk report prints.

    recording.py FILE [KIND]    KIND: good, overwrite, saturated, raw, raw_long, or a kind of damage
"""
import struct
import sys

RECORDS, STAT, TASK, END, RAW = 1, 2, 3, 4, 5
SWITCH, LOST = 0x70730001, 2
INVALID, MARK = 8, 16


def header(mode=0, version=2, order=0x01020304, cpus=2):
    names = b''.join(name.ljust(32, b'\0') for name in (b'cycles', b'instructions', b'', b''))
    return struct.pack('=8sIIIIQ', b'PMUKSCHD', order, version, mode, cpus, 5_000_000_000) + names


def block(kind, cpu, data, size=None):
    return struct.pack('=IIQ', kind, cpu, len(data) if size is None else size) + data


def switch(misc, prev, following, run, wait, cycles, instructions, size=48):
    return struct.pack('=IHHQIIIIQQ', SWITCH, misc, size, 0, prev, following, run, wait,
                       cycles, instructions)


def number(n):
    more = []
    while n > 0x7f:
        more.append(n & 0x7f | 0x80)
        n >>= 7
    return bytes(more + [n])


def mark(time, pid, before):
    return struct.pack('<BQIQ', MARK, time, pid, before)


def packet(record):
    """Returns the packet of the same switch as @record."""
    _, misc, _, _, _, following, run, wait, *counts = struct.unpack('=IHHQIIIIQQ', record)
    return bytes([misc]) + b''.join(number(n) for n in (following, run, wait, *counts))


def packets(cpu, data, padding=b'\0'):
    return block(RAW, cpu, data) + padding * (-len(data) % 8)


def lost(number):
    return struct.pack('=IHHQQ', LOST, 0, 24, 0, number)


def stat(cpu, seen, lost_there, discarded, head=4096):
    switches = seen + lost_there + discarded
    return block(STAT, cpu, struct.pack('=QQQQ', lost_there, discarded, head, switches))


def task(pid, name):
    return block(TASK, 0, struct.pack('=I68s', pid, name))


ENDS = block(END, 0, struct.pack('=Q', 7_500_000_000))
FIRST = [switch(0, 100, 200, 1_000_000, 5000, 2_000_000, 4_000_000),
         switch(1, 200, 100, 500_000, 7000, 1_000_000, 500_000),
         switch(2, 100, 0, 3_000_000, 1000, 6_000_000, 8_000_000),
         switch(0, 0, 200, 250_000, 0, 0, 0)]
SECOND = [switch(2 | INVALID, 200, 0, 100_000, 1, 0, 0), switch(0, 0, 300, 750_000, 0, 0, 0)]


def good(mode=0, first=None, overwritten=0):
    first = FIRST if first is None else first
    return [header(mode), task(100, b'cc1'), task(200, b'old name'),
            block(RECORDS, 0, b''.join(first[:2])), block(RECORDS, 1, SECOND[0]),
            block(RECORDS, 0, lost(3) + b''.join(first[2:])), block(RECORDS, 1, SECOND[1]),
            stat(0, len(first) + overwritten, 4, 0), stat(1, 2, 0, 1),
            task(200, b'new "name"'), ENDS]


def raw(first=None, before=0):
    """Returns good() in packets.

    @first: the packets of the first part of CPU 0. The number of the second part's mark is lower
    by @before.
    """
    first = first or mark(5_000, 100, 0) + b''.join(packet(s) for s in FIRST[:2])
    return [header(2), task(100, b'cc1'), task(200, b'old name'), packets(0, first),
            packets(1, mark(7_000, 200, 0) + packet(SECOND[0])),
            packets(0, mark(9_000, 100, 5 - before) + b''.join(packet(s) for s in FIRST[2:])),
            packets(1, packet(SECOND[1])), stat(0, 4, 4, 0), stat(1, 2, 0, 1),
            task(200, b'new "name"'), ENDS]


LONG = packet(FIRST[0])[:3] + number(5_000_000_000) + number(6_000_000_000) + number(1) + number(1)
RAW_BROKEN = {
    'raw_no_mark': raw(first=packet(FIRST[0])),
    'raw_back': raw(before=4),
    'raw_class': raw(first=mark(0, 1, 0) + b'\7' + packet(FIRST[0])[1:]),
    'raw_kind': raw(first=mark(0, 1, 0) + b'\x20' + packet(FIRST[0])[1:]),
    'raw_cut': raw(first=mark(0, 1, 0) + packet(FIRST[0])[:-1]),
    'raw_cut_mark': raw(first=mark(0, 1, 0)[:-1]),
    'raw_pid': raw(first=mark(0, 1, 0) + b'\0' + number(1 << 32) + b'\1' * 4),
    'raw_number': raw(first=mark(0, 1, 0) + b'\0\1' + b'\xff' * 9 + b'\2' + b'\1' * 3),
    'raw_endless': raw(first=mark(0, 1, 0) + b'\0\1' + b'\xff' * 21),
    'raw_padding': raw()[:3] + [packets(0, mark(0, 1, 0), padding=b'\1')] + raw()[3:],
    'raw_in_records': good()[:3] + [packets(0, mark(0, 1, 0))] + good()[3:],
    'raw_records': good(mode=2),
    'raw_late': raw()[:9] + [packets(0, packet(FIRST[0]))] + raw()[9:],
    'raw_half': [header(2, cpus=0), block(RAW, 0, b'')[:8]],
    'raw_no_padding': [header(2), block(RAW, 0, mark(0, 1, 0))],
}


def inserted(part):
    """Returns a good file with @part between its parts."""
    return good()[:3] + [part] + good()[3:]


def headed(**fields):
    """Returns a good file with another header."""
    return [header(**fields)] + good()[1:]


KINDS = RAW_BROKEN | {
    'good': good(),
    'raw': raw(),
    'raw_long': raw(first=mark(5_000, 100, 0) + LONG + packet(FIRST[1])),
    'raw_missing': raw(before=-2),
    'overwrite': good(mode=1, overwritten=1000),
    'saturated': good(first=FIRST + [switch(3, 100, 0, 0xffffffff, 0, 1, 1)]),
    'no_end': good()[:-1],
    'behind': good() + [b'\0' * 8],
    'no_account': good()[:8] + good()[9:],
    'bad_type': inserted(block(9, 0, b'')),
    'bad_size': inserted(block(RECORDS, 0, b'', size=1 << 40)),
    'odd_size': inserted(block(RECORDS, 0, b'\0' * 12)),
    'zero_record': inserted(block(RECORDS, 0, b'\0' * 48)),
    'short_switch': inserted(block(RECORDS, 0, switch(0, 1, 2, 3, 4, 5, 6, size=40)[:40])),
    'bad_class': inserted(block(RECORDS, 0, switch(7, 1, 2, 3, 4, 5, 6))),
    'cpus': headed(cpus=3),
    'version': headed(version=3),
    'old_version': headed(version=1),
    'order': headed(order=0x04030201),
    'no_order': headed(order=0x01020305),
    'mode': headed(mode=3),
    'name': inserted(block(TASK, 0, struct.pack('=I', 1) + b'x' * 68)),
    'sum': good()[:7] + [stat(0, 5, 4, 0)] + good()[8:],
    'text': [b'hello, this is not a recording at all\n'],
    'empty': [],
}


def main():
    with open(sys.argv[1], 'wb') as file:
        file.write(b''.join(KINDS[sys.argv[2] if sys.argv[2:] else 'good']))


if __name__ == '__main__':
    main()
