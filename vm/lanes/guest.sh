# shellcheck shell=sh
# Scripts that lanes run in the VM source this file. A script sets $guest to the name of its suite,
# runs checks, and reports their results.
# Results go through the kernel's log, so that no kernel message gets into the middle of a line.
# kselftest's ktap_helpers.sh does less: it prints to stdout, which is the console here, wants the number of tests
# beforehand, and does not keep what a command that fails has said.
results=/tmp/results
nr_results=0
: >$results

# lane host has its own dmesg, which knows where the lane began; busybox would prefer its built-in
# one
[ ! -e /dmesg ] || dmesg() { /dmesg "$@"; }

# result STATUS TEST [WHY]: writes the result of TEST
result()
{
	nr_results=$((nr_results + 1))
	echo "    $1 $nr_results $2${3:+ $3}" >>$results
}

# check TEST CMD...: TEST passes if CMD succeeds; the output of a failing CMD is the reason
check()
{
	if (shift; "$@") >/tmp/said 2>&1; then
		result ok "$1"
	else
		sed "s/^/    # $1: /" /tmp/said >>$results
		result 'not ok' "$1"
	fi
	{ echo "$1:"; cat /tmp/said; } | sed 's/^/guest: /' | log
}

# skip TEST WHY: TEST is skipped for that reason
skip() { result ok "$1" "# SKIP $2"; }

log() { while IFS= read -r line; do echo "$line" >/dev/kmsg; done; }

# loaded: prints our modules, the latest first
loaded() { sed -n 's/^\(pmuk[a-z_]*\|pmu_kapi\) .*/\1/p' /proc/modules; }

# since CMD...: prints the kernel's messages while CMD runs
since()
{
	lines=$(dmesg | wc -l)
	"$@" || return
	dmesg | tail -n +$((lines + 1))
}

# take ARGUMENT...: perf stat counts in the background when this returns, and $taker is its process
take()
{
	rm -f /tmp/taken
	perf stat "$@" sh -c 'echo >/tmp/taken; exec sleep 1000' >/tmp/stat 2>&1 &
	taker=$!
	while kill -0 $taker && [ ! -e /tmp/taken ]; do sleep 0.1; done
}

# take_all: takes all counters of all CPUs, pinned, until give_back
take_all() { take -a -e cycles:D,cycles:D,cycles:D,cycles:D,cycles:D,cycles:D,cycles:D,cycles:D; }
give_back() { kill "$taker"; wait "$taker" 2>/dev/null; return 0; }

# perf_counts EVENT[,EVENT...]: perf stat prints a number for each EVENT
perf_counts()
{
	perf stat -x, -e "$1" -o /tmp/stat true
	cat /tmp/stat
	awk -F, -v events="$1" '$1 + 0 > 0 { found++ } END { exit !(found >= split(events, names, ",")) }' /tmp/stat
}

# has_x86_pmu: succeeds on x86 with counters, which interrupt by NMI
has_x86_pmu() { [ -e /sys/bus/event_source/devices/cpu ]; }

# nothing_left: none of our modules and PMUs is left
nothing_left()
{
	left=$(left)
	[ -z "$left" ] || { echo "$left"; return 1; }
}

# left: prints our modules and PMUs. A kernel that has pmu_kapi built in keeps the PMU of shared counters.
left()
{
	loaded
	find /sys/bus/event_source/devices -name 'pmuk?*'
	[ -d /sys/kernel/debug/pmuk ] || find /sys/bus/event_source/devices -name pmuk
}

# sched_says LINE...: /proc/pmuk_sched/cpus has each LINE, and time has been accounted to each CPU
sched_says()
{
	cat /proc/pmuk_sched/cpus
	for line in 'state on' "$@"; do grep -qxF "$line" /proc/pmuk_sched/cpus || return; done
	awk '$1 == "cpu" && $3 <= 0 { bad = 1 } END { exit bad }' /proc/pmuk_sched/cpus
}

# sched_counts FIELD: on each CPU, FIELD of the counts of its tasks and idle task is more than 0
sched_counts()
{
	awk -v field="$1" '$1 == "cpu" { tasks[$2] = $(8 + field) }
			   $1 == "idle" && tasks[$2] + $(4 + field) <= 0 { bad = 1 }
			   END { exit bad }' /proc/pmuk_sched/cpus
}

# sched_counts_both: loads pmuk_sched, which counts cycles and instructions on each CPU
sched_counts_both()
{
	modprobe pmuk_sched && sleep 1 && sched_says 'events cycles instructions' 'missing none' &&
		sched_counts 1 && sched_counts 2
}

