# shellcheck shell=sh
# For the scripts that lanes run in the VM: they set $guest, their suite, check things and report.
# Results go through the kernel's log, so that no kernel message gets into the middle of a line.
results=/tmp/results
nr_results=0
: >$results

# lane host has one of its own, which knows where the lane began; busybox would prefer its own
[ ! -e /dmesg ] || dmesg() { /dmesg "$@"; }

# result STATUS TEST [WHY]
result()
{
	nr_results=$((nr_results + 1))
	echo "    $1 $nr_results $2${3:+ $3}" >>$results
}

# check TEST CMD...: passes when CMD succeeds; what a failing CMD says is the reason
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

# skip TEST WHY
skip() { result ok "$1" "# SKIP $2"; }

log() { while IFS= read -r line; do echo "$line" >/dev/kmsg; done; }

# loaded: our modules, last one first
loaded() { sed -n 's/^\(pmuk[a-z_]*\|pmu_kapi\) .*/\1/p' /proc/modules; }

# since CMD...: what the kernel says while CMD runs
since()
{
	lines=$(dmesg | wc -l)
	"$@" || return
	dmesg | tail -n +$((lines + 1))
}

# hold_task_events: perf core's code for tasks' events is patched in once, now, while there is one CPU. Debian's
# QEMU may keep an old translation if one CPU patches code while another CPU translates it (vm/qemu/text.patch): a CPU
# that does not see this patch leaves a task's event on its PMU when the task goes, for ever, and then perf core waits
# for it as long.
hold_task_events()
{
	for online in 0 1; do
		for cpu in /sys/devices/system/cpu/cpu[1-9]*; do echo $online >"$cpu/online"; done
		[ $online -eq 1 ] || { perf stat -e dummy -o /dev/null sleep 1000000 2>/dev/null & sleep 1; }
	done
}

# has_x86_pmu: whether this is x86 with counters, which interrupt by NMI
has_x86_pmu() { [ -e /sys/bus/event_source/devices/cpu ]; }

# nothing_left: no module of ours, no PMU of ours
nothing_left()
{
	loaded
	find /sys/bus/event_source/devices -name 'pmuk*'
	[ -z "$(loaded; find /sys/bus/event_source/devices -name 'pmuk*')" ]
}

# sched_says LINE...: each is one of those that /proc/pmuk_sched/cpus begins with, and time has been accounted
sched_says()
{
	cat /proc/pmuk_sched/cpus
	for line in 'state on' "$@"; do grep -qxF "$line" /proc/pmuk_sched/cpus || return; done
	awk '$1 == "cpu" && $3 <= 0 { bad = 1 } END { exit bad }' /proc/pmuk_sched/cpus
}

# sched_counts FIELD: and on each CPU its tasks, or idle, have counted: FIELD of the counts is more than 0
sched_counts()
{
	awk -v field="$1" '$1 == "cpu" { tasks[$2] = $(8 + field) }
			   $1 == "idle" && tasks[$2] + $(4 + field) <= 0 { bad = 1 }
			   END { exit bad }' /proc/pmuk_sched/cpus
}

# shellcheck disable=SC2034	# theirs to use
sched_programs='sched_cgroups sched_params sched_raw sched_readers sched_reasons sched_stats sched_storm sched_stream'

# no_leaks: of memory that is still allocated, everything is still known to somebody
no_leaks()
{
	echo scan >/sys/kernel/debug/kmemleak
	sleep 6		# younger than that does not count
	echo scan >/sys/kernel/debug/kmemleak
	cat /sys/kernel/debug/kmemleak
	[ -z "$(cat /sys/kernel/debug/kmemleak)" ]
}

# kunit SUITE...: runs them, in KTAP of one document each; with SUITE=, some may not be there
kunit()
{
	for suite in "$@"; do
		[ -e "/sys/kernel/debug/kunit/$suite" ] || continue
		printf 'KTAP version 1\n1..1\n' | log
		echo 1 >"/sys/kernel/debug/kunit/$suite/run"
	done
}

# suites: of KUnit's, ours
suites() { for suite in /sys/kernel/debug/kunit/pmuk_*; do echo "${suite##*/}"; done; }

# all_interrupts: when the PMU's interrupts take long, as they do where the host is busy, perf core allows less and
# less of them, down to one each tick, and throttles the rest. Now it does not.
all_interrupts() { echo 0 >/proc/sys/kernel/perf_cpu_time_max_percent; }

# kselftest PROGRAM...: their TAP, each a document of its own; one that does not come to its end
# leaves tests out, or fails by its status
kselftest()
{
	for program in "$@"; do
		status=0
		"$program" >/tmp/tap 2>&1 || status=$?
		{
			printf 'KTAP version 1\n1..1\n    KTAP version 1\n    # Subtest: %s\n' "$program"
			sed -E -n -e 's/^/    /' -e '/^    (not )?ok |^    1\.\.|^    # /p' /tmp/tap
			if [ "$status" -eq 0 ]; then echo "ok 1 $program"; else echo "not ok 1 $program"; fi
		} | log
	done
}

# report: the results as KTAP, and errors that the kernel printed, for the judge
# shellcheck disable=SC2154	# $guest is theirs
report()
{
	{
		printf 'KTAP version 1\n1..1\n'
		printf '    KTAP version 1\n    # Subtest: %s\n    1..%s\n' "$guest" "$nr_results"
		cat $results
		if grep -q '^    not ok' $results; then echo "not ok 1 $guest"; else echo "ok 1 $guest"; fi
	} | log
	# level 3 and below; and of what is ours warnings, too. KUnit's own words, indented, are no news.
	dmesg -r | sed -n -e '/^<.>\[[^]]*\]     /d' -e '/^<[0-3]>/p' -e '/^<4>\[[^]]*\] pmuk/p' |
		sed 's/^<.>\[[^]]*\] /pmuk-vm: error: /' | log
}
