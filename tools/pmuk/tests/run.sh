#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The tests of pmuk. Fixtures are the kernel's files, and kernel.c simulates its system calls.
#	tests/run.sh DIR [GLOB]		DIR has pmuk and pmuk-test; only tests whose names match
# Prints KTAP. Each test runs both programs; pmuk-test has sanitizers, and tests/kernel.c for the
# tests called kernel_... .
# shellcheck disable=SC2317	# tests are called by name

# A process that was started in the background ignores some signals. Tests need the default actions,
# as from a terminal.
[ "${signals-}" = default ] || signals=default exec env --default-signal "$0" "$@"
unset signals

set -u
here=$(cd "${BASH_SOURCE[0]%/*}" && pwd -P)
out=$(cd "${1:?usage: run.sh DIR [GLOB]}" && pwd -P)
glob=${2:-*}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LC_ALL=C ASAN_OPTIONS=abort_on_error=0:handle_abort=0:handle_segv=0
unset COLUMNS PMUK_TEST
ulimit -f 524288	# KiB, so that a program that never ends does not fill the disk

# ---- words for tests ----

broken() { echo "$*"; exit 1; }

# root NAME: makes PMUK_ROOT a writable copy of fixture NAME
root()
{
	rm -rf "$work/root"
	cp -r "$here/fixtures/$1" "$work/root"
	export PMUK_ROOT=$work/root
}

# file NAME: prints the path of a file of /proc/pmuk_sched
file() { echo "$PMUK_ROOT/proc/pmuk_sched/$1"; }

# says TEXT COMMAND...: COMMAND succeeds, and its output matches TEXT
says()
{
	local text=$1 said
	shift
	said=$("$@" 2>&1) || broken "$* ended with $?: $said"
	grep -qE -- "$text" <<<"$said" || broken "no '$text' in what $* says: $said"
}

# refuses STATUS TEXT COMMAND...: COMMAND exits with STATUS, and prints one line, which matches TEXT
refuses()
{
	local wanted=$1 text=$2 said status=0
	shift 2
	said=$("$@" 2>&1 >/dev/null) || status=$?
	[ "$status" -eq "$wanted" ] || broken "$* ended with $status, not $wanted: $said"
	[ "$(wc -l <<<"$said")" -eq 1 ] || broken "$* says more than one line: $said"
	grep -qE -- "$text" <<<"$said" || broken "no '$text' in what $* says: $said"
}

# ends STATUS COMMAND...: COMMAND exits with STATUS
ends()
{
	local wanted=$1 status=0
	shift
	"$@" || status=$?
	[ "$status" -eq "$wanted" ] || broken "$* ended with $status, not $wanted"
}

# json EXPRESSION: EXPRESSION is true in Python, where j is the object on standard input, or a list
# of the objects if there are many lines
json()
{
	python3 -c '
import json, sys
j = [json.loads(line) for line in sys.stdin]
j = j[0] if len(j) == 1 else j
if not eval("(" + sys.argv[1] + ")"):
    sys.exit(f"{sys.argv[1]} is not so: {json.dumps(j)}")
' "$1"
}

# order COLUMN WORDS...: that column of the table on standard input has these words, from top to
# bottom
order()
{
	local column=$1 got
	got=$(awk -v column="$column" '/^ *(PID|TGID|CGROUP|CPU) / { on = 1; next } /^$/ { on = 0 }
		on { print $column }' | tr '\n' ' ')
	[ "$got" = "${*:2} " ] || broken "the order is '$got', not '${*:2}'"
}

# report ARG..., record ARG...: run pmuk with the recording $work/data
report() { "$pmuk" report -i "$work/data" "$@"; }
record() { "$pmuk" record -o "$work/data" "$@"; }

# waits COMMAND...: waits until COMMAND succeeds, at most half a minute
waits()
{
	local i
	for ((i = 0; i < 300; i++)); do
		! "$@" || return 0
		sleep 0.1
	done
	return 1
}

narrow()
{
	local wide
	wide=$(awk -v most="$1" 'length > most') || true
	[ -z "$wide" ] || broken "wider than $1: $wide"
}

# ---- what is there, and what is not ----

test_no_module() { root first; rm -r "$PMUK_ROOT/sys" "$PMUK_ROOT/proc"
	local what
	for what in top hist info export record events reset enable; do
		refuses 1 'not loaded. As root: modprobe pmuk_sched' "$pmuk" $what
	done
	refuses 125 'not loaded. As root: modprobe' "$pmuk" stat -- true
}

test_no_proc() { root first; rm "$(file cpus)" "$(file tasks)"
	refuses 1 'is missing, though .* loaded' "$pmuk" top
}

test_off() { root off
	local what
	for what in top hist record; do refuses 1 'does not count now. As root: pmuk enable' \
		"$pmuk" $what; done
	refuses 125 'does not count now' "$pmuk" stat -- true
	says 'not counting' "$pmuk" info
	"$pmuk" info --json | json "j == {'counting': False}"
}

test_version() { root first; sed -i '1s/2/1/' "$(file tasks)" "$(file cpus)"
	refuses 1 "version '1', and this pmuk knows version 2" "$pmuk" top
	refuses 1 "version '1'" "$pmuk" info
}

# Each expression of sed breaks a line of the file.
test_malformed() {
	local broken_line
	for broken_line in '2s/on/yes/' '3s/[0-9]/x/' '4s/1/99/' '5s/events/event/' '5s/$/ a b c d/' \
			'7s/128 //' '7s/$/ 7/' '8d' '9s/cpu/cup/' '9s/ 4000000000/ -4/' \
			'9s/ 1 8/ 2 8/' \
			'9s/$/ 5/' '9s/ [0-9]*$//' '9s/4000000000/99999999999999999999999/' \
			'9s/300000000/--/'; do
		root first
		sed -i "$broken_line" "$(file cpus)"
		refuses 1 '/proc/pmuk_sched/cpus:[0-9]+: expected ' "$pmuk" info
	done
	root first
	printf %s "$(cat "$(file tasks)")" >"$work/cut"
	mv "$work/cut" "$(file tasks)"
	refuses 1 'tasks:[0-9]+: expected the end of a line' "$pmuk" top
	root first
	: >"$(file cpus)"
	refuses 1 'cpus:0: expected pmuk_sched' "$pmuk" info
	root first
	sed -i 's/^exited.*/cgroup 1/' "$(file tasks)"
	refuses 1 'a line that belongs here' "$pmuk" top
}

test_usage() { root first
	local args
	"$pmuk" --help >/dev/null || broken 'no help'
	for args in top stat hist record report export info room consumers events reset enable disable; do
		says 'usage: pmuk' "$pmuk" $args --help
	done
	for args in nothing 'top -y' 'top more' 'stat' 'stat -o' 'hist wait more' 'report more' \
		'export more' 'reset more'; do
		# shellcheck disable=SC2086	# words on purpose
		ends 2 "$pmuk" $args >/dev/null 2>"$work/said"
	done
	says "'more' is one argument too many" ends 2 "$pmuk" reset more
	refuses 1 "there is no histogram 'help'" "$pmuk" hist help
	for args in '' ',' ',,'; do refuses 1 "^pmuk: -p: .* not '$args'$" "$pmuk" top -p "$args"; done
	for args in 'top -s size' 'top -v files' 'top -d 0' 'top -d x' 'top -n 0' 'top -n -1' \
		'top -w 20' 'top -p 1,x' \
			'hist lost' 'hist -c x' 'hist -c 7' 'export --depth x' 'record -m 3' \
			'record -m 0' 'record -t 5 true'; do
		# shellcheck disable=SC2086
		refuses 1 'pmuk: ' "$pmuk" $args
	done
}

test_root_too_long() {
	PMUK_ROOT=$(printf '/%05000d' 0) refuses 1 'PMUK_ROOT is too long' "$pmuk" info
}

test_full_disk() { root first
	[ -c /dev/full ] || return 0
	local args
	for args in export --help help 'export --help'; do
		# shellcheck disable=SC2086	# words on purpose
		ends 1 "$pmuk" $args 2>"$work/said" >/dev/full
		grep -q 'cannot write to standard output: No space' "$work/said" || broken "$args"
	done
}

# ---- top ----

test_top_width() { root second
	local view
	for view in tasks groups cgroups subtrees cpus; do "$pmuk" top -v $view | narrow 80 ||
		exit 1; done
	"$pmuk" top -w 70 | narrow 80	# lines above and below the table are not cut to 70
	"$pmuk" top -w 140 | narrow 140
	"$pmuk" top -w 140 | grep -q '/user.slice'
	"$pmuk" top -w 0 -v cgroups | grep -q '/user.slice/quo"te\\back/deep/deeper$'
}

test_top_sort() { root second
	"$pmuk" top | order 1 100 200 1 500 400 401
	"$pmuk" top -r | order 1 401 400 500 1 200 100
	"$pmuk" top -s wait | order 1 200 100 500 1 400 401
	"$pmuk" top -s ipc | order 1 400 100 1 200 500 401
	"$pmuk" top -s voluntary | order 1 200 100 1 400 500 401
	"$pmuk" top -s same | order 1 100 200 500 400 1 401
	"$pmuk" top -s other | order 1 100 200 500 1 400 401
	"$pmuk" top -s id | order 1 1 100 200 400 401 500
	"$pmuk" top -s name | order 1 401 200 100 500 400 1
	"$pmuk" top -s ghz -v cpus | order 1 0 1
	root first
	"$pmuk" top -s wait | tail -8 | grep -q '    201 '	# an unknown wait comes last
	"$pmuk" top -s wait -r | order 1 401 1 400 300 100 200 201
}

test_top_views() { root first
	"$pmuk" top -v groups | order 1 200 100 1 300 400 401
	"$pmuk" top -v cgroups | order 1 300 200 1 301 302 303
	"$pmuk" top -v subtrees | order 1 1 300 200 301 302 303
	"$pmuk" top -v cpus | order 1 0 1
	"$pmuk" top -p 200 | order 1 200 201
	"$pmuk" top -l 2 | order 1 100 200
}

# The kernel lists all possible CPUs. A CPU that was offline all the time of a table is not counted.
test_top_machine() { copy before first; copy after second; root first
	local fixture
	says '^2 CPUs: 30\.0% busy, wait 400ms, IPC 1\.17\?, 2\.00\? GHz, 15\.3k switches$' \
		"$pmuk" top
	printf '%s\n' 'cpu 2 0 0 0 0 0 1 0 0' 'idle 2 0 0 0 0' 'irq 2 0 0' >>"$(file cpus)"
	says '^2 CPUs: 30\.0% busy' "$pmuk" top
	for fixture in before after; do
		printf '%s\n' 'cpu 2 4000000000 0 1 0 0 1 0 0' 'idle 2 8000000000 1 0 0' 'irq 2 0 0' \
			>>"$work/$fixture/proc/pmuk_sched/cpus"
	done
	tables before after >"$work/said"
	says '^3 CPUs: 33\.3% busy' cat "$work/said"
	says '^2 CPUs: 62\.5% busy' cat "$work/said"
}

test_top_marks() { root first
	says '^    200 .* 0\.50\? 2\.00\? ' "$pmuk" top
	says '^\?: some slice since counting began was not counted, so ' "$pmuk" top
	says '^    201 .*  500ms +- +1\.50 ' "$pmuk" top
	says '^    400 .* - +- +500 ' "$pmuk" top
	says '^-: ' "$pmuk" top
	says '^memory: 128 bytes per task \(7 tasks\), 4096 per CPU' "$pmuk" top
	root second
	says '^3 slices of tasks for which there was no memory' "$pmuk" top
	root events
	says '^missing: cache-misses \(No such file or directory\), bus-cycles \(' "$pmuk" top
	says ' 1\.23M +89 ' "$pmuk" top -v cpus -w 100
	root none
	says '^missing: cycles ' "$pmuk" top
	root reset
	"$pmuk" top | grep -q '?:' && broken 'a mark is explained that is nowhere'
	return 0
}

test_top_escapes() { root first
	"$pmuk" top | grep -q $'\x1b' && broken 'the terminal gets what a task is called'
	"$pmuk" top | grep -q '?\[31mred'
}

# copy NAME FIXTURE: makes a copy of FIXTURE for deltas, which the test may change
copy() { cp -r "$here/fixtures/$2" "$work/$1"; }

# serve NAME FILE: FILE is a pipe. The next process that opens FILE reads the contents that fixture
# NAME has for it. Before that process sees the end of the file, another pipe takes the place of
# FILE, for the next serve.
serve()
{
	local fixtures=$here/fixtures
	[ ! -d "$work/$1" ] || fixtures=$work
	exec 9>"$(file "$2")"
	mkfifo "$work/next"
	mv "$work/next" "$(file "$2")"
	cat "$fixtures/$1/proc/pmuk_sched/$2" >&9
	exec 9>&-
}

# tables FIRST SECOND ARGS...: prints two tables of pmuk top, whose readings are of fixtures FIRST
# and SECOND. A reading reads the view's file, then cpus; each waits for its fixture.
tables()
{
	local view=tasks file server
	[[ " $* " != *' cpus '* ]] || view=cpus
	root first
	for file in tasks cpus; do
		rm "$(file $file)"
		mkfifo "$(file $file)"
	done
	for file in "$1" "$2"; do serve "$file" $view; serve "$file" cpus; done &
	server=$!
	"$pmuk" top -n 2 -d 0.1 "${@:3}"
	kill $server 2>/dev/null || true
}

# deltas FIRST SECOND ARGS...: prints the JSON of the second table
deltas() { tables "$@" --json | sed 1d; }

test_top_delta() {
	deltas first second >"$work/json"
	json "j['interval_ns'] == 2000000000 and not j['since_beginning'] and j['gone'] == 2" \
		<"$work/json"
	deltas first second -p 200 | json "j['gone'] == 1"
	deltas first second -p 100,300 -v groups | json "j['gone'] == 1"
	deltas first second -p 100 | json "j['gone'] == 0"
	json "{r['pid']: r['run_ns'] for r in j['rows']}
		== {100: 1500000000, 500: 250000000, 200: 200000000,
		1: 100000000, 400: 50000000, 401: 0}" <"$work/json"
	json "[r['voluntary'] for r in j['rows'] if r['pid'] == 100] == [500]" <"$work/json"
	json "[(r['counts'], r['ipc'], r['ghz']) for r in j['rows'] if r['pid'] == 100] ==
		[({'cycles': 3000000000, 'instructions': 6000000000}, 2, 2)]" <"$work/json"
	json "[r['valid'] for r in j['rows'] if r['pid'] == 200] == [False]" <"$work/json"
	deltas first second -v cpus | json "[(r['cpu'], r['idle_ns'], r['irq_ns'])
		for r in j['rows']] ==
		[(1, 400000000, 40000000), (0, 900000000, 80000000)]"
	deltas first second -v groups | json "[r['run_ns'] for r in j['rows'] if r['tgid'] == 200]
		== [200000000]"
	deltas first second -a | json "j['since_beginning'] and j['interval_ns'] == 12000000000"
}

