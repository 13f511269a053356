#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Writes a file as pmuk record does, with contents from which tests know what pmuk report prints.

    recording.py FILE [KIND]    KIND: good, overwrite, saturated, or a kind of damage
"""
import struct
import sys

LOST, COMM, EXIT, FORK, SAMPLE, ROUND = 2, 3, 4, 7, 9, 68
EVENT_DESC, ACCOUNT = 12, 255
INVALID, NAMES = 8, 5
EVENTS = ('run', 'wait', 'idle', 'cycles', 'instructions', 'names')
ATTR = struct.pack('=II', 1, 136) + bytes(128)


def record(kind, body, misc=0, size=None):
    return struct.pack('=IHH', kind, misc, 8 + len(body) if size is None else size) + body


def event_id(cpu, event):
    return 0x706d756b00000000 + 5 * cpu + event


def record_id(cpu, number):
    return struct.pack('=IIQIIQ', 0, 0, 0, cpu, 0, number)


def comm(tid, name, pid=None):
    name += bytes(8 - len(name) % 8)
    return record(COMM, struct.pack('=II', pid or tid, tid) + name + record_id(0, NAMES))


def fork(tid, parent, time=0):
    return record(FORK, struct.pack('=IIIIQ', tid, parent, tid, parent, time) + record_id(0, NAMES))


def exit_of(tid, time=0):
    return record(EXIT, struct.pack('=IIIIQ', tid, 1, tid, 1, time) + record_id(0, NAMES))


def lost(cpu, number, event=None):
    event = event_id(cpu, 0) if event is None else event
    return record(LOST, struct.pack('=QQ', event, number) + record_id(cpu, event))


class Cpu:
    """A CPU, whose samples have sums."""

    def __init__(self, cpu):
        self.cpu, self.sums = cpu, [0] * 5

    def switch(self, misc, tid, following, run, wait, *counts, shown=None, event=0, nr=5, raw=12, more=b''):
        self.sums[0 if tid else 2] += run
        self.sums[1] += wait
        for i, count in enumerate(counts):
            self.sums[3 + i] += count
        sums = b''.join(struct.pack('=QQ', s, event_id(self.cpu, i + event))
                        for i, s in enumerate(self.sums))
        return record(SAMPLE, struct.pack('=QIIQIIQQ', event_id(self.cpu, 0), tid, tid, 0, self.cpu, 0,
                                          run if shown is None else shown, nr) + sums +
                      struct.pack('=IIII', raw, following, misc, 0) + more)


def first(last=()):
    """Returns the switches of CPU 0, and one of @last."""
    cpu = Cpu(0)
    return [cpu.switch(*s) for s in (
        (0, 100, 200, 1_000_000, 5000, 2_000_000, 4_000_000),
        (1, 200, 100, 500_000, 7000, 1_000_000, 500_000),
        (2, 100, 0, 3_000_000, 1000, 6_000_000, 8_000_000),
        (0, 0, 200, 250_000, 0, 0, 0), *last)]


def second():
    cpu = Cpu(1)
    return [cpu.switch(2 | INVALID, 200, 0, 100_000, 1, 0, 0),
            cpu.switch(0, 0, 300, 750_000, 0, 0, 0)]


def stat(cpu, seen, lost_there, discarded):
    switches = seen + lost_there + discarded
    return struct.pack('=IIQQQQ', cpu, 0, lost_there, discarded, 4096, switches)


def account(mode=0, version=3, seen=4, lost_there=4, ended=7_500_000_000, cpus=2):
    return struct.pack('=IIQQII', version, mode, 5_000_000_000, ended, cpus, 0) + \
        stat(0, seen, lost_there, 0) + stat(1, 2, 0, 1)


def data(more=b'', last=()):
    """Returns the records of a good file, with one more between them."""
    one, two = first(last), second()
    return b''.join([comm(100, b'cc1'), comm(200, b'old name'), one[0], one[1], two[0], more,
                     record(ROUND, b''), lost(0, 3), *one[2:], two[1], comm(200, b'new "name"'),
                     exit_of(9), lost(1, 7, event=NAMES), lost(0, 1)])


def string(text, size=None):
    text = text.encode()
    text += bytes(64 - len(text) % 64)
    return struct.pack('=I', len(text) if size is None else size) + text


def event_desc(nr=None, ids=2, size=None):
    names = b''.join(ATTR + struct.pack('=I', ids) + string(name, size) + bytes(16)
                     for name in EVENTS)
    return struct.pack('=II', len(EVENTS) if nr is None else nr, len(ATTR)) + names


def whole(records=None, magic=b'PERFILE2', features=None, behind=b'', size=None):
    records = data() if records is None else records
    features = features or {EVENT_DESC: event_desc(), ACCOUNT: account()}
    at = 104 + len(records) + 16 * len(features)
    table = b''
    for feature in sorted(features):
        table += struct.pack('=QQ', at, len(features[feature]))
        at += len(features[feature])
    attrs = b''.join(ATTR + struct.pack('=QQ', at, 0) for _ in EVENTS)
    bits = sum(1 << feature for feature in features)
    header = magic + struct.pack('=QQQQQQQQ', 104, len(ATTR) + 16, at, len(attrs), 104,
                                 len(records) if size is None else size, 0, 0)
    return b''.join([header, bits.to_bytes(32, sys.byteorder), records, table,
                     *(features[feature] for feature in sorted(features)), attrs, behind])


def accounted(last=(), more=b'', **fields):
    """Returns a good file with another account."""
    return whole(data(more, last), features={EVENT_DESC: event_desc(), ACCOUNT: account(**fields)})


def described(**fields):
    """Returns a good file with other descriptions of events."""
    return whole(features={EVENT_DESC: event_desc(**fields), ACCOUNT: account()})


def switched(*switch, **fields):
    """Returns a file with a switch of CPU 1 that is not good."""
    return whole(data(more=Cpu(1).switch(*switch, **fields)))


SWITCH = (0, 100, 200, 1_000_000, 1, 2_000_000, 4_000_000)
KINDS = {
    'good': whole(),
    'fork': accounted(last=[(0, 300, 0, 1, 1, 1, 1)], more=fork(300, 100), seen=5),
    'long_names_of_many': whole(data(more=comm(1, bytes([97]) * 65000) +
                                     b''.join(fork(tid, 1) for tid in range(1000, 9000)))),
    'reused': accounted(last=[(0, 300, 0, 1, 1, 1, 1)], seen=5, more=exit_of(100, 5) + fork(100, 200, 6) +
                        # a CPU's ring may be read later than that of another CPU
                        fork(300, 100, 9) + exit_of(300, 8) +
                        # forks and exits of one task each
                        fork(200, 1, 5) + exit_of(200, 6) + exit_of(200, 7)),
    'own_parent': whole(data(more=fork(100, 100))),
    'overwrite': accounted(mode=1, seen=1004),
    'saturated': accounted(last=[(3, 100, 0, 0xffffffff, 0, 1, 1)], seen=5),
    'long': accounted(mode=2, last=[(3, 100, 0, 5_000_000_000, 6_000_000_000, 1, 1)], seen=5),
    'sum': accounted(seen=5),
    'unreported': accounted(lost_there=5),
    'no_end': whole(size=0),
    'no_data': whole(b''),
    'behind': whole(behind=bytes(8)),
    'cpus': accounted(cpus=3),
    'no_account_of': whole(data(more=Cpu(2).switch(*SWITCH))),
    'lost_of': whole(data(more=lost(2, 1))),
    'ended': accounted(ended=1),
    'mode': accounted(mode=3),
    'version': accounted(version=4),
    'bad_type': whole(data(more=record(11, bytes(8)))),
    'bad_size': whole(data(more=record(ROUND, b'', size=0))),
    'long_record': whole(data(more=record(ROUND, b'', size=0xfff8))),
    'odd_size': whole(data(more=record(EXIT, bytes(4)))),
    'short_switch': whole(data(more=record(SAMPLE, bytes(48)))),
    'long_switch': switched(*SWITCH, more=bytes(8)),
    'bad_class': switched(7, *SWITCH[1:]),
    'other_nr': switched(*SWITCH, nr=4),
    'other_raw': switched(*SWITCH, raw=16),
    'two_lengths': switched(*SWITCH, shown=5),
    'other_event': switched(*SWITCH, event=1),
    'shrinks': whole(data() + first()[0]),
    'short_name': whole(data(more=record(COMM, b''))),
    'short_fork': whole(data(more=record(FORK, bytes(8)))),
    'short_exit': whole(data(more=record(EXIT, bytes(16)))),
    'short_lost': whole(data(more=record(LOST, bytes(8)))),
    'no_events': described(nr=3),
    'many_events': described(nr=7),
    'many_ids': described(ids=1000),
    'long_names': described(size=10_000),
    'others': whole(features={EVENT_DESC: event_desc()}),
    'order': whole(magic=b'2ELIFREP'),
    'no_order': whole(magic=b'PERFFILE'),
    'text': b'hello, this is not a recording at all\n',
    'empty': b'',
}


def main():
    with open(sys.argv[1], 'wb') as file:
        file.write(KINDS[sys.argv[2] if sys.argv[2:] else 'good'])


if __name__ == '__main__':
    main()
