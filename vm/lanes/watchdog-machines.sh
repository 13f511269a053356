# shellcheck shell=bash
# The VMs of lanes watchdog and watchdog-x86, which source this file with $flavour set. In survives(), the guest
# survives its faults and reports its own tests. In boot_cases(), a fault ends the VM, and ended() judges its console
# log. The VMs run in virtual time: a busy host delays no CPU, and waiting takes no host time. Only watchdog-stopped,
# and all VMs of make test-long, run in real time, with a thread for each CPU. The load lasts 5 s (make test-long:
# 1200 s), or WATCHDOG_SECONDS.
# shellcheck disable=SC2154	# set there

"$vm/kernel" "$flavour"
"$vm/perf" "$(arch_of "$flavour")" >/dev/null
scratch
brief='' clock=$([ "${LONG-}" ] || echo --virtual)
seconds=${WATCHDOG_SECONDS:-$([ "${LONG-}" ] && echo 1200 || echo 5)}
kselftest=$("$vm/source")/tools/testing/selftests/watchdog/watchdog-test.c
tool=$scratch/watchdog-test
"$(cross "$(arch_of "$flavour")")gcc" -O2 -static -o "$tool" "$kselftest"

# machine NAME GUEST OPTION...: runs a VM with that guest script, and leaves log and ending (vm/boot's exit status) in
# $scratch/NAME. Some tests keep interrupts off for long; rcu_cpu_stall_suppress=1 silences RCU's warnings.
machine()
{
	local dir=$scratch/$1 guest=$2 ending=0 more=(--patience $((600 + seconds)))
	shift 2
	mkdir "$dir"
	[ ! "$clock" ] || more=("$clock" --append pmuk_virtual=1)
	"$vm/boot" "$flavour" --cpus 4 --quiet --log "$dir/log" "${more[@]}" \
		--append "log_buf_len=4M kunit.enable=0 pmuk_seconds=$seconds rcupdate.rcu_cpu_stall_suppress=1" \
		--add "$vm/lanes/guest.sh:/guest.sh" --add "$vm/lanes/wdt.sh:/wdt.sh" \
		--add "$vm/lanes/lockups.awk:/lockups.awk" --add "$tool" \
		${brief:+--pmu "$brief" --append "pmuk_brief=$brief"} --run "$vm/lanes/$guest.guest" "$@" || ending=$?
	echo "$ending" >"$dir/ending"
}

# asked SUITE: succeeds if SUITE is to run
asked()
{
	# shellcheck disable=SC2053	# the right side is a pattern
	[[ -z $suite || $1 == ${suite%%.*} ]]
}

# survives GUEST OPTION...: runs the tests of GUEST, which reports them itself; $brief: only tests
# of that PMU
survives()
{
	asked "${1//-/_}_guest${brief:+_$brief}" || return 0
	say "$lane: booting for $1${brief:+, in brief on $brief}"
	machine "$1${brief:+-$brief}" "$@"
}

# survivors: collects the logs of these machines; succeeds if all came to the end of their scripts
survivors()
{
	local dir ending status=0
	for dir in "$scratch"/watchdog*/; do
		[ -d "$dir" ] || continue	# SUITE= may leave out all
		cat "$dir/log" >>"$log" || status=1
		ending=$(cat "$dir/ending") || ending=1	# the lane was killed
		[ "$ending" -eq 0 ] || status=$ending
	done
	return "$status"
}

# ---- machines that end otherwise than by their script ----

# boot_cases CASE...: boots a machine for each CASE of watchdog-ends.guest, one after the other
boot_cases()
{
	local case
	asked watchdog_ends || return 0
	for case in "$@"; do
		say "$lane: booting for $case"
		machine "$case" watchdog-ends --append "pmuk_case=$case"
	done
}

number=0

