#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests pmuk top and pmuk consumers in a terminal: frames, keys, sizes, and the terminal's state afterwards.

    terminal.py PROGRAM TEST    with PMUK_ROOT set
"""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

PATIENCE = 20


def shown(line, columns):
    """Returns what a line of a terminal shows. Behind the last column, the cursor is still on that column."""
    cells, at = '', 0
    for part in re.findall(r'\x1b\[K|\r|[^\x1b\r]+', line):
        if part == '\x1b[K':
            cells = cells[:min(at, columns - 1)]
        elif part == '\r':
            at = 0
        else:
            cells = cells[:at] + part + cells[at + len(part):]
            at += len(part)
    return cells


class Screen:
    """The part of a terminal that pmuk top needs: cursor home, end of line, and characters."""

    def __init__(self, program, *args, columns=80, lines=24):
        self.columns, self.lines = columns, lines
        self.raw = ''
        wait, go = os.pipe()    # the program, which changes the modes, waits until they are read
        self.pid, self.fd = pty.fork()
        if not self.pid:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack('HHHH', lines, columns, 0, 0))
            os.read(wait, 1)
            os.execv(program, [program, *args])
        self.before = termios.tcgetattr(self.fd)
        os.write(go, b'!')
        os.close(wait)
        os.close(go)
        self.status = None

    def read(self, seconds=0.1):
        if select.select([self.fd], [], [], seconds)[0]:
            try:
                self.raw += os.read(self.fd, 65536).decode('utf-8', 'replace')
            except OSError:
                return False
        return True

    def frame(self):
        """Returns the lines of the latest whole frame."""
        frames = re.findall(r'\x1b\[H((?:(?!\x1b\[H).)*?)\x1b\[J', self.raw, re.S)
        return [shown(line, self.columns) for line in frames[-1].split('\n')] if frames else []

    def wait(self, text, what='frame'):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            self.read()
            where = '\n'.join(self.frame()) if what == 'frame' else self.raw
            if re.search(text, where):
                return
        there = self.frame() or [repr(self.raw)]
        sys.exit(f'{text!r} did not come; there is:\n' + '\n'.join(there))

    def key(self, keys):
        os.write(self.fd, keys.encode())

    def type(self, keys, text):
        """Sends @keys, and waits for a frame that matches @text and fits the screen."""
        self.key(keys)
        self.wait(text)
        self.fits()

    def resize(self, columns, lines):
        self.columns, self.lines = columns, lines
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack('HHHH', lines, columns, 0, 0))

    def fits(self):
        frame = self.frame()
        wide = [line for line in frame if len(line) > self.columns]
        if wide or len(frame) > self.lines:
            sys.exit(f'{len(frame)} lines, too wide: {wide}')

    def exits(self, status):
        """The program exits with @status."""
        deadline = time.monotonic() + PATIENCE
        pid = 0
        while not pid and time.monotonic() < deadline:
            self.read()
            pid, got = os.waitpid(self.pid, os.WNOHANG)
        if not pid:
            sys.exit('it does not end')
        got = os.waitstatus_to_exitcode(got)
        if got != status:
            sys.exit(f'exit status {got}, not {status}')
        self.read()

    def end(self, status):
        """The program exits with @status, and the terminal has its former state."""
        self.exits(status)
        if self.raw.rfind('\x1b[?1049l') < self.raw.rfind('\x1b[?1049h') or \
                '\x1b[?25h' not in self.raw:
            sys.exit('the screen is not given back')
        after = termios.tcgetattr(self.fd)
        if after[3] != self.before[3]:
            sys.exit('the modes of the terminal are not what they were')

    def quit(self):
        self.key('q')
        self.end(0)


def start(program, *args, **size):
    screen = Screen(program, 'top', '-d', '0.5', *args, **size)
    screen.wait('memory: ')
    screen.fits()
    return screen


def test_keys(program):
    screen = start(program)
    for keys, text in (('W', 'by wait'), ('I', 'by ipc'), ('G', 'by ghz'), ('V', 'by voluntary'),
                       ('S', 'by same'), ('O', 'by other'), ('N', 'by id'), ('C', 'by name'),
                       ('P', 'by run'), ('r', 'by run reversed'), ('r', 'by run[^ ]'),
                       ('g', 'TGID '), ('c', 'CGROUP .*PATH'), ('b', 'ALL BELOW'), ('p', '%IDLE'),
                       ('t', 'PID '), ('h', 'this help'), ('x', 'PID '),
                       ('a', 'in all'), ('a', 'in 0ns'),
                       ('j', '(?s)OTHER TASK(?!.*systemd)'), ('k', 'systemd')):
        screen.type(keys, text)
    screen.type('\x1b[B', '(?s)OTHER TASK(?!.*systemd)')
    screen.type('\x1b[A', 'systemd')
    screen.quit()


def test_resize(program):
    screen = start(program)
    screen.resize(120, 30)
    screen.wait('CGROUP')
    screen.fits()
    screen.resize(72, 8)
    screen.wait(r'^[^\n]{0,72}\n')
    time.sleep(0.2)
    screen.type('N', 'by id')
    screen.quit()


def test_wide(program):
    """Columns for which a wider screen has room appear before the next reading."""
    screen = Screen(program, 'top', '-d', '60')
    screen.wait('memory: ')
    screen.resize(120, 30)
    screen.wait('/user.slice')
    screen.quit()


def test_wide_first(program):
    """The first table of a wide screen has the names of cgroups."""
    screen = Screen(program, 'top', '-d', '60', columns=120, lines=30)
    screen.wait('memory: ')
    screen.fits()
    if not re.search('CGROUP(?s:.*)/user.slice', '\n'.join(screen.frame())):
        sys.exit('no names of cgroups:\n' + '\n'.join(screen.frame()))
    screen.quit()


def test_last_column(program):
    """A line that is as wide as the screen shows its last character."""
    screen = Screen(program, 'top', '-d', '60', columns=72)
    screen.wait(r'\n\?: some slice since counting began was not counted, so the number may b\+\n')
    screen.wait(r'\n    200 .* a name \(wi\+\n')
    screen.quit()


def test_fewer(program):
    """A table that becomes shorter than the scroll position is shown from an earlier row."""
    screen = start(program)
    screen.type('jjjj', '(?s)OTHER TASK(?!.*systemd)')
    name = os.environ['PMUK_ROOT'] + '/proc/pmuk_sched/tasks'
    with open(name, 'rb') as tasks:
        lines = [line for line in tasks if not re.match(rb'task [2-9]|task 10|group', line)]
    with open(name + '.new', 'wb') as tasks:
        tasks.writelines(lines)
    os.rename(name + '.new', name)
    screen.wait('systemd')
    screen.quit()


def test_signals(program):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        screen = start(program)
        os.kill(screen.pid, number)
        screen.end(128 + number)


def test_interrupt_key(program):
    screen = start(program)
    screen.key('\x03')
    screen.end(128 + signal.SIGINT)


def test_crash(program):
    screen = start(program)
    os.kill(screen.pid, signal.SIGABRT)
    screen.end(-signal.SIGABRT)


def test_suspend(program):
    screen = start(program)
    screen.key('\x1a')
    screen.wait(r'\x1b\[\?1049l', 'raw')
    _, status = os.waitpid(screen.pid, os.WUNTRACED)
    if not os.WIFSTOPPED(status):
        sys.exit('it does not stop')
    screen.raw = ''
    os.kill(screen.pid, signal.SIGCONT)
    screen.wait('memory: ')
    screen.quit()


def test_times(program):
    screen = start(program, '-n', '2')
    screen.end(0)


def test_once(program):
    """A single table stays on the shell's screen."""
    screen = Screen(program, 'top', '-n', '1')
    screen.exits(0)
    if 'memory: ' not in screen.raw or '\x1b' in screen.raw:
        sys.exit(f'no table stays: {screen.raw!r}')