sched_unloads() { modprobe -r pmuk_sched && nothing_left; }

# sample_counts LOAD...: LOAD loads pmuk_count, which then prints a row with a count for each CPU
sample_counts()
{
	since "$@" >/tmp/table
	cat /tmp/table
	[ "$(sed 's/^\[[^]]*\] *//' /tmp/table | awk '$1 ~ /^[0-9]+$/ && $2 > 0' | wc -l)" -eq "$(nproc)" ]
}

# sample: pmuk_count loads and unloads
sample() { modprobe pmuk_count && modprobe -r pmuk_count && nothing_left; }

# the programs that test pmuk, and those that test pmuk_sched
# shellcheck disable=SC2034	# guest scripts use it
kapi_programs='aux_map aux_read buffer_map buffer_read device_record live_debugfs live_suspend live_trace self_monitor'
# shellcheck disable=SC2034
sched_programs='sched_cgroups sched_params sched_raw sched_readers sched_reasons sched_stats sched_storm sched_stream'

# no_leaks: kmemleak finds no allocated memory to which no pointer is left
no_leaks()
{
	echo scan >/sys/kernel/debug/kmemleak
	sleep 6		# kmemleak ignores younger memory
	echo scan >/sys/kernel/debug/kmemleak
	cat /sys/kernel/debug/kmemleak
	[ -z "$(cat /sys/kernel/debug/kmemleak)" ]
}

# kunit SUITE...: runs these suites, and prints a document of KTAP for each; SUITE= may leave out
# some
kunit()
{
	for suite in "$@"; do
		[ -e "/sys/kernel/debug/kunit/$suite" ] || continue
		printf 'KTAP version 1\n1..1\n' | log
		echo 1 >"/sys/kernel/debug/kunit/$suite/run"
	done
}

# suites: prints our KUnit suites
suites() { for suite in /sys/kernel/debug/kunit/pmuk_*; do echo "${suite##*/}"; done; }

# all_interrupts: keeps perf core from throttling. On a busy host, the PMU's interrupts take long,
# and perf core allows fewer and fewer of them, down to one each tick.
all_interrupts() { echo 0 >/proc/sys/kernel/perf_cpu_time_max_percent; }

# tell_if_slow PROGRAM: a program's TAP is printed when it has ended. After five minutes, prints how far it has come, for
# the case that the machine is ended as a stuck one.
tell_if_slow()
{
	sleep 300 &
	# shellcheck disable=SC2064	# the present value is meant
	trap "kill $!; exit" TERM
	wait $!
	{ echo "$1 still runs"; tail -n 3 /tmp/tap; ps -o pid,stat,time,comm; } | sed 's/^/pmuk-vm: /' | log
}

# kselftest PROGRAM...: their TAP, each a document of its own; one that does not come to its end
# leaves tests out, or fails by its status. kselftest's runner.sh prints one result a program, and each line of a
# program behind "# ", as a comment: the manifest's cases would be lost.
kselftest()
{
	for program in "$@"; do
		status=0
		tell_if_slow "$program" &
		"$program" >/tmp/tap 2>&1 || status=$?
		kill $! 2>/dev/null || :	# tell_if_slow may have ended
		{
			printf 'KTAP version 1\n1..1\n    KTAP version 1\n    # Subtest: %s\n' "$program"
			sed -E -n -e '/^# +(RUN|OK) /d' -e 's/^/    /' -e '/^    (not )?ok |^    1\.\.|^    # /p' /tmp/tap
			if [ "$status" -eq 0 ]; then echo "ok 1 $program"; else echo "not ok 1 $program"; fi
		} | log
	done
}

# report: prints the results as KTAP, and the kernel's error messages, for the judge
# shellcheck disable=SC2154	# guest scripts set $guest
report()
{
	{
		printf 'KTAP version 1\n1..1\n'
		printf '    KTAP version 1\n    # Subtest: %s\n    1..%s\n' "$guest" "$nr_results"
		cat $results
		if grep -q '^    not ok' $results; then echo "not ok 1 $guest"; else echo "ok 1 $guest"; fi
	} | log
	# messages of levels 0 to 3, and our warnings; KUnit's indented lines are left out
	dmesg -r | sed -n -e '/^<.>\[[^]]*\]     /d' -e '/^<[0-3]>/p' -e '/^<4>\[[^]]*\] pmuk/p' |
		sed 's/^<.>\[[^]]*\] /pmuk-vm: error: /' | log
}
