# shellcheck shell=bash
# Shared by the scripts in vm/: messages, paths, locks, flavours. Sourced, not run.

set -euo pipefail
shopt -s inherit_errexit
export LC_ALL=C
# Clear the variables that make exports, and those that users export for kernels of their own.
unset MAKEFLAGS MFLAGS MAKELEVEL GNUMAKEFLAGS KBUILD_OUTPUT KBUILD_EXTMOD KBUILD_EXTRA_SYMBOLS KCFLAGS KCPPFLAGS
case ${0##*/} in modules|test) ;; *) unset LLVM ;; esac	# vm/modules may build for a kernel of clang

top=$(cd "${BASH_SOURCE[0]%/*}/.." && pwd -P)
# shellcheck disable=SC2034	# the scripts that source this file use it
vm=$top/vm build=$top/build jobs=${JOBS:-$(nproc)}
cache=${PMUK_CACHE:-$HOME/.cache/pmuk}
host_arch=$(dpkg --print-architecture)
mkdir -p "$cache"
cache=$(cd "$cache" && pwd -P)

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
die() { say "$*"; exit 1; }

[[ $top$cache != *[[:space:]]* ]] || die "paths without blanks, please: make cannot have them in $top or $cache"

# lock NAME [-s]: waits for NAME and holds it until unlock or the end of this script; with -s,
# others may share the lock. Programs that this script starts hold the lock, too, so a tree stays
# locked until its last compiler has ended.
lock()
{
	mkdir -p "$cache/lock"
	exec {locked}>"$cache/lock/$1"
	flock "${@:2}" -w 3 "$locked" && return
	say "waiting for another run to finish with $1"
	flock "${@:2}" "$locked"
}

# unlock: releases the latest lock
unlock() { flock -u "$locked"; exec {locked}>&-; }

# scratch: makes the directory $scratch, which is removed when this script ends
scratch()
{
	# killed runs leave such directories; unpacked archives may set mtime, so ctime counts
	find "$cache" -maxdepth 1 -name "tmp.*" -cmin +1440 -exec rm -rf {} +
	scratch=$(mktemp -d "$cache/tmp.XXXXXX")
	trap 'rm -rf "$scratch"' EXIT
	trap 'quit 129' HUP
	trap 'quit 130' INT
	trap 'quit 143' TERM
}

# quit STATUS: ends this script after a signal. make and terminals send more than one, and a second one would end what
# runs at the exit, such as stop_lanes.
quit()
{
	trap '' HUP INT TERM
	exit "$1"
}

# put FILE DEST: installs FILE as DEST atomically, if it differs
put()
{
	cmp -s "$1" "$2" && return
	mkdir -p "${2%/*}"
	cp "$1" "$2.$BASHPID" && mv "$2.$BASHPID" "$2"
}

# arch_of FLAVOUR: prints arm64 or x86_64
arch_of()
{
	case $1 in
	arm64|arm64-bench|stock-arm64)		echo arm64 ;;
	x86_64|x86-bench|x86-debug|x86-kcsan|stock-x86_64)		echo x86_64 ;;
	*) die "no flavour '$1' (arm64, arm64-bench, x86_64, x86-bench, x86-debug, x86-kcsan, stock-arm64, stock-x86_64)" ;;
	esac
}

# deb_arch ARCH: prints Debian's name of ARCH
deb_arch()
{
	case $1 in
	arm64)	echo arm64 ;;
	x86_64)	echo amd64 ;;
	*) die "no architecture '$1' (arm64, x86_64)" ;;
	esac
}

# cross ARCH: prints the prefix of the compiler's name, empty if this machine is of ARCH
cross()
{
	[ "$(deb_arch "$1")" = "$host_arch" ] && return
	case $1 in
	arm64)	echo aarch64-linux-gnu- ;;
	x86_64)	echo x86_64-linux-gnu- ;;
	esac
}

# image_of ARCH: prints the path of the boot image in a kernel build
image_of()
{
	case $1 in
	arm64)	echo arch/arm64/boot/Image ;;
	x86_64)	echo arch/x86/boot/bzImage ;;
	esac
}

# new_enough RELEASE: dies if pmuk does not build for the kernel RELEASE; dkms.conf has the same limit
new_enough()
{
	[ "$(printf '%s\n' 6.12 "$1" | sort -V | head -1)" = 6.12 ] || die "pmuk needs Linux 6.12 or later, this is $1"
}

# make_in DIR ARG...: run make with ARGs, which builds in DIR. make considers a file complete if the file is newer than
# its sources. But a killed build may leave half an object, or a .cmd file of kbuild without the versions of the
# symbols. The file .unfinished marks a build that was killed or has failed. The next make_in first removes the
# objects of that build's last minute; sources may stand beside them.
make_in()
{
	local dir=$1 mark=$1/.unfinished last
	local products=('(' -name '*.o' -o -name '*.a' -o -name '*.ko' -o -name '*.mod*' -o -name '.*.cmd' -o -name 'vmlinux*' ')')
	if [ -e "$mark" ]; then
		say "the last build in $dir did not come to its end; building again what is of its last minute"
		last=$(find "$dir" -type f "${products[@]}" -newer "$mark" -printf '%T@\n' | sort -n | tail -1)
		[ -z "$last" ] ||
			find "$dir" -type f "${products[@]}" -newer "$mark" -newermt "@$((${last%.*} - 60))" -delete
	fi
	touch "$mark"
	make "${@:2}" && rm "$mark"
}

# watched LOG CMD...: runs CMD with all output to LOG, and prints a line of progress now and then;
# if CMD fails, prints its errors
watched()
{
	local log=$1; shift
	mkdir -p "${log%/*}"
	if ! "$@" 2>&1 | tee "$log" | progress; then
		grep -vE '^ +[A-Z]+ ' "$log" | grep -iE 'error|undefined|no rule|\*\*\*' | head -20 >&2 ||
			tail -5 "$log" >&2
		die "failed; everything it said is in $log"
	fi
}

progress()
{
	awk '/warning:/ { print; fflush() }
	     /^ +(CC|LD|AR|AS|HOSTCC|HOSTLD) / && ++n % 100 == 0 { printf "    %d files\n", n; fflush() }' >&2
}

# build_qemu: builds QEMU with a PMU for x86, and for arm64, if it is not built yet. Writes the
# command of x86's to $scratch/qemu, and the build's messages to $scratch/why
build_qemu() { { "$vm/qemu/build" x86_64 2>&1 >&3 | tee "$scratch/why" >&2; } 3>"$scratch/qemu"; }

# no_qemu: called when the build has failed. Scripts that this one starts get the reason, and do not
# build again
no_qemu()
{
	export PMU=none PMUK_NO_PMU
	PMUK_NO_PMU=$(tail -1 "$scratch/why" | sed 's/^[a-z]*: //')
}

# find_pmu: gets QEMU with a PMU for x86, unless no PMU is wanted
find_pmu() { [ "${PMU-}" = none ] || [ "${KVM-}" ] || build_qemu || no_qemu; }