def test_vanishes(program):
    """When the module is unloaded, pmuk top exits with a message on the shell's screen."""
    screen = start(program)
    os.rename(os.environ['PMUK_ROOT'] + '/sys', os.environ['PMUK_ROOT'] + '/no-sys')
    os.rename(os.environ['PMUK_ROOT'] + '/proc', os.environ['PMUK_ROOT'] + '/no-proc')
    screen.end(1)
    if 'not loaded' not in screen.raw[screen.raw.rfind('\x1b[?1049l'):]:
        sys.exit('no message, or it went with the screen')


def test_consumers(program):
    """Lines that are wider than the terminal take several rows of it."""
    for columns, shown, more in ((120, 9, 21), (80, 4, 26)):
        screen = Screen(program, 'consumers', '-d', '0.2', columns=columns, lines=12)
        screen.wait('and [0-9]+ more; pmuk consumers -b prints all\r\n', 'raw')
        os.kill(screen.pid, signal.SIGTERM)
        os.waitpid(screen.pid, 0)
        table = screen.raw.replace('\r', '').split('\x1b[H\x1b[J')[1].split('\n')
        if not table[0].startswith('CONTEXT ') or not table[-2].startswith(f'and {more} more'):
            sys.exit('\n'.join(table))
        if [line.split()[-2] for line in table[1:-2]] != [f'consumer{n}' for n in range(1, shown + 1)]:
            sys.exit('\n'.join(table))


def main():
    globals()['test_' + sys.argv[2]](sys.argv[1])


if __name__ == '__main__':
    main()