# A task counts in 32 bits how often it has left a CPU. These counts wrap, and sums of them drop by
# 2^32.
test_top_wraps() { copy before first; copy after second
	sed -i '/^task 100 /s/ 3000 / 4294967290 /; /^group /s/ 6100 / 12884901000 /' \
		"$work/before/proc/pmuk_sched/tasks"
	sed -i '/^task 100 /s/ 3500 / 10 /; /^group /s/ 6300 / 8589934592 /' \
		"$work/after/proc/pmuk_sched/tasks"
	sed -i '/^idle 0 /s/ 9000 / 4294967290 /' "$work/before/proc/pmuk_sched/cpus"
	sed -i '/^idle 0 /s/ 10000 / 10 /' "$work/after/proc/pmuk_sched/cpus"
	deltas before after -p 100 | json "[(r['run_ns'], r['voluntary']) for r in j['rows']]
		== [(1500000000, 16)]"
	deltas before after -v groups -p 200 | json "[(r['run_ns'], r['voluntary'])
		for r in j['rows']] == [(200000000, 888)]"
	deltas before after -v cpus | json "[r['idle_ns'] for r in j['rows'] if r['cpu'] == 0]
		== [900000000]"
}

# A process has a line as a group only when it has a thread. The totals of that line include those
# that the task had before.
test_top_threads() { copy before first; copy after second
	sed -i '/^group /i group 100 2 300 3700000000 160000000 3600 370 155 1 7400000000 15000000000 cc1' \
		"$work/after/proc/pmuk_sched/tasks"
	deltas before after -v groups -p 100 | json "[(r['threads'], r['run_ns'])
		for r in j['rows']] == [(2, 1700000000)]"
}

test_top_reset() {
	deltas first reset | json "j['since_beginning'] and j['interval_ns'] == 500000000 and
		[r['run_ns'] for r in j['rows']] == [9000000]"
}

test_top_json() { root first
	"$pmuk" top --json | python3 -m json.tool >/dev/null
	"$pmuk" top --json | json "[r['wait_ns'] for r in j['rows'] if r['pid'] == 201] == [None]"
	"$pmuk" top --json | json "[r['cgroup_path'] for r in j['rows'] if r['pid'] == 200]
		== ['/system.slice']"
	"$pmuk" top --json | json "[r['name'] for r in j['rows'] if r['pid'] == 401]
		== [chr(27) + '[31mred']"
	"$pmuk" top --json -v cgroups | json \
		"'/user.slice/quo\"te' + chr(92) + 'back' in [r['path'] for r in j['rows']]"
	printf 'task 9 9 1 9 9 9 9 9 1 9 9 \xff\xc3\xa9\xe2\x82\n' >>"$(file tasks)"
	"$pmuk" top --json | json "[r['name'] for r in j['rows'] if r['pid'] == 9]
		== ['\ufffd\u00e9\ufffd\ufffd']"
	printf 'task 8 8 1 8 8 8 8 8 1 8 8 a\\134b\\012c\\9\n' >>"$(file tasks)"
	"$pmuk" top --json | json "[r['name'] for r in j['rows'] if r['pid'] == 8]
		== ['a' + chr(92) + 'b' + chr(10) + 'c' + chr(92) + '9']"
	says ' a\\b\?c\\9$' "$pmuk" top
	root events
	"$pmuk" top --json | json "j['rows'][0]['counts']
		== {'cycles': 1200000000, 'instructions': 900000000,
		'cache-references': 4444, 'r1b': 55555}"
	root none
	"$pmuk" top --json | json "j['rows'][0]['counts'] == {} and j['rows'][0]['ipc'] is None"
}

test_top_many() { root first
	awk 'BEGIN { for (i = 1000; i < 31000; i++) print "task", i, i, 1, i * 1000, 5, 1, 1, 1, 1, 5, 5, "t" i }' >>"$(file tasks)"
	"$pmuk" top --json | json "len(j['rows']) == 30007"
	"$pmuk" top -l 1 | order 1 100
}

terminal() { root first; "$here/terminal.py" "$pmuk" "$1"; }
# pmuk top takes a twentieth of a CPU, however much there is to read and however short the delay is.
# The limit here is higher, because the start and the last table, which no delay follows, are
# measured, too.
test_top_share() { root first
	local n
	for n in $(seq 1000 15999); do
		echo "task $n $n 1 4000000000 300000000 9000 700 300 1 8000000000 12000000000 sleeper"
	done >>"$(file tasks)"
	python3 - "$pmuk" <<'END' || broken "more than a twentieth of a CPU"
import resource, subprocess, sys, time

def children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime

# python3 may be a wrapper script, and then the script's children are counted among this process's
# children
begin, before = time.monotonic(), children()
subprocess.run([sys.argv[1], 'top', '-b', '-l', '5', '-d', '0.1', '-n', '16'], check=True, stdout=subprocess.DEVNULL)
passed = time.monotonic() - begin
used = children() - before
print(f'# {used:.3f} s of CPU time in {passed:.3f} s')
sys.exit(used > passed * 0.06)
END
}
test_terminal_keys() { terminal keys; }
test_terminal_resize() { terminal resize; }
test_terminal_wide() { terminal wide; }
test_terminal_wide_first() { terminal wide_first; }
test_terminal_last_column() { terminal last_column; }
test_terminal_fewer() { terminal fewer; }
test_terminal_signals() { terminal signals; }
test_terminal_interrupt_key() { terminal interrupt_key; }
test_terminal_crash() { terminal crash; }
test_terminal_suspend() { terminal suspend; }
test_terminal_times() { terminal times; }
test_terminal_once() { terminal once; }
test_terminal_vanishes() { terminal vanishes; }

# ---- hist, info, export, events ----

test_hist_bars() { root first
	"$pmuk" hist | narrow 80
	says '^wait: time that tasks waited for a CPU, 3274$' "$pmuk" hist wait
	says '^  4\.10us \.\. 8\.19us +1800  55\.0% #{40}$' "$pmuk" hist wait
	says '^  2\.05us \.\. 4\.10us +800  24\.4% #{18}$' "$pmuk" hist wait
	says '^     0ns \.\. 1ns +10   0\.3% \.$' "$pmuk" hist wait
	says '^  50% < 8\.19us  90% < 16\.4us  99% < 16\.4us$' "$pmuk" hist wait
	says '^    275s \.\. more +1 ' "$pmuk" hist -c 0 slice
	says '^       1 \.\. 2 +3000 ' "$pmuk" hist ipc
	says '^wait: .*, CPU 1, 1647$' "$pmuk" hist -c 1
	[ "$("$pmuk" hist | grep -cE '^(wait|slice|ipc): ')" -eq 3 ] || broken 'not all three'
	says '^ipc: instructions per cycle of run slices, ' "$pmuk" hist ipc
	sed -i '/^events/s/instructions/cache-misses/' "$(file hist)"
	says '^ipc: cache-misses per cycles of run slices, ' "$pmuk" hist ipc
	"$pmuk" hist --json ipc | json "j['ipc']['unit'] == 'cache-misses/cycles'"
	root events
	says '^    nothing$' "$pmuk" hist slice
	says '^ipc: .*, CPU 0, -$' "$pmuk" hist -c 0
	says '^    not counted, or not known to this kernel$' "$pmuk" hist wait
	"$pmuk" hist -c 0 --json | json "j['wait'] is None and j['ipc'] is None
		and j['slice']['count'] == 0"
}

