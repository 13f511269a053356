#!/bin/sh
# Runs a guest script on this machine and its own kernel, as root. vm/host makes ROOT.
#	host.sh check			prints a line and exits with 1 if our modules cannot be tested here
#	host.sh run ROOT		runs ROOT/script, and writes the kernel's messages to ROOT/log
# The script has a root directory and mounts of its own. Files that could harm a machine in use are
# read-only there, unless ROOT/rough exists. However the script ends, our modules are unloaded and
# settings are restored.

die() { echo "host: $*" >&2; exit 1; }
busybox() { "$root/bin/busybox" "$@"; }
kmsg() { echo "pmuk-host: $*" >/dev/kmsg; }

# ours: prints our modules, the latest first
ours() { sed -n 's/^\(pmuk[a-z_]*\|pmu_kapi\) .*/\1/p' /proc/modules; }

signed_only()
{
	[ "$(cat /sys/module/module/parameters/sig_enforce 2>/dev/null)" = Y ] ||
		grep -qsv '\[none\]' /sys/kernel/security/lockdown
}

check()
{
	[ "$(id -u)" -eq 0 ] || die "as root, please: modules are loaded on this machine"
	[ -w /dev/kmsg ] || die "no /dev/kmsg here: is this a container?"
	[ -r /proc/modules ] || die "this kernel has no modules"
	[ -z "$(ours)" ] || die "these are loaded, unload them first: $(ours | xargs)"
	! grep -q ' pmuk_counter_create$' /proc/kallsyms || die "pmuk is built into this kernel: its modules are for others"
	! signed_only || die "this kernel loads signed modules only (secure boot)"
}

# ---- settings ----

# for_now VALUE FILE: writes VALUE to FILE; restore() writes the former value back
for_now()
{
	[ -w "$2" ] || return 0
	echo "$2 $(cat "$2")" >>"$root/settings"
	echo "$1" >"$2" 2>/dev/null || :
}

settings()
{
	: >"$root/settings"
	for_now on /proc/sys/kernel/printk_devkmsg	# otherwise the kernel drops lines of results
	[ "$(cat /proc/sys/kernel/printk_devkmsg)" = on ] || die "the kernel's command line has another printk.devkmsg"
	for_now 0 /proc/sys/kernel/nmi_watchdog		# the kernel's detector takes a counter
	for_now 1 /sys/kernel/rcu_expedited		# some tests wait for hundreds of grace periods
	for_now 0 /proc/sys/kernel/perf_cpu_time_max_percent
	for_now 100000 /proc/sys/kernel/perf_event_max_sample_rate	# perf core may have lowered the rate
	for_now 1 /sys/bus/event_source/devices/cpu/rdpmc	# a test changes this file
}

# ---- the kernel's log ----

# record: writes the lines of /dev/kmsg as dmesg -r does, from our first marker to our last one. A
# reader that is too slow gets an error, and begins again with the oldest line; lines have numbers.
record()
{
	while ! recorded end && kill -0 $$; do
		busybox cat /dev/kmsg
		busybox usleep 50000
	done 2>/dev/null |
	busybox awk -v out="$root/log" -v begin="pmuk-host: begin $$" -v end="pmuk-host: end $$" '
		/^[0-9]+,[0-9]+,[0-9]+,/ {
			split($0, field, ",")
			if (field[2] + 0 < next_one)
				next
			if (begun && field[2] + 0 > next_one)
				print "pmuk-vm: error: lines of the log are lost" >>out
			next_one = field[2] + 1
			text = substr($0, index($0, ";") + 1)
			begun = begun || text == begin
			if (!begun)
				next
			head = sprintf("<%d>[%5d.%06d] ", field[1], field[3] / 1000000, field[3] % 1000000)
			gsub(/\\x09/, "\t", text)
			gsub(/\\x0a/, "\n" head, text)
			gsub(/\\x5c/, "\\", text)
			print head text >>out
			fflush(out)
			if (text == end)
				exit
		}'
}

recorded() { grep -qs "pmuk-host: $1 $$\$" "$root/log"; }

# mark WORD: writes a marker to the kernel's log, and waits until it is recorded
mark()
{
	kmsg "$1 $$"
	tries=600
	until recorded "$1"; do
		[ $((tries -= 1)) -gt 0 ] || return
		busybox usleep 50000
	done
}

# ---- the end ----