# ended CASE TEST STATUS PATTERN...: prints TEST's result as KTAP. TEST passes if vm/boot ended the VM of CASE with exit
# status STATUS, and the VM's log matches each PATTERN, but none of those that begin with !
ended()
{
	local log=$scratch/$1/log ending test=$2 status=$3 result=ok pattern
	ending=$(cat "$scratch/$1/ending")
	shift 3
	for pattern in "$@"; do
		case $pattern in
		!*)	! grep -Eq "${pattern#!}" "$log" || { result='not ok'; echo "    # $test: said: ${pattern#!}"; } ;;
		*)	grep -Eq "$pattern" "$log" || { result='not ok'; echo "    # $test: not said: $pattern"; } ;;
		esac
	done
	[ "$ending" = "$status" ] || { result='not ok'; echo "    # $test: ended with $ending"; }
	[ "$result" = ok ] || tail -60 "$log" | sed "s/^/    # $test: /"
	number=$((number + 1))
	echo "    $result $number $test"
	[ "$result" = ok ] || failed=y
}

reset=125	# the status of vm/boot if the machine did not come to the end of its script

spinning=('test_lockup: START.*all_cpus.*disable_irq' '!Finish on CPU')

# ends: judges the machines that a fault has ended
ends()
{
	asked watchdog_ends || return 0
	failed=''
	printf 'KTAP version 1\n1..1\n    KTAP version 1\n    # Subtest: watchdog_ends\n    1..10\n'
	ended hardlockup hardlockup_panics $reset 'lkdtm: Performing direct entry HARDLOCKUP' \
		'pmuk_wdt: CPU1: Watchdog detected hard LOCKUP on cpu 1: interrupts are off for 1[0-9]{3} ms, in' '(  |RIP: 0010:)lkdtm_HARDLOCKUP' \
		'Kernel panic - not syncing: Hard LOCKUP'
	ended stacks panic_comes_after_all_stacks $reset 'hard LOCKUP|is stuck' 'lkdtm_HARDLOCKUP|lkdtm_do_action' \
		'NMI backtrace for cpu 0' 'NMI backtrace for cpu 2' 'NMI backtrace for cpu 3' 'Kernel panic - not syncing'
	ended neighbour_stacks neighbours_panic_comes_after_all_stacks $reset 'hard LOCKUP|stuck or halted' 'NMI backtrace for cpu 0' \
		'NMI backtrace for cpu 1' 'NMI backtrace for cpu 2' 'NMI backtrace for cpu 3' 'Kernel panic - not syncing'
	ended settings settings_ask_for_panic_and_stacks $reset 'pmuk_wdt: CPU1: .*hard LOCKUP' '! watchdog: CPU' 'NMI backtrace for cpu 0' 'Kernel panic - not syncing: Hard LOCKUP'
	ended all_spin device_restarts_while_all_spin $reset "${spinning[@]}" 'pmuk_wdt: no ping in time: restart'
	ended daemon_killed device_restarts_without_daemon $reset 'guest: daemon killed' 'pmuk_wdt: no ping in time: restart'
	ended pretimeout_panic pretimeout_panics_while_all_spin $reset "${spinning[@]}" 'pmuk_wdt: no ping: pretimeout of 2 s' \
		'Kernel panic - not syncing: pmuk_wdt: pretimeout'
	ended nowayout nowayout_restarts_after_magic_close $reset 'guest: closed' 'pmuk_wdt: no ping in time: restart'
	ended expiry_panic expiry_panics_while_all_spin $reset "${spinning[@]}" 'pmuk_wdt: no ping in time: panic' \
		'Kernel panic - not syncing: pmuk_wdt: no ping in time'
	ended panic panic_is_no_lockup $reset 'threshold 200 ms; CPUs watched by' \
		'Kernel panic - not syncing: sysrq triggered crash' 'Rebooting in 3 seconds' '!hard LOCKUP'
	echo "${failed:+not }ok 1 watchdog_ends"
}

# verdict: judges all machines
verdict()
{
	local status=0
	survivors || status=$?
	ends >>"$log" || status=1
	return $status
}