test_hist_json() { root first
	"$pmuk" hist --json | json "j['wait']['count'] == 3274 and len(j['wait']['buckets']) == 40
		and j['cpu'] is None"
	"$pmuk" hist --json -c 0 wait | json "sum(b['count'] for b in j['wait']['buckets'])
		== 1627 and 'ipc' not in j"
	"$pmuk" hist --json ipc | json "j['ipc']['buckets'][9]
		== {'from': 1, 'below': 2, 'count': 3000}"
	"$pmuk" hist --json ipc | json "j['ipc']['buckets'][15]['below'] is None"
	"$pmuk" hist --json slice | json "j['slice']['buckets'][1]
		== {'from': 1, 'below': 2, 'count': 0}"
}

test_hist_delta() { root first
	local file server
	rm "$(file hist)"
	mkfifo "$(file hist)"
	for file in first second; do serve $file hist; done &
	server=$!
	"$pmuk" hist -d 0.1 --json wait | json "j['interval_ns'] == 2000000000
		and j['wait']['count'] == 100"
	kill $server 2>/dev/null || true
}

test_info() { root first
	says '^memory: 128 bytes per task \(7 tasks\), 4096 per CPU, 65536 for the table$' "$pmuk" \
		info
	says '^in all: 74624 bytes with 2 CPUs$' "$pmuk" info
	"$pmuk" info --json | json "j['memory'] == {'bytes_per_task': 128, 'bytes_per_cpu': 4096,
		'bytes_of_table': 65536, 'tasks': 7, 'cpus': 2} and j['events'] == ['cycles', \
			'instructions']"
}

# room TEXT: the kernel's file has TEXT
room()
{
	mkdir -p "$PMUK_ROOT/sys/kernel/debug/pmuk"
	printf %b "$1" >"$PMUK_ROOT/sys/kernel/debug/pmuk/room"
}

test_room() { root none
	refuses 1 'Is debugfs mounted, and the module pmu_kapi loaded' "$pmuk" room
	room 'cpu 0 cycles 3\n  context 2 name pmuk_wdt rank critical set 0 counters 1 pinned 1\n'\
'  context 5 name mine rank normal set 7 counters 4 pinned 0\n  waits 6 name low rank background\n'\
'  reserves 7 name later rank normal counters 2 lent 0\n  reserves 8 name idle rank critical counters 3 lent 1\ncpu 1 cycles 6\ncpu 2 errno 2\n'
	says '^  0            3  pmuk_wdt\[2\]:1:critical mine\[5\]:4 low\[6\]:0:background:waits later\[7\]:2:reserves idle\[8\]:3:critical:reserves:1 lent$' "$pmuk" room
	says '^  1            6 $' "$pmuk" room
	says '^  2            -  \(No such file or directory\)$' "$pmuk" room
	[ "$("$pmuk" room | wc -l)" -eq 4 ] || broken 'not four lines'
	"$pmuk" room --json | json "[c['cycles_left'] for c in j['cpus']] == [3, 6, None] and \
		j['cpus'][0]['holders'][1] == {'name': 'mine', 'context': 5, \
		'rank': 'normal', 'state': 'counts', 'set': 7, 'counters': 4, 'pinned': 0, 'lent': 0} and \
		j['cpus'][0]['holders'][2] == {'name': 'low', 'context': 6, 'rank': 'background', \
		'state': 'waits', 'set': None, 'counters': 0, 'pinned': 0, 'lent': 0} and \
		[(h['state'], h['set'], h['counters'], h['lent']) for h in j['cpus'][0]['holders'][3:]] == \
		[('reserves', None, 2, 0), ('reserves', None, 3, 1)] and j['cpus'][1]['holders'] == [] and \
		j['cpus'][2]['error'] == 'No such file or directory' and 'error' not in j['cpus'][0]"
	room ''
	"$pmuk" room --json | json "j == {'cpus': []}"
	local text
	for text in 'cpu 0 cycles x\n' 'cpu 0 instructions 1\n' 'cpu\n' 'cpu 0 cycles 1\n  nothing\n' \
		'cpu 0 cycles 1\n  reserves 2 name x rank normal counters 1\n' \
		'cpu 0 cycles 1\n  eats 2 name x rank normal counters 1\n' \
		'  context 2 name early rank normal set 0 counters 1 pinned 1\n'; do
		room "$text"
		refuses 1 'is not understood. Do pmuk and the module match' "$pmuk" room
	done
}

# contexts TEXT: the kernel's file has TEXT
contexts()
{
	mkdir -p "$PMUK_ROOT/sys/kernel/debug/pmuk"
	printf %b "$1" >"$PMUK_ROOT/sys/kernel/debug/pmuk/contexts"
}

# between BEFORE AFTER COMMAND...: the kernel's file has BEFORE at the first reading of COMMAND, and
# AFTER from the second on. COMMAND reads contexts first, and then measure, which is a pipe here.
between()
{
	local pipe=$PMUK_ROOT/sys/kernel/debug/pmuk/measure after=$2 status=0 writer
	contexts "$1"
	rm -f "$pipe"
	mkfifo "$pipe"
	shift 2
	{
		trap '' PIPE
		exec 8>"$pipe"
		contexts "$after"
		printf '1\n' >&8
		exec 8>&-
		while sleep 0.02; do printf '1\n' >"$pipe"; done
	} &
	writer=$!
	timeout 60 "$@" || status=$?
	kill "$writer"
	wait "$writer" 2>/dev/null || true
	return $status
}

# cpu_line CPU OVERFLOWS NS LIMITED READS [RECORDS]: without RECORDS, the format is not perf's
cpu_line() { printf '  instance cpu %s live set 0 overflows %s overflow_ns %s limited %s reads %s%s switches 0 %s\\n' "$1" \
	"$2" "$3" "$4" "$5" "${6:+ records $6}" 'switch_ns 0 switch_max_ns 0 late_max_ns 0'; }
# buffer_line CPU HEAD LOST [DISCARDED]
buffer_line() { printf '  buffer cpu %s pages 1 head %s tail 0 consumed 0 lost %s discarded %s overwritten 0 wakeups 0\\n' "$1" \
	"$2" "$3" "${4-0}"; }
aux_line='  aux cpu 0 pages 1 head 0 tail 0 truncated 0 truncations 0 full 0 nested 0 discarded 9 wakeups 0\n'

test_consumers() { root none
	refuses 1 'Is debugfs mounted, and the module pmu_kapi loaded' "$pmuk" consumers -n 1
	local one='context 3 name counters rank critical format perf target cpus running sets 1 counters 4 messages 9 limit_ns 500\n'
	local two='context 5 name mine exported rank normal format mine target task running sets 1 counters 2 messages 0 task 77\n'
	local before after
	before=$one$(cpu_line 0 10 1000 0 7 8)$(buffer_line 0 100 1)$(cpu_line 2 20 2000 1 7 20)
	after=$one$(cpu_line 0 30 9000 2 8 25)$(buffer_line 0 4100 4 2)$aux_line$(cpu_line 2 5 500 1 9 4)
	before=$before$two$(cpu_line -1 1 10 0 0)$(buffer_line 0 8 0)$(buffer_line 1 8 0)
	after=$after$two$(cpu_line -1 4 10 0 0)$(buffer_line 0 16 0)$(buffer_line 1 32 1)
	between "$before" "$after" "$pmuk" consumers -n 1 -d 0.1 --json | json "j['measured'] and j['interval_ns'] > 0 and \
		j['consumers'] == [{'context': 3, 'name': 'counters', 'exported': False, 'rank': 'critical', 'counters': 4, \
		'limit_ns': 500, 'overflows': 25, 'overflow_ns': 8500, 'records': 21, 'bytes': 4000, 'lost': 5, \
		'reads': 3, 'limited': 2}, {'context': 5, 'name': 'mine', 'exported': True, 'rank': 'normal', 'counters': 2, \
		'limit_ns': None, 'overflows': 3, 'overflow_ns': 0, 'records': None, 'bytes': 32, 'lost': 1, 'reads': 0, \
		'limited': 0}]"
	between "$before" "$after" "$pmuk" consumers -c -n 1 -d 0.1 --json | json "[(c['cpu'], c['overflows']) for c in \
		j['consumers']] == [(0, 20), (2, 5), (None, 3)]"
	rm "$PMUK_ROOT/sys/kernel/debug/pmuk/measure"
	printf '0\n' >"$PMUK_ROOT/sys/kernel/debug/pmuk/measure"
	says '^      5  normal            2           0       -         -        0       0       -        0  mine \(exported\)$' \
		"$pmuk" consumers -n 1 -d 0.1
	says '^      3  critical          4     2           0     0.0         0        0       0       -        0  counters$' \
		"$pmuk" consumers -cn 1 -d 0.1
	says '^      3  critical          4           0     0.0         0        0       0       -        0  counters$' \
		"$pmuk" consumers -n 1 -d 0.1
	[ "$("$pmuk" consumers -n 2 -d 0.1 | grep -c '^CONTEXT')" -eq 2 ] || broken 'not two tables'
	"$pmuk" consumers -m -n 1 -d 0.1 --json | json "j['measured'] and j['consumers'][0]['reads'] == 0"
	[ "$(cat "$PMUK_ROOT/sys/kernel/debug/pmuk/measure")" = 0 ] || broken 'the kernel still measures'
	printf '1\n' >"$PMUK_ROOT/sys/kernel/debug/pmuk/measure"
	"$pmuk" consumers -m -n 1 -d 0.1 >/dev/null || broken 'does not end well'
	[ "$(cat "$PMUK_ROOT/sys/kernel/debug/pmuk/measure")" = 1 ] || broken 'no longer measures, as somebody else wants'
	printf '0\n' >"$PMUK_ROOT/sys/kernel/debug/pmuk/measure"
	timeout --preserve-status 60 "$pmuk" consumers -m >/dev/null &
	waits grep -qx 1 "$PMUK_ROOT/sys/kernel/debug/pmuk/measure" || broken 'does not measure'
	kill -TERM $!
	ends 143 wait $!
	[ "$(cat "$PMUK_ROOT/sys/kernel/debug/pmuk/measure")" = 0 ] || broken 'measured on after SIGTERM'
	{ "$pmuk" consumers -m -d 0.1 2>"$work/said" || true; } | head -n 1 >"$work/head"
	[ "$(cat "$PMUK_ROOT/sys/kernel/debug/pmuk/measure")" = 0 ] || broken 'measured on after SIGPIPE'
	contexts ''
	"$pmuk" consumers -n 1 -d 0.1 --json | json "j['consumers'] == []"
	local text
	contexts 'context 7 name exported rank normal format perf target none stopped sets 1 counters 0 messages 0\n'
	"$pmuk" consumers -n 1 -d 0.1 --json | json "j['consumers'] == []"
	# what is exported can be recorded as soon as it is loaded
	text='context 7 name idle exported rank normal format perf target none stopped sets 1 counters 2 messages 0\n'
	contexts "$text$one$(cpu_line 0 10 1000 0 7 8)${text//7/8}"
	"$pmuk" consumers -n 1 -d 0.1 --json | json "[(c['context'], c['name'], c['exported'], c['counters'], c['overflows']) \
		for c in j['consumers']] == [(7, 'idle', True, 2, 0), (3, 'counters', False, 4, 0), (8, 'idle', True, 2, 0)]"
	"$pmuk" consumers -c -n 1 -d 0.1 --json | json "[c['cpu'] for c in j['consumers']] == [None, 0, None]"
	for text in 'context\n' '  instance cpu 0 live\n' "${one}what\n"; do
		contexts "$text"
		refuses 1 'is not understood. Do pmuk and the module match' "$pmuk" consumers -n 1
	done
}