# A watchdog device that is not stopped keeps its module.
stop_device()
{
	for file in /sys/class/watchdog/watchdog*/pmuk_wdt; do
		[ ! -e "$file" ] || { file=${file%/pmuk_wdt}; echo V >"/dev/${file##*/}"; } 2>/dev/null || :
	done
}

unload()
{
	stop_device
	tries=5
	while [ "$(ours)" ] && [ $((tries -= 1)) -ge 0 ]; do
		for module in $(ours); do rmmod "$module" 2>/dev/null || :; done
		busybox usleep 500000
	done
	for module in $borrowed; do rmmod "$module" 2>/dev/null || :; done
	[ -z "$(ours)" ] || echo "host: these cannot be unloaded: $(ours | xargs)" >&2
}

# session: prints the living processes that the script has started
session()
{
	busybox grep -lE "^[0-9]+ \\(.*\\) [A-Y] [0-9]+ [0-9]+ $script " /proc/[0-9]*/stat 2>/dev/null |
		busybox sed 's,/proc/\(.*\)/stat,\1,'
}

# end_script: kills the script's processes, but waits for those that load a module: a module runs
# its tests while it is loaded, and a signal in between would leave the machine in an unknown state
end_script()
{
	for pid in $(session); do
		busybox grep -qsE 'insmod|modprobe' "/proc/$pid/comm" || kill -KILL "$pid" 2>/dev/null || :
	done
	tries=6000
	while [ "$(session)" ] && [ $((tries -= 1)) -gt 0 ]; do
		[ $tries -ne 5950 ] || echo 'host: waiting for the test that is under way' >&2
		busybox usleep 100000
	done
}

restore()
{
	trap '' HUP INT TERM
	trap - EXIT
	[ ! "$script" ] || end_script
	unload
	if recorded begin; then
		mark end
		kmsg ends	# a line wakes the reader, which then notices its end
	fi
	while read -r file value; do echo "$value" >"$file"; done <"$root/settings" 2>/dev/null
}

# ---- inside ----

read_only()
{
	[ -e "$1" ] || return 0
	mount -o bind "$1" "$1" || die "cannot protect $1"
	mount -o remount,bind,ro "$1" || die "cannot protect $1"
}

# protect: CPUs stay online, the machine awake, and pids plenty
protect()
{
	for file in "$root"/sys/devices/system/cpu/cpu[0-9]*/online "$root/sys/power" \
		"$root/proc/sys/kernel/pid_max" "$root/proc/sysrq-trigger"; do
		read_only "$file"
	done
}

inside()
{
	mount --make-rprivate /
	mkdir -p "$root/proc" "$root/sys" "$root/dev" "$root/tmp" "$root/root"
	mount -t proc proc "$root/proc"
	mount --rbind /sys "$root/sys"
	mount --rbind /dev "$root/dev"
	mount -t tmpfs tmpfs "$root/tmp"
	for name in debug:debugfs tracing:tracefs; do
		grep -q " /sys/kernel/${name%:*} ${name#*:} " /proc/mounts ||
			mount -t "${name#*:}" "${name#*:}" "$root/sys/kernel/${name%:*}"
	done
	busybox chroot "$root" /bin/busybox --install -s /bin 2>/dev/null || :
	mood=rough
	[ -e "$root/rough" ] || { mood=gentle; protect; }
	exec "$root/bin/busybox" chroot "$root" /bin/env -i PATH=/bin HOME=/root pmuk_host=$mood \
		pmuk_suites="$(cat "$root/suites")" pmuk_without="$(cat "$root/without")" /bin/sh /script
}

run()
{
	check
	rm -f "$root/log"
	borrowed='' script=''
	trap restore EXIT
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 143' TERM
	settings
	while read -r module; do
		[ ! -d "/sys/module/$module" ] || continue
		modprobe "$module" || die "the module $module cannot be loaded"
		borrowed="$module $borrowed"
	done <"$root/needs"
	record &
	mark begin || die "the kernel's log cannot be read"
	status=0
	# setsid is called directly, not by a function, so that $! is the leader of the session
	"$root/bin/busybox" setsid "$root/bin/busybox" unshare -m /bin/sh "$0" inside "$root" &
	script=$!
	wait $script || status=$?
	restore
	[ -z "$(ours)" ] || exit 1
	exit $status
}

root=${2-}
case ${1-} in
check)	check ;;
run)	run ;;
inside)	inside ;;
*)	die "usage: host.sh check | run ROOT" ;;
esac
