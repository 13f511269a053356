# shellcheck shell=sh
# Shared by guest scripts that let CPUs lock up. hear() moves the kernel's messages from the log to
# the file $heard, so that messages which no test expects are left in the log at the end.
wdt=/sys/class/watchdog/watchdog0/pmuk_wdt
heard=/tmp/heard
# In virtual time the host delays no report, so 20 lockups at random moments suffice. In real time, one report in ten
# may be late, and the tests make 60 lockups.
# shellcheck disable=SC2034	# guest scripts use it
nr_lockups=$([ "${pmuk_virtual-}" ] && echo 20 || echo 60)

# the names of the instruction pointer and a register in reports, and the function of test_lockup's
# workers
# shellcheck disable=SC2034	# guest scripts use it
case $(uname -m) in
x86_64)	pc='RIP: 0010:' register=RAX worker=test_lockup ;;
*)	pc='pc : ' register='x0 ' worker=test_work_fn ;;
esac

tracing=/sys/kernel/tracing

# trace EVENTS CMD...: writes the trace of EVENTS while CMD runs to /tmp/trace
trace()
{
	events=$1
	shift
	echo >$tracing/trace
	for event in $events; do echo 1 >$tracing/events/"$event"/enable || return; done
	"$@"
	status=$?
	for event in $events; do echo 0 >$tracing/events/"$event"/enable; done
	cp $tracing/trace /tmp/trace
	return $status
}

listen()
{
	dmesg -c | grep -E 'pmuk_wdt: .*(hard LOCKUP|no longer by)' >>/tmp/unheard
	: >$heard
}

# nothing_unheard: fails if a report came that no test has expected
nothing_unheard()
{
	listen
	cat /tmp/unheard
	[ ! -s /tmp/unheard ]
}

hear() { dmesg -c >>$heard; }

# says PATTERN: a message since listen matches PATTERN; if none does, prints the messages
says()
{
	hear
	grep -Eq "$1" $heard && return
	echo "not said: $1"
	tail -40 $heard
	return 1
}

# says_in SECONDS PATTERN: waits for a message that matches PATTERN, at most SECONDS
says_in()
{
	end=$(($(cut -d. -f1 /proc/uptime) + $1))
	until says "$2" >/tmp/unsaid; do
		[ "$(cut -d. -f1 /proc/uptime)" -le $end ] || { cat /tmp/unsaid; return 1; }
		sleep 0.05
	done
}

# said TIMES PATTERN: TIMES heard messages match PATTERN
said()
{
	times=$(grep -c "$2" $heard)
	[ "$times" -eq "$1" ] && return
	echo "said $times times: $2"
	return 1
}

says_not() { if says "$1" >/dev/null; then grep -E "$1" $heard; return 1; fi; }

# arm [PARAMETER...]: loads the watchdog
arm() { listen; modprobe pmuk_wdt "$@"; }
threshold() { echo "$1" >$wdt/threshold_ms; }

# set_timeout SECONDS [PRETIMEOUT]: sets the device's, while nobody has opened it
set_timeout() { watchdog-test -f /dev/watchdog0 -t "$1" -n "${2:-0}" -N >/dev/null; }

# open_device: opens the device as a daemon does, which pings it once
open_device() { exec 9>/dev/watchdog0; }
close_device() { exec 9>&-; }

# stop_device: V, written before the close, stops the device
stop_device() { echo V >&9; close_device; }

# is VALUE FILE: waits until FILE has VALUE, at most ten seconds
is()
{
	tries=100
	until [ "$(cat "$2")" = "$1" ]; do
		[ $((tries -= 1)) -gt 0 ] || { echo "$2: $(cat "$2")"; return 1; }
		sleep 0.1
	done
}

# level CPU NAME: waits until CPU has the level NAME
level() { is "$2" "/sys/devices/system/cpu/cpu$1/pmuk_wdt/level"; }

# levels: prints the levels of the online CPUs, each level once
levels()
{
	for cpu in /sys/devices/system/cpu/cpu[0-9]*; do
		[ "$(cat "$cpu/online" 2>/dev/null || echo 1)" = 0 ] || cat "$cpu/pmuk_wdt/level"
	done | sort -u | tr '\n' ' '
}

# levels_are NAME...: waits until these are the levels: each CPU's NMI has to fire first
levels_are()
{
	tries=10
	until [ "$(levels)" = "$* " ]; do
		if [ $((tries -= 1)) -eq 0 ]; then
			echo "levels: $(levels)"
			cat /sys/kernel/debug/pmuk/watchdog
			return 1
		fi
		sleep 0.3
	done
}

# test_lockup OPTION...: loads the kernel's module test_lockup, which locks up CPUs and then fails
# to load. busybox tries a failed load a second time. The module is compressed, which the kernel
# refuses, so only the second load counts.
test_lockup()
{
	gzip -c /modules/test_lockup.ko >/tmp/test_lockup.ko.gz
	insmod /tmp/test_lockup.ko.gz "$@" 2>/dev/null || :
}

# lockup HOW CPU MILLISECONDS: locks up CPU, see lib/tests/pmuk_lockup.c
lockup()
{
	[ -e /sys/kernel/debug/pmuk_lockup ] || modprobe pmuk_lockup || return
	echo "$1 $2 ${3}000000" >/sys/kernel/debug/pmuk_lockup
}

# stay: this shell and its children run on CPU 0 only, until roam: a process on a CPU that gets stuck does not go on
stay() { cpus 1; }
roam() { cpus "$(printf %x $(((1 << $(nproc --all)) - 1)))"; }
cpus() { taskset -p "$1" "$(exec sh -c 'echo $PPID')" >/dev/null; }	# in a subshell, $$ is another shell

# some_time MILLISECONDS: sleeps for a random time below that
some_time() { usleep $(($(od -An -N3 -tu4 /dev/urandom) % ($1 * 1000))); }

# lockups NUMBER MILLISECONDS THRESHOLD HOW: locks up CPUs by turns, at random moments; prints lines
# of lockups.awk
lockups()
{
	i=0
	listen
	while [ $i -lt "$1" ]; do
		some_time "$3"
		lockup "${4:-spin}" $((i % $(nproc))) "$2" || return
		i=$((i + 1))
	done
	sleep 0.2
	hear
	awk -v threshold="$3" -f /lockups.awk $heard
}

# caught NUMBER: lockups() has written NUMBER lines to /tmp/lockups, and each lockup was reported
# once, from 1.0 to 1.25 thresholds after it began. In real time, a busy host may delay one report
# in ten, up to 1.75: the host takes CPUs away from the guest, also CPUs that watch others.
caught()
{
	sort -n -k3 /tmp/lockups | sed -n -e '1p' -e "$(($1 / 2))p" -e '$p'
	awk -v wanted="$1" -v allowed="$([ "$pmuk_virtual" ] || echo "$(($1 / 10))")" '
		$3 == "-" || $3 < 1.0 || $3 > 1.75 || /^alien/ { bad++; print }
		$3 > 1.25 { late++; print }
		END { exit !(NR == wanted && !bad && late <= allowed + 0) }' /tmp/lockups
}