# A terminal shows the head, and as many consumers as it has room for.
test_terminal_consumers() { root none
	local i text=
	for i in {1..30}; do
		text+="context $i name consumer$i exported rank normal format perf target cpus stopped sets 1 counters 2 messages 0\n"
	done
	contexts "$text"
	printf '0\n' >"$PMUK_ROOT/sys/kernel/debug/pmuk/measure"
	"$here/terminal.py" "$pmuk" consumers
}

test_openmetrics() {
	local fixture
	for fixture in first second reset events none off; do
		root $fixture
		"$pmuk" export >"$work/prom"
		"$here/openmetrics.py" <"$work/prom" >"$work/count" || broken \
			"$fixture is not OpenMetrics"
	done
	root first
	"$pmuk" export --tasks --depth 9 >"$work/prom"
	[ "$("$here/openmetrics.py" <"$work/prom")" = '31 254' ] || broken \
		"$("$here/openmetrics.py" <"$work/prom") families, samples"
	says '^pmuk_sched_cpu_run_seconds_total\{cpu="1"\} 2\.000000000$' cat "$work/prom"
	says '^pmuk_sched_cgroup_events_total\{cgroup="/user.slice/quo\\"te\\\\back",event="cycles"\} 800000000$' cat "$work/prom"
	says '^pmuk_sched_cgroup_events_complete\{cgroup="/system.slice"\} 0$' cat "$work/prom"
	says '^pmuk_sched_wait_seconds_bucket\{cpu="0",le="0\.000004095"\} 425$' cat "$work/prom"
	says '^pmuk_sched_wait_seconds_bucket\{cpu="0",le="0\.0"\} 5$' cat "$work/prom"
	says '^pmuk_sched_slice_seconds_bucket\{cpu="0",le="\+Inf"\} 2431$' cat "$work/prom"
	says '^pmuk_sched_slice_seconds_sum\{cpu="0"\} 4\.000000000$' cat "$work/prom"
	root off
	says '^pmuk_sched_counting 0$' "$pmuk" export
}

# The lowest level that --depth asks for includes all cgroups below it.
test_openmetrics_depth() { root first
	"$pmuk" export --depth 1 >"$work/prom"
	says 'cgroup_run_seconds_total\{cgroup="/user.slice"\} 3\.200000000' cat "$work/prom"
	says 'cgroup_run_seconds_total\{cgroup="/"\} 0\.600000000' cat "$work/prom"
	grep -q 'deep' "$work/prom" && broken 'too deep'
	says 'cgroup_run_seconds_total\{cgroup="/"\} 6\.000000000' "$pmuk" export --depth 0
	says 'back/deep"\} 0\.500000000' "$pmuk" export
}

# The totals of removed cgroups are in the subtrees of those above.
test_openmetrics_removed() { root first
	sed -i '/ 30[23] /d' "$(file cgroups)"
	"$pmuk" export >"$work/prom"
	"$here/openmetrics.py" <"$work/prom" >/dev/null
	says '^# HELP pmuk_sched_subtree_run_seconds Time run by each cgroup and all below it, also removed ones\.$' \
		cat "$work/prom"
	says '^pmuk_sched_cgroup_run_seconds_total\{cgroup="/user.slice/quo.*back"\} 0\.300000000$' cat "$work/prom"
	says '^pmuk_sched_subtree_run_seconds_total\{cgroup="/user.slice/quo.*back"\} 0\.800000000$' cat "$work/prom"
	says '^pmuk_sched_subtree_run_seconds_total\{cgroup="/"\} 6\.000000000$' cat "$work/prom"
	says '^pmuk_sched_subtree_events_total\{cgroup="/user.slice",event="cycles"\} 6700000000$' cat "$work/prom"
	"$pmuk" export --depth 1 >"$work/prom"
	[ "$(grep -c '^pmuk_sched_subtree_run_seconds_total{' "$work/prom")" -eq 3 ] || broken 'too deep'
}

