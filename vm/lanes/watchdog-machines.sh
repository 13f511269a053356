# shellcheck shell=bash
# For the lanes of the watchdog: its machines. Some survive, and report themselves; those of a fault that does not
# end are judged by what they have said before. There is load for 10 s, for 1200 s of make test-long, or for
# WATCHDOG_SECONDS. Sourced by the lanes, with $flavour.
# shellcheck disable=SC2154	# set there

"$vm/kernel" "$flavour"
"$vm/perf" "$(arch_of "$flavour")" >/dev/null
scratch
brief=''
seconds=${WATCHDOG_SECONDS:-$([ "${LONG-}" ] && echo 1200 || echo 10)}
kselftest=$("$vm/source")/tools/testing/selftests/watchdog/watchdog-test.c
tool=$scratch/watchdog-test
"$(cross "$(arch_of "$flavour")")gcc" -O2 -static -o "$tool" "$kselftest"

# machine GUEST OPTION...: one machine with that guest script, its log in $scratch/log
machine()
{
	"$vm/boot" "$flavour" --cpus 4 --quiet --log "$scratch/log" --patience $((300 + seconds)) \
		--append "log_buf_len=4M kunit.enable=0 pmuk_seconds=$seconds" \
		--add "$vm/lanes/guest.sh:/guest.sh" --add "$vm/lanes/wdt.sh:/wdt.sh" \
		--add "$vm/lanes/lockups.awk:/lockups.awk" --add "$tool" \
		${brief:+--pmu "$brief" --append "pmuk_brief=$brief"} --run "$vm/lanes/$1.guest" "${@:2}"
}

# asked SUITE: whether it is to run
asked()
{
	# shellcheck disable=SC2053	# a pattern on purpose
	[[ -z $suite || $1 == ${suite%%.*} ]]
}

# survives GUEST OPTION...: the guest's tests, by its own report; with $brief, those of that PMU
survives()
{
	local status=0
	asked "${1//-/_}_guest${brief:+_$brief}" || return 0
	say "$lane: booting for $1${brief:+, in brief on $brief}"
	machine "$@" || status=$?
	cat "$scratch/log" >>"$log"
	return $status
}

# ---- machines that end otherwise than by their script ----

number=0

# ended TEST STATUS PATTERN...: it ended so, and had said all of these before, and nothing of what begins with !
ended()
{
	local test=$1 status=$2 result=ok pattern
	shift 2
	for pattern in "$@"; do
		case $pattern in
		!*)	! grep -Eq "${pattern#!}" "$scratch/log" || { result='not ok'; echo "    # $test: said: ${pattern#!}"; } ;;
		*)	grep -Eq "$pattern" "$scratch/log" || { result='not ok'; echo "    # $test: not said: $pattern"; } ;;
		esac
	done
	[ "$ending" = "$status" ] || { result='not ok'; echo "    # $test: ended with $ending"; }
	[ "$result" = ok ] || tail -60 "$scratch/log" | sed "s/^/    # $test: /"
	number=$((number + 1))
	echo "    $result $number $test"
	[ "$result" = ok ] || failed=y
}

# dies CASE: runs the guest's part for it
dies()
{
	say "$lane: booting for $1"
	ending=0
	machine watchdog-ends --patience 120 --append "pmuk_case=$1" || ending=$?
}

reset=125	# what vm/boot says of a machine that did not come to the end of its script

spinning=('test_lockup: START.*all_cpus.*disable_irq' '!Finish on CPU')

ends()
{
	asked watchdog_ends || return 0
	failed=''
	printf 'KTAP version 1\n1..1\n    KTAP version 1\n    # Subtest: watchdog_ends\n    1..10\n'
	dies hardlockup
	ended hardlockup_panics $reset 'lkdtm: Performing direct entry HARDLOCKUP' \
		'pmuk_wdt: CPU1: Watchdog detected hard LOCKUP on cpu 1: interrupts are off for 1[0-9]{3} ms, in' '(  |RIP: 0010:)lkdtm_HARDLOCKUP' \
		'Kernel panic - not syncing: Hard LOCKUP'
	dies stacks
	ended panic_comes_after_all_stacks $reset 'hard LOCKUP|is stuck' 'lkdtm_HARDLOCKUP|lkdtm_do_action' \
		'NMI backtrace for cpu 0' 'NMI backtrace for cpu 2' 'NMI backtrace for cpu 3' 'Kernel panic - not syncing'
	dies neighbour_stacks
	ended neighbours_panic_comes_after_all_stacks $reset 'hard LOCKUP|stuck or halted' 'NMI backtrace for cpu 0' \
		'NMI backtrace for cpu 1' 'NMI backtrace for cpu 2' 'NMI backtrace for cpu 3' 'Kernel panic - not syncing'
	dies settings
	ended settings_ask_for_panic_and_stacks $reset 'pmuk_wdt: CPU1: .*hard LOCKUP' '! watchdog: CPU' 'NMI backtrace for cpu 0' 'Kernel panic - not syncing: Hard LOCKUP'
	dies all_spin
	ended device_restarts_while_all_spin $reset "${spinning[@]}" 'pmuk_wdt: no ping in time: restart'
	dies daemon_killed
	ended device_restarts_without_daemon $reset 'guest: daemon killed' 'pmuk_wdt: no ping in time: restart'
	dies pretimeout_panic
	ended pretimeout_panics_while_all_spin $reset "${spinning[@]}" 'pmuk_wdt: no ping: pretimeout of 2 s' \
		'Kernel panic - not syncing: pmuk_wdt: pretimeout'
	dies nowayout
	ended nowayout_restarts_after_magic_close $reset 'guest: closed' 'pmuk_wdt: no ping in time: restart'
	dies expiry_panic
	ended expiry_panics_while_all_spin $reset "${spinning[@]}" 'pmuk_wdt: no ping in time: panic' \
		'Kernel panic - not syncing: pmuk_wdt: no ping in time'
	dies panic
	ended panic_is_no_lockup $reset 'Kernel panic - not syncing: sysrq triggered crash' \
		'Rebooting in 3 seconds' '!hard LOCKUP'
	echo "${failed:+not }ok 1 watchdog_ends"
}
