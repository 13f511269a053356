# shellcheck shell=bash disable=SC2154
# Decides when each lane of vm/test runs: as soon as its builds are done, and as many side by side
# as the CPUs allow. Sourced by vm/test, which has one_lane() and ended_lane().

# needs LANE: prints the builds that LANE needs: kernels, perf and QEMU, by the names of
# build()
needs()
{
	case $1 in
	arm64|icount|watchdog)			echo arm64 perf-arm64 qemu ;;
	stock-arm64)				echo stock-arm64 perf-arm64 qemu ;;
	stock-x86_64|host-vm)			echo stock-x86_64 qemu ;;
	x86-pmu|x86-icount|watchdog-x86)	echo x86_64 perf-x86_64 qemu ;;
	x86-debug|torture)			echo x86-debug perf-x86_64 qemu ;;
	x86-kcsan)				echo x86-kcsan qemu ;;
	mutants)				echo perf-arm64 qemu ;;
	esac
}

build()
{
	case $1 in
	qemu)	build_qemu ;;
	perf-*)	"$vm/perf" "${1#perf-}" >/dev/null ;;
	*)	"$vm/kernel" "$1" ;;
	esac
}

# wants_qemu: succeeds unless lanes use Debian's QEMU
wants_qemu() { [ "${PMU-}" != none ] && [ ! "${KVM-}" ]; }

# groups NEED: prints the groups of packages for NEED
groups()
{
	case $1 in
	static)		echo build check plot arm64 x86_64 modules stock-arm64 stock-x86_64 ;;
	user)		echo user ;;
	host)		echo modules "$(uname -m | sed s/aarch64/arm64/)" ;;
	qemu)		if wants_qemu; then echo qemu; fi ;;
	perf-*)		echo build perf "${1#perf-}" ;;
	stock-*)	echo modules "${1#stock-}" "$1" ;;
	arm64)		echo build arm64 ;;
	first)		echo series build arm64 ;;
	mutants)	echo build arm64 x86_64 modules stock-arm64 ;;
	x86*)		echo build x86_64 ;;
	esac
}

# install_packages: installs packages for all lanes in $queue now, because jobs in the background
# cannot ask for sudo's password
install_packages()
{
	local lane need wanted=()
	for lane in "${queue[@]}"; do
		for need in "$lane" $(needs "$lane"); do read -ra wanted <<<"${wanted[*]} $(groups "$need")"; done
	done
	[ ${#wanted[@]} -eq 0 ] || "$vm/packages" "${wanted[@]}"
}

# kind LANE: an "alone" lane measures real time on all CPUs, so no "machine" lane runs beside it. A "beside" lane has no
# VM, or only VMs in virtual time: the host's speed does not matter to it, and it runs at the lowest priority. Any other
# lane is a "machine" lane; lane watchdog is one because of its VM in real time (watchdog-stopped). Of these, a "wide"
# lane has a VM whose three or four CPUs are busy together, so only one of them runs at a time.
kind()
{
	case ${LONG:+long-}$1 in
	long-watchdog*|*host|*mutants)			echo alone ;;
	*static|*user|*model|*first|*icount|watchdog-x86)	echo beside ;;
	*x86-debug|*x86-kcsan|*torture)			echo wide ;;
	*)						echo machine ;;
	esac
}

# running: the lane or build of each process; began: its start. built: needs that are built, or that
# cannot be built; a lane then says why.
declare -A running=() began=() built=()
queue=() building=''

# is_ready LANE: succeeds if all that LANE needs is built
is_ready()
{
	local need
	for need in $(needs "$1"); do [ "${built[$need]-}" ] || return; done
}

# nr_running KIND: prints the number of running lanes of KIND
nr_running()
{
	local job n=0
	for job in "${running[@]}"; do
		case $job in
		build:*)	;;
		*)		[ "$(kind "$job")" != "$1" ] || n=$((n + 1)) ;;
		esac
	done
	echo "$n"
}

# may_start LANE: succeeds if the builds for LANE are done and LANE may start now. As many "machine"
# lanes as CPUs run at a time, because most tests keep only one CPU of their VM busy, and as many
# "beside" lanes. Of "machine" lanes, one may be "wide". An "alone" lane runs without "machine" lanes and other "alone"
# lanes.
may_start()
{
	local machines wide alone
	is_ready "$1" || return
	wide=$(nr_running wide) machines=$(($(nr_running machine) + wide)) alone=$(nr_running alone)
	case $(kind "$1") in
	alone)		[ $((machines + alone)) -eq 0 ] ;;
	beside)		[ "$(nr_running beside)" -lt "$jobs" ] ;;
	machine)	[ "$alone" -eq 0 ] && [ "$machines" -lt "$jobs" ] ;;
	wide)		[ "$wide" -eq 0 ] && [ "$alone" -eq 0 ] && [ "$machines" -lt "$jobs" ] ;;
	esac
}

# begin NAME COMMAND...: runs COMMAND in the background, in a process group of its own, which
# stop_lanes can kill
begin()
{
	set -m
	"${@:2}" </dev/null &
	set +m
	# shellcheck disable=SC2034	# vm/test prints the time that is left
	running[$!]=$1 began[$1]=$SECONDS
}

# begin_build: starts the next build that a lane needs, at the lowest priority
begin_build()
{
	local lane need
	[ ! "$building" ] || return 0
	for lane in "${queue[@]}"; do
		for need in $(needs "$lane"); do
			[ ! "${built[$need]-}" ] || continue
			if [ "$need" = qemu ] && ! wants_qemu; then built[qemu]=y; continue; fi
			building=$need
			begin "build:$need" nice_build "$need"
			return
		done
	done
}

nice_build() { renice -n 19 $BASHPID >/dev/null; build "$1"; }

begin_lanes()
{
	local lane left=()
	for lane in "${queue[@]}"; do
		if may_start "$lane"; then
			say "$lane: started"
			begin "$lane" one_lane
		else
			left+=("$lane")
		fi
	done
	queue=(${left[@]+"${left[@]}"})
}

# ended JOB STATUS
ended()
{
	case $1 in
	build:qemu)	[ "$2" -eq 0 ] || no_qemu ;;
	build:*)	;;
	*)		ended_lane "$1"; return ;;
	esac
	building='' built[${1#build:}]=y
}

# run_lanes: runs all lanes in $queue, and the builds that they need. Do not call run_lanes, begin_build or begin_lanes
# as a condition ("if", "&&", "||"): bash would ignore set -e in the lanes, which would go on after a failed command.
run_lanes()
{
	local pid status job
	while :; do
		begin_build
		begin_lanes
		[ ${#running[@]} -gt 0 ] || break
		status=0
		wait -n -p pid "${!running[@]}" || status=$?
		job=${running[$pid]}
		unset "running[$pid]"
		ended "$job" "$status"
	done
}

# stop_lanes: kills all running lanes and builds, with their children
stop_lanes()
{
	local pid
	for pid in "${!running[@]}"; do kill -- "-$pid" 2>/dev/null || :; done
}