# The module takes an event twice. It has two cgroups of one path while the tasks of the removed one
# exit.
test_openmetrics_twice() { root events
	sed -i 's/ r1b$/ cycles/' "$PMUK_ROOT"/proc/pmuk_sched/*
	"$pmuk" export >"$work/prom"
	"$here/openmetrics.py" <"$work/prom" >/dev/null
	says '^pmuk_sched_cpu_events_total\{cpu="0",event="cycles"\} 10000000000$' cat "$work/prom"
	[ "$("$pmuk" top --json -v cpus | grep -o '"cycles": ' | wc -l)" -eq 1 ] || broken twice
	root first
	sed -n '/^[cs].* 30[123] /s/ 30\([123]\) / 40\1 /p' "$(file cgroups)" |
		sed 's/ [1-9]00000000 / 7 /' >"$work/again"
	cat "$work/again" >>"$(file cgroups)"
	"$pmuk" export --depth 2 >"$work/prom"
	"$here/openmetrics.py" <"$work/prom" >/dev/null
	says '^pmuk_sched_cgroup_run_seconds_total\{cgroup="/user.slice/quo.*back"\} 0\.000000007$' \
		cat "$work/prom"
}

# The kernel cuts long paths, and gives none if it has no memory. Such a cgroup is told apart from
# others by its number, and its level is known by its parents.
test_openmetrics_cut() { root first
	local short long
	short=/user.slice/$(printf 'x%.0s' {1..1011})
	long=/user.slice/$(printf 'x%.0s' {1..4083})
	printf '%s\n' "cgroup 401 300 7 0 0 0 0 1 0 0 $short" "subtree 401 300 19 0 0 0 0 1 0 0 $short" \
		"cgroup 402 300 8 0 0 0 0 1 0 0 $short" "subtree 402 300 8 0 0 0 0 1 0 0 $short" \
		"cgroup 403 401 12 0 0 0 0 1 0 0 $short" "subtree 403 401 12 0 0 0 0 1 0 0 $short" \
		"cgroup 404 300 9 0 0 0 0 1 0 0 $long" "subtree 404 300 9 0 0 0 0 1 0 0 $long" \
		'cgroup 405 300 10 0 0 0 0 1 0 0 -' 'subtree 405 300 10 0 0 0 0 1 0 0 -' \
		"cgroup 406 999 11 0 0 0 0 1 0 0 $short" "subtree 406 999 11 0 0 0 0 1 0 0 $short" \
		"cgroup 407 300 13 0 0 0 0 1 0 0 ${short}x" "subtree 407 300 13 0 0 0 0 1 0 0 ${short}x" \
		>>"$(file cgroups)"
	"$pmuk" export --depth 2 >"$work/prom"
	"$here/openmetrics.py" <"$work/prom" >/dev/null
	sed -n 's/^pmuk_sched_cgroup_run_seconds_total{cgroup="\(.*\)"} 0\.0000000/\1 /p' "$work/prom" >"$work/said"
	diff - "$work/said" <<-END
		$short... 401 19
		$short... 402 08
		$long... 404 09
		-... 405 10
		$short... 406 11
		${short}x 13
	END
	says "^pmuk_sched_cgroup_run_seconds_total\{cgroup=\"$short... 403\"\} 0\.000000012$" "$pmuk" export
	says "^pmuk_sched_cgroup_run_seconds_total\{cgroup=\"$short... 401\"\} 0\.000000007$" "$pmuk" export
}

test_export_file() { root first
	mkdir "$work/textfile"
	"$pmuk" export -o "$work/textfile/pmuk.prom"
	"$here/openmetrics.py" <"$work/textfile/pmuk.prom" >/dev/null
	[ "$(ls "$work/textfile")" = pmuk.prom ] || broken "left: $(ls "$work/textfile")"
	cp "$work/textfile/pmuk.prom" "$work/before"
	sed -i '9s/cpu/cup/' "$(file cpus)"
	refuses 1 'expected' "$pmuk" export -o "$work/textfile/pmuk.prom"
	[ "$(ls "$work/textfile")" = pmuk.prom ] || broken "left: $(ls "$work/textfile")"
	cmp "$work/before" "$work/textfile/pmuk.prom"
	refuses 1 'No such file' "$pmuk" export -o "$work/nowhere/pmuk.prom"
}

has_files() { [ "$(ls "$1")" ]; }

# A temporary file that a killed pmuk has left is replaced, a signal leaves none, and -o replaces
# only regular files.
test_export_left() { root first
	local textfile=$work/textfile writer server
	mkdir "$textfile"
	# shellcheck disable=SC2016	# sh expands it
	sh -c ': >"$2.$$"; exec "$1" export -o "$2"' sh "$pmuk" "$textfile/pmuk.prom"
	[ "$(ls "$textfile")" = pmuk.prom ] || broken "left: $(ls "$textfile")"
	rm "$textfile/pmuk.prom"
	mkfifo "$textfile/fifo"
	refuses 1 'is no regular file' "$pmuk" export -o "$textfile/fifo"
	rm "$textfile/fifo"
	mv "$(file hist)" "$work/hist"
	mkfifo "$(file hist)"
	"$pmuk" export -o "$textfile/pmuk.prom" &
	writer=$!
	waits has_files "$textfile" || true
	kill -TERM $writer
	cat "$work/hist" >"$(file hist)" &	# waits until somebody reads
	server=$!
	wait $writer || true
	kill $server 2>/dev/null || true
	[ "$(ls "$textfile")" = pmuk.prom ] || broken "left: $(ls "$textfile")"
	"$here/openmetrics.py" <"$textfile/pmuk.prom" >/dev/null
}

test_control() { root first
	local parameters=$PMUK_ROOT/sys/module/pmuk_sched/parameters
	says '^cycles,instructions$' "$pmuk" events
	"$pmuk" events cycles,cache-misses
	[ "$(cat "$parameters/events")" = cycles,cache-misses ] || broken events
	"$pmuk" events ''
	[ "$(wc -l <"$parameters/events")" -eq 1 ] || broken 'the kernel does not see the empty list'
	refuses 1 'is too long: events are up to four' "$pmuk" events "$(printf '%0500d' 0)"
	"$pmuk" disable
	[ "$(cat "$parameters/enabled")" = 0 ] || broken disable
	"$pmuk" enable
	[ "$(cat "$parameters/enabled")" = 1 ] || broken enable
	"$pmuk" reset
	[ "$(cat "$parameters/reset")" = 1 ] || broken reset
}

# ---- report ----

recorded() { "$here/recording.py" "$work/data" "$1"; }

test_report() { recorded good
	report >"$work/said"
	narrow 80 <"$work/said"
	order 1 100 200 <"$work/said"
	says ': 2 tasks on 2 CPUs in 2\.50s, all switches$' cat "$work/said"
	says '^CPU 0: 8 switches: 4 seen, 4 lost, 0 discarded; idle 250us$' cat "$work/said"
	says '^CPU 1: 3 switches: 2 seen, 0 lost, 1 discarded; idle 750us' cat "$work/said"
	says '^    100  4\.00ms       2  6\.00us  1\.50  2\.00     1     0     1 cc1$' cat \
		"$work/said"
	says '^    200   600us       2  7\.00us 0\.50\? 1\.67\?     0     1     1 new "name"$' cat \
		"$work/said"
	says '^\?: ' cat "$work/said"
	report -s wait | order 1 200 100
	report -c 1 | order 1 200
	refuses 1 'CPU 2 was not recorded' report -c 2
	(cd "$work" && cp data pmuk.data && says '2 tasks' "$pmuk" report)
}

test_report_json() { recorded good
	report --json >"$work/json"
	json "[(c['seen'], c['lost'], c['discarded'], c['switches'], c['adds_up'])
		for c in j['cpus']] == [(4, 4, 0, 8, True), (2, 0, 1, 3, True)]" <"$work/json"
	json "j['tasks'][0]['counts'] == {'cycles': 8000000, 'instructions': 12000000}" \
		<"$work/json"
	json "j['tasks'][1]['name'] == 'new \"name\"' and not j['tasks'][1]['valid']
		and j['tasks'][1]['slices'] == 2" <"$work/json"
}

test_report_other() {
	local kind
	recorded overwrite
	says '^CPU 0: 1008 switches: 4 seen, 4 lost, 0 discarded, 1000 overwritten' report
	recorded saturated
	says '^    100   4\.30s\+      3 ' report
	says '^\+: ' report
	report --json | json "[t['other_reasons'] for t in j['tasks']]
		== [1, 0]"
	recorded long
	says '^    100   5\.00s       3   6\.00s ' report
	recorded fork
	says ' cc1$' report -s id
	report --json | json "[t['name'] for t in j['tasks'] if t['pid'] == 300] == ['cc1']"
	recorded own_parent
	says ' cc1$' report -s id
	for kind in sum unreported; do
		recorded $kind
		says '^CPU 0: these numbers do not add up$' report
		report --json | json "[c['adds_up'] for c in j['cpus']]
			== [False, True]"
	done
}

# A row has all tasks that had its PID, and says so.
test_report_reused() { recorded reused
	report -s id >"$work/said"
	narrow 80 <"$work/said"
	order 1 '100*' 200 '300*' <"$work/said"
	says '^    100\* 4\.00ms       2 ' cat "$work/said"
	says '^\*: tasks had this PID one after the other' cat "$work/said"
	report --json | json "{t['pid']: t['reused'] for t in j['tasks']} == {100: True, 200: False, 300: True}"
	recorded good
	report >"$work/said"
	! grep '\*' "$work/said" || broken 'a mark without a reason'
}

# A file's children take over the long name of their parent.
test_report_memory() { recorded long_names_of_many
	python3 - "$pmuk" "$work/data" <<-'END'
		import resource, subprocess, sys
		subprocess.run([sys.argv[1], 'report', '-i', sys.argv[2]], check=True, stdout=subprocess.DEVNULL)
		peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
		if peak > 128 << 10:
		    sys.exit(f'{peak} KiB')
	END
}

# refuses_file KIND WHY: pmuk report refuses this kind of recording.py, and says WHY
refuses_file()
{
	recorded "$1"
	refuses 1 "byte [0-9]+: $2: it was cut short, or is damaged. Record again$" report
}

test_report_broken() {
	refuses_file no_end 'the file does not end where its header says'
	refuses_file no_data 'the file does not end where its header says'
	refuses_file behind 'the file does not end where its header says'
	refuses_file cpus 'an account of 3 CPUs in [0-9]+ bytes'
	refuses_file no_account_of 'CPU 2 has no account'
	refuses_file lost_of 'CPU 2 has no account'
	refuses_file ended 'it ended before it began'
	refuses_file mode 'mode 3'
	refuses_file bad_type 'a record of type 11'
	refuses_file bad_size 'a record of 0 bytes where [0-9]+ are left'
	refuses_file long_record 'a record of 65528 bytes where [0-9]+ are left'
	refuses_file odd_size 'a record of 12 bytes where [0-9]+ are left'
	refuses_file short_switch 'a switch of 56 bytes'
	refuses_file long_switch 'a switch of 160 bytes'
	refuses_file bad_class 'a switch of an unknown class'
	refuses_file other_nr 'a switch of another layout'
	refuses_file other_raw 'a switch of another layout'
	refuses_file two_lengths 'a slice of two lengths'
	refuses_file other_event 'a sum of another event'
	refuses_file shrinks 'a sum of CPU 0 that shrinks'
	refuses_file short_name '8 bytes are needed where 0 are left'
	refuses_file short_fork '24 bytes are needed where 8 are left'
	refuses_file short_exit '24 bytes are needed where 16 are left'
	refuses_file short_lost '16 bytes are needed where 8 are left'
	refuses_file no_events '3 events'
	refuses_file many_events '7 events'
	refuses_file many_ids 'an event that is not complete'
	refuses_file long_names 'an event that is not complete'
	# the position: after the header, three records of names and switches
	recorded odd_size
	refuses 1 "byte $((104 + 56 + 64 + 3 * 152)): " report
}

test_report_others() {
	local kind
	recorded version
	refuses 1 'has version 4, and this pmuk knows version 3: use the pmuk that wrote it' report
	recorded order
	refuses 1 'the other byte order' report
	recorded others
	refuses 1 'has no switches of pmuk record' report
	for kind in no_order text empty; do
		recorded $kind
		refuses 1 'is not a file of pmuk record' report
	done
	refuses 1 'No such file.*pmuk record makes' "$pmuk" report -i "$work/none"
	refuses 1 'is not a file of pmuk record' "$pmuk" report -i "$work"
}

# damaged HOW FIRST STEP: cuts $work/data at each STEP-th byte from FIRST on, or changes that byte.
# pmuk report refuses a cut file, and refuses or reports a changed one. It neither crashes nor
# hangs.
damaged()
{
	python3 - "$pmuk" "$work/data" "$@" <<-'END'
		import re, subprocess, sys
		pmuk, name, how, first, step = sys.argv[1:]
		with open(name, 'rb') as file:
		    whole = file.read()
		for at in range(int(first), len(whole), int(step)):
		    rest = b'' if how == 'cut' else bytes([whole[at] ^ 0xff]) + whole[at + 1:]
		    with open(name, 'wb') as file:
		        file.write(whole[:at] + rest)
		    done = subprocess.run(['timeout', '1h', 'prlimit', '--cpu=20', pmuk, 'report', '-i', name], text=True,
		                          capture_output=True, errors='replace')
		    status, said = done.returncode, done.stderr
		    if status not in ([1] if how == 'cut' else [0, 1]) or len(said.splitlines()) != status:
		        sys.exit(f'byte {at}: status {status}: {said}')
		    if how == 'cut' and not re.search('cut short|is not a file of pmuk record', said):
		        sys.exit(f'byte {at}: the message does not say that the file was cut: {said}')
	END
}

test_report_cut() { recorded good; damaged cut 1 13; }
test_report_changed() { recorded good; damaged changed 8 11; }

# ---- with a kernel that is not there ----

kernel()
{
	root first
	mkdir -p "$PMUK_ROOT/dev" "$PMUK_ROOT/proc/self/ns" "$PMUK_ROOT/proc/100/task/100" "$PMUK_ROOT/sys/devices/system/cpu"
	echo 0-7 >"$PMUK_ROOT/sys/devices/system/cpu/possible"
	echo cc1 >"$PMUK_ROOT/proc/100/task/100/comm"
	: >"$PMUK_ROOT/dev/pmuk_sched"
	: >"$PMUK_ROOT/dev/pmuk"
	: >"$PMUK_ROOT/proc/self/ns/pid"
	cgroups="$work/cgroup fs"
	rm -rf "$cgroups"
	mkdir -p "$cgroups/own"
	: >"$cgroups/own/cgroup.procs"
	printf '22 1 0:20 / /proc rw - proc proc rw\n30 22 0:26 / %s rw,nosuid shared:4 - cgroup2 cgroup2 rw\n' \
		"${cgroups// /\\040}" >"$PMUK_ROOT/proc/self/mountinfo"
	printf '1:cpu:/elsewhere\n0::/own\n' >"$PMUK_ROOT/proc/self/cgroup"
}

test_kernel_eacces() { kernel
	export PMUK_TEST=eacces
	local what
	for what in top hist info export; do refuses 1 \
		'takes CAP_PERFMON. Run pmuk as root, as in: sudo pmuk' "$pmuk" $what; done
	refuses 1 'only root may write' "$pmuk" reset
	refuses 125 'CAP_PERFMON' "$pmuk" stat -- true
	PMUK_TEST=e2big refuses 1 "'a,b,c,d,e' was refused: events are up to four" \
		"$pmuk" events a,b,c,d,e
}

test_kernel_stat() { kernel
	ends 3 "$pmuk" stat -- sh -c 'exit 3' 2>"$work/said" >"$work/stdout"
	[ ! -s "$work/stdout" ] || broken 'standard output is the command'"'"'s'
	says '^ of sh -c exit 3, with its children:$' cat "$work/said"
	says '^ +1500\.00 ms  run +# [0-9.]+ CPUs$' cat "$work/said"
	says '^ +250\.00 ms  wait for a CPU$' cat "$work/said"
	says '^ +30     voluntary switches$' cat "$work/said"
	says '^ +4     preemptions by the same cgroup$' cat "$work/said"
	says '^ +5     preemptions by other cgroups$' cat "$work/said"
	says '^ +3000000000     cycles +# 2\.000 GHz$' cat "$work/said"
	says '^ +4500000000     instructions +# 1\.50 per cycle$' cat "$work/said"
	says ' s   elapsed$' cat "$work/said"
	[ "$(ls "$cgroups/own")" = cgroup.procs ] || broken "a cgroup is left: $(ls "$cgroups/own")"
}

test_kernel_stat_status() { kernel
	# shellcheck disable=SC2016	# sh expands it
	ends 143 "$pmuk" stat -- sh -c 'kill -TERM $$' 2>"$work/said"
	ends 127 "$pmuk" stat -- /nonexistent 2>"$work/said"
	grep -q '/nonexistent: No such file' "$work/said"
	ends 126 "$pmuk" stat -- /etc/passwd 2>"$work/said"
	[ "$(ls "$cgroups/own")" = cgroup.procs ] || broken "a cgroup is left: $(ls "$cgroups/own")"
}

# ^C ends the command, but pmuk still reports its totals. A signal to pmuk alone is passed on to the
# command.
test_kernel_stat_signals() { kernel
	local signal
	for signal in INT TERM HUP XCPU; do
		# shellcheck disable=SC2016	# bash expands it
		ends 7 setsid -w env --default-signal=INT "$pmuk" stat -- bash -c \
			'trap "exit 7" INT TERM HUP XCPU; [ '$signal' = INT ] && kill -INT 0 || kill -'$signal' $PPID
				for i in {1..600}; do sleep 0.1; done' \
			2>"$work/said"
		grep -q 'voluntary' "$work/said" || broken \
			"$signal: nothing is said: $(cat "$work/said")"
	done
}

test_kernel_stat_json() { kernel
	"$pmuk" stat --json -o "$work/json" -- echo 'a "b"' >/dev/null
	json "j['exit_status'] == 0 and j['command'] == ['echo', 'a \"b\"'] and j['ipc'] == 1.5 and
		j['run_ns'] == 1500000000 and j['valid'] and not j['processes_left'] and \
			j['elapsed_ns'] > 0" <"$work/json"
	kernel
	export PMUK_TEST=invalid
	says '3000000000\? +cycles' "$pmuk" stat -- true
	says '\?: not all slices' "$pmuk" stat -- true
	kernel
	export PMUK_TEST=populated
	says 'Some processes of the command go on' "$pmuk" stat -- true
}

# An older file stays until there is a report, which replaces all of it. Pipes are fine, too.
test_kernel_stat_file() { kernel
	local older
	older=$(printf 'older%.0s' {1..500})
	echo "$older" >"$work/said"
	chmod 640 "$work/said"
	ends 127 "$pmuk" stat -o "$work/said" -- /nonexistent 2>/dev/null
	PMUK_TEST=eacces refuses 125 'CAP_PERFMON' "$pmuk" stat -o "$work/said" -- true
	[ "$(cat "$work/said")" = "$older" ] || broken "the older file is gone: $(cat "$work/said")"
	# shellcheck disable=SC2016	# sh expands it
	"$pmuk" stat -o "$work/said" -- sh -c 'cat "$1" >"$1.seen"' sh "$work/said"
	[ "$(cat "$work/said.seen")" = "$older" ] || broken 'the older file is gone while the command runs'
	says '^ +30     voluntary switches$' cat "$work/said"
	! grep older "$work/said" || broken 'a part of the older file is left'
	[ "$(stat -c %a "$work/said")" = 640 ] || broken "$(stat -c %a "$work/said")"
	# shellcheck disable=SC2016	# sh expands it
	says 'voluntary switches$' sh -c '"$1" stat -o /dev/stdout -- true | cat' sh "$pmuk"
	"$pmuk" stat -o /dev/stdout -- echo 'said by the command' >"$work/said"
	says '^said by the command$' cat "$work/said"
	says 'voluntary switches$' cat "$work/said"
	refuses 125 'nowhere/said: No such file' "$pmuk" stat -o "$work/nowhere/said" -- sh -c "echo >'$work/has run'"
	[ ! -e "$work/has run" ] || broken 'the command runs though the file cannot be written'
}

test_kernel_stat_cgroups() { kernel
	export PMUK_TEST=eacces-cgroup
	refuses 125 'cannot make this cgroup.*Run pmuk as root' "$pmuk" stat -- true
	unset PMUK_TEST
	sed -i '/cgroup2/d' "$PMUK_ROOT/proc/self/mountinfo"
	refuses 125 'cgroup2 is not mounted.*As root: mount -t cgroup2' "$pmuk" stat -- true
	kernel
	sed -i '/^0/d' "$PMUK_ROOT/proc/self/cgroup"
	refuses 125 'this kernel has no cgroup2' "$pmuk" stat -- true
	kernel
	sed -i 's, / /[^p], /box&,; s,/box / ,/box ,' "$PMUK_ROOT/proc/self/mountinfo"
	refuses 125 'is not in any cgroup2 that is mounted here' "$pmuk" stat -- true
	echo 0::/box/own >"$PMUK_ROOT/proc/self/cgroup"
	says 'voluntary' "$pmuk" stat -- true
}

# Another program may cut the file that pmuk report has mapped.
test_kernel_report_shrinks() { recorded good
	PMUK_TEST=shrinks refuses 1 "^pmuk: $work/data: it became shorter meanwhile, or cannot be read. Record again$" report
}

# exact FILE: seen, lost and discarded switches add up to all switches, and the tasks' slices to the
# seen ones
exact()
{
	"$pmuk" report -i "$1" --json >"$work/json"
	json "all(c['adds_up'] and c['switches'] > 0 for c in j['cpus'])" <"$work/json"
	json "sum(t['slices'] for t in j['tasks']) == sum(c['seen'] for c in j['cpus'])" \
		<"$work/json"
	json "all(t['run_ns'] == 1000 * t['slices'] for t in j['tasks'])" <"$work/json"
	json "{t['pid']: t.get('name') for t in j['tasks']}
		== {100: 'cc1', 200: 'a name (with) blanks'}" <"$work/json"
}

test_kernel_record() { kernel
	says 'switches of 2 CPUs, 0 of them dropped' record -t 0.5
	exact "$work/data"
	json "len(j['cpus']) == 2 and all(c['lost'] == 0 and c['switches'] == c['seen']
		for c in j['cpus'])" <"$work/json"
	record -c 1 -t 0.2 2>/dev/null
	exact "$work/data"
	json "[c['cpu'] for c in j['cpus']] == [1]" <"$work/json"
	ends 5 record -c 0-1 -- sh -c 'sleep 0.3; exit 5' 2>/dev/null
	exact "$work/data"
}

# The statistics of all CPUs come first, and nothing slow comes between them.
test_kernel_record_together() { kernel
	local mode
	for mode in '' --overwrite --raw; do
		# shellcheck disable=SC2086	# no mode is no word
		record $mode -t 0.2 2>/dev/null
		exact "$work/data"
		json "j['cpus'][0]['switches'] == j['cpus'][1]['switches']" <"$work/json"
	done
	PMUK_TEST=late-task record -t 0.2 2>/dev/null
	exact "$work/data"
}

# members FILE: prints the processes and threads of all samples in FILE of perf
members()
{
	python3 - "$1" <<-'END'
		import struct, sys
		data = open(sys.argv[1], 'rb').read()
		at, left = struct.unpack_from('=2Q', data, 40)
		found = set()
		while left:
		    kind, _, length = struct.unpack_from('=IHH', data, at)
		    if kind == 9:
		        found.add(struct.unpack_from('=II', data, at + 16))
		    at, left = at + length, left - length
		print(*sorted(found))
	END
}

# A thread may begin when the rings of names have been read, and leave its CPU before that ring is read.
test_kernel_record_between() { kernel
	local mode
	for mode in '' --raw; do
		# shellcheck disable=SC2086	# no mode is no word
		PMUK_TEST=between record $mode -t 0.2 2>/dev/null
		[ "$(members "$work/data")" = '(100, 100) (100, 200)' ] || broken "$(members "$work/data")"
		exact "$work/data"
	done
}

# The file has the names of the events that were counted at the beginning.
test_kernel_record_other_counting() {
	local fixture
	for fixture in reset off; do
		kernel
		says '^pmuk: pmuk_sched stopped or restarted counting during the recording: ' \
			record -- cp "$here/fixtures/$fixture/proc/pmuk_sched/cpus" "$(file cpus)"
	done
}

# Each CPU takes two files, so pmuk raises its soft limit.
test_kernel_record_files() { kernel
	(ulimit -Sn 5; record -t 0.2 2>/dev/null)
	exact "$work/data"
	# shellcheck disable=SC2016	# sh expands it
	ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 \
		refuses 1 'too many open files; see ulimit -n' sh -c 'ulimit -n 4; exec "$@"' sh \
		"$pmuk" record -o "$work/data" -t 0.2
}

test_kernel_record_lost() { kernel
	record -m 2 -t 1 2>/dev/null
	exact "$work/data"
	json "all(c['lost'] > 0 for c in j['cpus'])" <"$work/json"
}

test_kernel_record_overwrite() { kernel
	record --overwrite -m 4 -t 1 2>/dev/null
	exact "$work/data"
	json "j['overwrite'] and all(c['overwritten'] > 0 and 100 < c['seen'] <= 16384 * 15 / 16 / 48 and c['lost'] == 0
		for c in j['cpus'])" <"$work/json"
}

test_kernel_record_raw() { kernel
	says 'switches of 2 CPUs, 0 of them dropped' record --raw -t 0.5
	exact "$work/data"
	json "len(j['cpus']) == 2 and all(c['lost'] == 0 and c['switches'] == c['seen']
		for c in j['cpus'])" <"$work/json"
	ends 5 record --raw -c 1 -- sh -c 'sleep 0.3; exit 5' 2>/dev/null
	exact "$work/data"
	json "[c['cpu'] for c in j['cpus']] == [1]" <"$work/json"
}

test_kernel_record_raw_lost() { kernel
	record --raw -m 1 -t 1 2>/dev/null
	exact "$work/data"
	json "all(c['lost'] > 0 for c in j['cpus'])" <"$work/json"
	refuses 1 'choose one' record --raw --overwrite -t 1
}

# counted FILE: prints how many samples and lost records FILE of perf has, and of how many events
counted()
{
	python3 - "$1" <<-'END'
		import struct, sys
		data = open(sys.argv[1], 'rb').read()
		ids = {7, 8}	# those of the dummy events
		magic, size, attr, attrs_at, attrs, at, left = struct.unpack_from('=8s6Q', data)
		assert magic == b'PERFILE2' and size == 104 and attrs_at + attrs == len(data)
		samples = lost = 0
		while left:
		    kind, _, length = struct.unpack_from('=IHH', data, at)
		    samples += kind == 9
		    if kind == 9 and struct.unpack_from('=Q', data, at + 8)[0] not in (9, 10):
		        sys.exit(f'byte {at}: perf does not know the event of the sample')
		    lost += struct.unpack_from('=Q', data, at + 16)[0] if kind == 2 else 0
		    if kind not in (9, 68) and struct.unpack_from('=Q', data, at + length - 8)[0] not in ids:
		        sys.exit(f'byte {at}: perf does not know what follows the record')
		    at, left = at + length, left - length
		print(samples, lost, attrs // attr)
	END
}

test_kernel_record_buffer() { kernel
	local samples lost events
	rm -r "$PMUK_ROOT/proc/pmuk_sched" "$PMUK_ROOT/sys"	# buffers need no pmuk_sched
	record --buffer exported -m 4 -c 0,1 -t 0.5 2>"$work/said"
	read -r samples lost events <<<"$(counted "$work/data")"
	if [ "$samples" -eq 0 ] || [ "$lost" -eq 0 ] || [ "$events" -ne 2 ]; then
		broken "$samples samples, $lost lost, $events events"
	fi
	grep -q "pmuk: $samples samples of 2 CPUs, and $lost lost; " "$work/said" || broken "$(cat "$work/said")"
	PMUK_TEST=begins says '^pmuk: 0 samples of 2 CPUs, and 0 lost; ' record --buffer exported -m 4 -c 0,1 -t 0.2
	refuses 1 'has no switches of pmuk record' report
}

# An owner may add counters while pmuk records. The file does not describe them, and perf would refuse
# all of it.
test_kernel_record_buffer_added() { kernel
	local samples lost events left
	PMUK_TEST=added record --buffer exported -m 4 -c 0,1 -t 0.5 2>"$work/said"
	counted "$work/data" >"$work/count"
	read -r samples lost events <"$work/count"
	if [ "$samples" -eq 0 ] || [ "$events" -ne 2 ]; then broken "$samples samples, $events events"; fi
	grep -q "^pmuk: $samples samples of 2 CPUs, and $lost lost; " "$work/said" || broken "$(cat "$work/said")"
	left=$(sed -n 's/^pmuk: \([0-9]*\) samples are left out: exported changed its counters during the recording$/\1/p' \
		"$work/said")
	# every other sample is left out, so each of some 100 reads of a buffer has as many of both, or one more
	if [ -z "$left" ] || [ $((left - samples)) -gt 512 ] || [ $((samples - left)) -gt 512 ]; then
		broken "$samples samples, and $(cat "$work/said")"
	fi
}

test_kernel_record_buffer_refused() { kernel
	refuses 1 'by the name nothing. To list the names: pmuk consumers -n 1 -d 0.1$' record --buffer nothing -t 1
	refuses 1 'by the name xxxx' record --buffer "$(printf 'x%.0s' {1..40})" -t 1
	refuses 1 'there is no CPU 7, or it has no buffer' record --buffer exported -c 0,7 -m 4 -t 1
	refuses 1 'none of these CPUs is online' record --buffer exported -c 7 -t 1
	PMUK_TEST=busy refuses 1 'on CPU 0 are being read by somebody else' record --buffer exported -m 4 -t 1
	PMUK_TEST=eacces refuses 1 'takes CAP_PERFMON' record --buffer exported -m 4 -t 1
	PMUK_TEST=closed refuses 0 '^pmuk: [0-9]+ samples of 1 CPUs' record --buffer exported -m 4 -t 0.2
	PMUK_TEST=closing refuses 0 '^pmuk: [0-9]+ samples of 1 CPUs' record --buffer exported -m 4 -t 0.2
	PMUK_TEST=anew refuses 1 'exported was closed and made anew' record --buffer exported -m 4 -t 0.2
	echo 1,3 >"$PMUK_ROOT/sys/devices/system/cpu/possible"
	refuses 0 '^pmuk: [0-9]+ samples of 1 CPUs' record --buffer exported -m 4 -t 0.2
	echo none >"$PMUK_ROOT/sys/devices/system/cpu/possible"
	refuses 1 "the kernel's list of CPUs: a list of CPUs such as 0-3,7 is needed" record --buffer exported -m 4 -t 0.2
	refuses 1 'for switches, not with --buffer' record --buffer exported --raw -t 1
	rm "$PMUK_ROOT/sys/devices/system/cpu/possible"
	refuses 1 'the kernel does not list its CPUs' record --buffer exported -m 4 -t 1
	rm "$PMUK_ROOT/dev/pmuk"
	refuses 1 'Is the module pmu_kapi loaded' record --buffer exported -m 4 -c 0 -t 1
}

# The rings of names are read while /proc is read, and what was lost before is told.
test_kernel_record_tasks() { kernel
	local pid
	PMUK_TEST=lost-tasks says '^pmuk: 6 records about tasks were lost' record -t 0.2
	PMUK_TEST=lost-last says '^pmuk: 4 records about tasks were lost' record -t 0.2
	exact "$work/data"
	for pid in {300..330}; do mkdir -p "$PMUK_ROOT/proc/$pid/task"; done
	PMUK_TEST=new-tasks record -t 0.2 2>"$work/said"
	! grep 'about tasks' "$work/said" || broken 'the rings overflow'
	exact "$work/data"
	rm -r "$PMUK_ROOT"/proc/3*
	for pid in {300..340}; do
		mkdir -p "$PMUK_ROOT/proc/300/task/$pid"
		echo thread >"$PMUK_ROOT/proc/300/task/$pid/comm"
	done
	PMUK_TEST=new-tasks record -t 0.2 2>"$work/said"
	! grep 'about tasks' "$work/said" || broken 'the rings overflow while threads of a process are read'
}

# code FILE: prints the records about code in FILE of perf, in their order
code()
{
	python3 - "$1" <<-'END'
		import struct, sys
		data = open(sys.argv[1], 'rb').read()
		at, left = struct.unpack_from('=2Q', data, 40)
		while left:
		    kind, misc, length = struct.unpack_from('=IHH', data, at)
		    body = data[at + 8:at + length - 32]	# the fields of sample_id_all follow
		    text = lambda at: body[at:].split(b'\0')[0].decode()
		    if kind == 10:
		        file = 'file %u:%u %u' % struct.unpack_from('=IIQ', body, 32)
		        print('mmap %#x %#x' % struct.unpack_from('=QQ', body, 8), text(64),
		              'id ' + body[36:36 + body[32]].hex() if misc & 0x4000 else file)
		    if kind == 17:
		        print('ksymbol %#x %#x %u %u' % struct.unpack_from('=QIHH', body), text(16))
		    at, left = at + length, left - length
	END
}

# BPF programs that were loaded before the recording have names, and lengths up to the next symbol.
test_kernel_record_programs() { kernel
	cat >"$PMUK_ROOT/proc/kallsyms" <<-'END'
		0000000000000000 A fixed_percpu_data
		ffffffff81000000 T _text
		ffffffff81000000 t startup
		ffffffff82000000 T _etext
		ffffffffc0200000 t probe	[mod]
		ffffffffc0200800 t __bpf_prog_none	[mod]
		ffffffffc01ffc00 t bpf_prog_aaaaaaaaaaaaaaaa_last_one	[bpf]
		ffffffffc0100040 t bpf_prog_6deef7357e7b4530	[bpf]
		ffffffffc0100000 t bpf_trampoline_42	[bpf]
		ffffffffc0300000 t kprobe_insn_page	[__builtin__kprobes]
	END
	echo 'mod 16384 0 - Live 0xffffffffc0200000' >"$PMUK_ROOT/proc/modules"
	refuses 0 '^pmuk: [0-9]+ samples of 2 CPUs' record --buffer exported -m 4 -c 0,1 -t 0.2
	diff - <(code "$work/data") <<-'END'
		mmap 0xffffffff81000000 0x1000000 [kernel.kallsyms]_text file 0:0 0
		mmap 0xffffffffc0200000 0x4000 [mod] file 0:0 0
		ksymbol 0xffffffffc0100000 0x40 1 0 bpf_trampoline_42
		ksymbol 0xffffffffc0100040 0x10000 1 0 bpf_prog_6deef7357e7b4530
		ksymbol 0xffffffffc01ffc00 0x400 1 0 bpf_prog_aaaaaaaaaaaaaaaa_last_one
	END
	record -t 0.2 2>/dev/null
	[ "$(code "$work/data")" = 'mmap 0xffffffff81000000 0x1000000 [kernel.kallsyms]_text file 0:0 0' ] || broken "$(code "$work/data")"
	exact "$work/data"
	sed -i 's/^[0-9a-f]*/0000000000000000/' "$PMUK_ROOT/proc/kallsyms"
	sed -i 's/0x.*/0x0000000000000000/' "$PMUK_ROOT/proc/modules"
	says '^pmuk: the kernel hides its addresses.*kernel.kptr_restrict$' record --buffer exported -m 4 -c 0,1 -t 0.2
	[ -z "$(code "$work/data")" ] || broken "$(code "$work/data")"
	refuses 0 '^pmuk: [0-9]+ switches of 2 CPUs' record -t 0.2
}

# The size of a module includes its data, which lie elsewhere: other code may begin there.
test_kernel_record_modules() { kernel
	cat >"$PMUK_ROOT/proc/kallsyms" <<-'END'
		ffffffff81000000 T _text
		ffffffff82000000 T _etext
		ffffffffc0205000 t init	[two]
		ffffffffc0209000 d data	[two]
		ffffffffc0200000 t init	[one]
		ffffffffc0200400 t exit	[one]
		ffffffffc0208000 d data	[one]
		ffffffffc0203000 t bpf_prog_6deef7357e7b4530	[bpf]
		ffffffffc0206000 t kprobe_insn_page	[__builtin__kprobes]
		ffffffffc0300000 t init	[three]
	END
	printf '%s\n' 'three 4096 0 - Live 0xffffffffc0300000' 'two 16384 1 - Live 0xffffffffc0205000' \
		'one 40960 0 - Live 0xffffffffc0200000' >"$PMUK_ROOT/proc/modules"
	refuses 0 '^pmuk: [0-9]+ samples of 2 CPUs' record --buffer exported -m 4 -c 0,1 -t 0.2
	diff - <(code "$work/data") <<-'END'
		mmap 0xffffffff81000000 0x1000000 [kernel.kallsyms]_text file 0:0 0
		mmap 0xffffffffc0200000 0x3000 [one] file 0:0 0
		mmap 0xffffffffc0205000 0x1000 [two] file 0:0 0
		mmap 0xffffffffc0300000 0x1000 [three] file 0:0 0
		ksymbol 0xffffffffc0203000 0x2000 1 0 bpf_prog_6deef7357e7b4530
	END
}

# note TYPE NAME CONTENTS: prints an ELF note
note()
{
	python3 - "$@" <<-'END'
		import struct, sys
		name, contents = sys.argv[2].encode() + b'\0', bytes.fromhex(sys.argv[3])
		padded = lambda part: part + bytes(-len(part) % 4)
		sys.stdout.buffer.write(struct.pack('=III', len(name), len(contents), int(sys.argv[1])) +
		                        padded(name) + padded(contents))
	END
}

# The kernel, its modules and the programs' files have their build ids, or else their inodes.
test_kernel_record_build_ids() { kernel
	local notes=$PMUK_ROOT/sys/module/mod/notes buffer=(record --buffer exported -m 4 -c 0-1 -t 0.2)
	mkdir -p "$notes" "$PMUK_ROOT/sys/kernel"
	printf '%s\n' 'ffffffff81000000 T _text' 'ffffffff82000000 T _etext' >"$PMUK_ROOT/proc/kallsyms"
	printf '%s\n' 'mod 16384 0 - Live 0xffffffffc0200000' 'none 4096 0 - Live 0xffffffffc0300000' >"$PMUK_ROOT/proc/modules"
	printf '%s\n' '00400000-00452000 r-xp 00001000 08:02 173521      /usr/bin/a b' '00652000-00655000 rw-p 0 08:02 173521 /usr/bin/a b' \
		'7f0000000000-7f0000001000 r-xp 00000000 08:02 9 /no/id' 'f00000-f01000 r-xp 00000000 00:00 0' >"$PMUK_ROOT/proc/100/maps"
	{ note 3 Xen 0102; note 6 GNU 030405; note 3 GNU 00112233445566778899aabbccddeeff01234567; } >"$PMUK_ROOT/sys/kernel/notes"
	note 3 GNU aabbccddeeff0011 >"$notes/.note.gnu.build-id"
	refuses 0 '^pmuk: [0-9]+ samples of 2 CPUs' "${buffer[@]}"
	diff - <(code "$work/data") <<-'END'
		mmap 0xffffffff81000000 0x1000000 [kernel.kallsyms]_text id 00112233445566778899aabbccddeeff01234567
		mmap 0xffffffffc0200000 0x4000 [mod] id aabbccddeeff0011
		mmap 0xffffffffc0300000 0x1000 [none] file 0:0 0
		mmap 0x400000 0x52000 /usr/bin/a b id a1a2a3a4
		mmap 0x7f0000000000 0x1000 /no/id file 8:2 9
		mmap 0xf00000 0x1000 //anon file 0:0 0
	END
	# notes that are damaged, or not of the size of a build id
	local damage
	{ note 3 Xen 0102; note 3 GNU 00112233445566778899aabbccddeeff01234567; } >good
	for damage in 'head -c 30 good' 'head -c 55 good' 'sed s/\x14/\xff/ good' "note 3 GNU $(printf %042d 0)"; do
		$damage >"$PMUK_ROOT/sys/kernel/notes"
		"${buffer[@]}" 2>/dev/null
		says '_text file 0:0 0$' code "$work/data"
	done
}

# The message says which ring of pmuk cannot be mapped, and gives advice that fits this ring.
test_kernel_record_maps() { kernel
	local buffer=(record --buffer exported -m 4 -t 1)
	PMUK_TEST=map-names-eperm refuses 1 'CPU 0: the ring of names of tasks takes CAP_PERFMON' "${buffer[@]}"
	PMUK_TEST=map-ring-eperm refuses 1 'CPU 0: the ring of exported takes CAP_PERFMON' "${buffer[@]}"
	PMUK_TEST=map-ring-enomem refuses 1 'no memory for the ring of exported; try a smaller -m' "${buffer[@]}"
	PMUK_TEST=map-ring-einval refuses 1 'CPU 0: the ring of exported: Invalid argument$' "${buffer[@]}"
	PMUK_TEST=map-ring-einval refuses 1 'CPU 0: the ring of switches: Invalid argument$' record -t 1
	PMUK_TEST=map-ring-enomem refuses 1 'for the ring of switches; try' record --raw -t 1
}

test_kernel_record_cpus() { kernel
	local online="$PMUK_ROOT/sys/devices/system/cpu/online"
	echo 0-1 >"$online"
	refuses 0 '^pmuk: [0-9]+ switches of 2 CPUs' record -t 0.2
	echo 0-1,4,6-7 >"$online"
	says '^pmuk: 3 CPUs came online after the recording had begun' record -t 0.2
	exact "$work/data"
	refuses 0 '^pmuk: [0-9]+ switches of 2 CPUs' record -c 0-1 -t 0.2
	PMUK_TEST=cpu-returns says '^pmuk: 4 CPUs came online after the recording had begun' record -t 0.2
	PMUK_TEST=cpu-returns says '^pmuk: 1 CPUs came online after the recording had begun' record -c 1 -t 0.2
	PMUK_TEST=cpu-returns refuses 0 '^pmuk: [0-9]+ switches of 1 CPUs' record -c 0 -t 0.2
	echo 0 >"$online"
	PMUK_TEST=cpu-returns refuses 0 '^pmuk: [0-9]+ switches of 2 CPUs' record -t 0.2
	local list
	for list in '0-1,' ,0 1-0 0-1x 0- -1 +1 ' 0' 65536 ''; do
		refuses 1 "^pmuk: -c: a list of CPUs such as 0-3,7 is needed, not '[^']*'$" record -c "$list" -t 0.2
	done
	echo 4-7, >"$online"	# a list that is not understood has no CPUs
	refuses 0 '^pmuk: [0-9]+ switches of 2 CPUs' record -t 0.2
}

has_file() { compgen -G "$work/data.*" >/dev/null; }
has_ended() { ! kill -0 "$1" 2>/dev/null; }

# interrupted SECONDS: records, and sends SIGINT so long after the file is there; returns pmuk's exit status
interrupted()
{
	local pid
	rm -f "$work/data"
	python3 -c '
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)	# bash ignores SIGINT in background processes
os.execv(sys.argv[1], sys.argv[1:])' "$pmuk" record -o "$work/data" 2>"$work/said" &
	pid=$!
	waits has_file || true
	sleep "$1"
	kill -INT "$pid"
	waits has_ended "$pid" || true
	kill -KILL "$pid" 2>/dev/null && broken 'it does not end'
	wait "$pid"
}

# If the signal comes before pmuk has read what is there, which a busy machine takes long for, the recording has not
# begun, and pmuk ends with 130. Then the next signal comes later.
test_kernel_record_interrupted() { kernel
	local i status=130
	for ((i = 0; i < 60 && status == 130; i++)); do
		status=0
		interrupted "$i" || status=$?
	done
	[ "$status" -eq 0 ] || broken "$status $(cat "$work/said")"
	exact "$work/data"
}

# Signals to pmuk alone are passed on to the command, whose end ends the recording.
test_kernel_record_signals() { kernel
	local signal
	for signal in TERM HUP XCPU; do
		# shellcheck disable=SC2016	# bash expands it
		ends 7 record -- bash -c 'trap "exit 7" TERM HUP XCPU; kill -'$signal' $PPID
			for i in {1..600}; do sleep 0.1; done' 2>/dev/null
		exact "$work/data"
	done
}

test_kernel_record_refused() { kernel
	PMUK_TEST=busy refuses 1 'recorded by somebody else' record -t 1
	PMUK_TEST=enomem refuses 1 'no memory for the stream; try a smaller -m' record -t 1
	PMUK_TEST=enobufs refuses 1 'would exceed .*/stream_mb; try a smaller -m' record -t 1
	PMUK_TEST=busy refuses 1 'by somebody else' record -- sh -c "echo >'$work/has run'"
	sleep 0.3
	[ ! -e "$work/has run" ] || broken 'the command runs though nothing is recorded'
	refuses 1 'there is no CPU 7, or it is offline' record -c 7 -t 1
	PMUK_TEST=no-perf refuses 1 'of tasks takes CAP_PERFMON' record -t 1
	refuses 1 'nowhere/data.*: No such file' "$pmuk" record -o "$work/nowhere/data" -t 1
	rm "$PMUK_ROOT/dev/pmuk_sched"
	refuses 1 '/dev/pmuk_sched is missing, though' record -t 1
	kernel
	refuses 1 '/dev/null is no regular file' "$pmuk" record -o /dev/null -t 1
}

# In another pid namespace, perf tells of tasks by other numbers. Without /proc, nothing says so.
test_kernel_record_container() { kernel
	local args
	for args in '-t 1' '--buffer exported -t 1' "-- sh -c echo>$work/run"; do
		# shellcheck disable=SC2086	# words on purpose
		PMUK_TEST=container refuses 1 'wrong names.* in the initial one.*--pid=host$' record $args
	done
	[ ! -e "$work/run" ] || broken 'the command runs though nothing is recorded'
	record -t 0.2 2>/dev/null
	exact "$work/data"
	rm "$PMUK_ROOT/proc/self/ns/pid"
	PMUK_TEST=container record -t 0.2 2>/dev/null
	exact "$work/data"
}

# If pmuk fails later, it terminates COMMAND, and waits for its end.
test_kernel_record_fails() { kernel
	# COMMAND has none of our pipes, or we would wait for its end ourselves
	local command='exec >/dev/null 2>&1; trap "sleep 0.3; echo >ended; exit" TERM; : >begun; for i in {1..600}; do sleep 0.1; done'
	export PMUK_TEST=begins
	(ulimit -f 1024; ends 1 record -- bash -c "$command" 2>said)
	grep -q 'cannot write to .*: File too large. An older file stays' said || broken "$(cat said)"
	grep -q 'Another signal ends the wait' said || broken "$(cat said)"
	[ -e ended ] || broken 'the command goes on, or pmuk does not wait for its end'
	[ "$(echo data*)" = 'data*' ] || broken "left: $(echo data*)"
	rm begun ended
	# nobody reads pmuk's messages
	(ulimit -f 1024; record -- bash -c "$command" 2>&1 || echo $? >status) | true
	waits test -e status
	[ "$(cat status)" = 1 ] || broken "status $(cat status)"
	[ -e ended ] || broken 'the command goes on when nobody reads the messages'
	[ "$(echo data*)" = 'data*' ] || broken "left: $(echo data*)"
	unset PMUK_TEST
	# COMMAND may write such files itself, and a stopped one ends, too
	ends 153 record -- bash -c 'ulimit -f 1; exec 2>/dev/null; exec head -c 9999 /dev/zero >large' 2>/dev/null
	(ulimit -f 1024; ends 1 record -- bash -c 'exec >/dev/null 2>&1; kill -STOP $$; sleep 100' 2>/dev/null)
}

# A recording takes the place of an older one when it is complete. Only its owner may read it.
test_kernel_record_replaces() { kernel
	echo older >"$work/data"
	PMUK_TEST=busy refuses 1 'by somebody else' record -t 1
	(ulimit -f 1024; refuses 1 'File too large' record -t 1)
	[ "$(cat "$work/data")" = older ] || broken 'the older recording is gone'
	[ "$(echo "$work"/data*)" = "$work/data" ] || broken "left: $(echo "$work"/data*)"
	ends 127 record -- "$work/no command" 2>/dev/null
	PMUK_TEST=interrupted ends 130 record -- sh -c "echo >'$work/has run'"
	PMUK_TEST=interrupted ends 130 record -t 1
	[ "$(cat "$work/data")" = older ] || broken 'the older recording is gone'
	[ ! -e "$work/has run" ] || broken 'the command runs after ^C'
	record -t 0.2 2>/dev/null
	exact "$work/data"
	[ "$(stat -c %a "$work/data")" = 600 ] || broken "$(stat -c %a "$work/data")"
}

# ---- running them ----

# one NAME: runs a test with each program. A command of the test that fails ends the test.
one()
{
	local program programs=(pmuk pmuk-test) status
	[[ $1 != kernel_* ]] || programs=(pmuk-test)
	for program in "${programs[@]}"; do
		pmuk=$out/$program
		(
			set -eE -o pipefail
			trap 'echo "line $LINENO: $BASH_COMMAND"' ERR
			fresh
			cd "$work"
			"test_$1"
		) >"$work.log" 2>&1 </dev/null
		status=$?
		[ "$status" -ne 0 ] || continue
		sed "s/^/    # $program: /" "$work.log" | head -20
		return 1
	done
}

fresh() { rm -rf "${work:?}"/*; }

tests=()
for name in $(declare -F | sed -n 's/^declare -f test_//p'); do
	# shellcheck disable=SC2053	# a pattern on purpose
	if [[ $name == $glob ]]; then tests+=("$name"); fi
done
[ ${#tests[@]} -gt 0 ] || exit 0
printf 'KTAP version 1\n1..1\n    KTAP version 1\n    # Subtest: user_tool\n    1..%d\n' ${#tests[@]}
number=0 failed=
for name in "${tests[@]}"; do
	number=$((number + 1)) result=ok
	begun=$SECONDS
	one "$name"	# not before ||, where set -e has no effect
	# shellcheck disable=SC2181
	[ $? -eq 0 ] || result='not ok' failed=y
	echo "    $result $number $name"
	[ $((SECONDS - begun)) -lt 10 ] || echo "    # took $((SECONDS - begun)) s"
done
rm -f "$work.log"
echo "${failed:+not }ok 1 user_tool"
[ -z "$failed" ]
