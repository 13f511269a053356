# shellcheck shell=bash disable=SC2154
# The kernel tree that we build: Linux 7.3 with this checkout laid over it. Sourced after lib.sh.
#
# The cache has one tree per version. take_tree() brings the tree up to date and holds it: builds of
# one checkout share it, other checkouts wait until these builds have ended. Only files whose
# contents change get a new time, so only they are compiled again. .pmuk/ in the tree has the list
# of our files (manifest), the originals of the files that patches/7.3 changes (orig/), and the
# checkout whose copy the tree is (state).

# directories of the checkout that belong in a kernel tree
overlay=(arch include kernel drivers lib samples Documentation tools scripts)
patches=$top/patches/7.3
series=("$patches"/*.patch)	# vm/series may add to these

# our_files PATH...: prints the files in these PATHs of the checkout, without those that .gitignore names: what editors
# and compilers leave is not part of a tree. Nor are files whose names begin with a dot, except .kunitconfig, which
# kunit.py reads. A checkout may be without git.
our_files()
{
	(cd "$top" && rsync -rlnR --include=.kunitconfig --exclude='.*' --exclude-from=.gitignore --out-format=%n "$@" "$cache/none/") |
		grep -v '/$'
}

# all_our_files: prints the files of the checkout that belong in a kernel tree
all_our_files()
{
	local dir dirs=()
	for dir in "${overlay[@]}"; do [ ! -d "$top/$dir" ] || dirs+=("$dir"); done
	our_files "${dirs[@]}"
}

# find_tree: sets $version, $tree and $pmuk
find_tree()
{
	local deb
	if [ -n "${KSRC-}" ]; then
		KSRC=$(cd "$KSRC" 2>/dev/null && pwd -P) || die "KSRC is not a directory"
		[ -e "$KSRC/Kbuild" ] || die "KSRC=$KSRC is not a kernel tree"
		version=$(make -s -C "$KSRC" kernelversion)-$(sha1sum <<<"$KSRC" | head -c 8)
	else
		deb=$("$vm/apt" fetch linux-source-7.3)
		version=$(dpkg-deb -f "$deb" Version | tr -c 'A-Za-z0-9.\n' -)
	fi
	tree=$cache/src/$version pmuk=$cache/src/$version/.pmuk
	[ ! -d "$tree" ] || return 0
	lock "tree-$version"
	[ -d "$tree" ] || unpack_tree
	unlock
}

unpack_tree()
{
	local new=$cache/src/unpacking
	rm -rf "$new"
	mkdir -p "$new/tree"
	if [ -z "${KSRC-}" ]; then
		say "unpacking $(basename "$deb") (1.6 GB, about a minute)"
		dpkg-deb --fsys-tarfile "$deb" |
			tar -xO --wildcards './usr/src/linux-source-*.tar.xz' |
			xz -dc -T0 | tar -x -C "$new/tree" --strip-components=1
	fi
	mkdir "$new/tree/.pmuk"
	mv "$new/tree" "$tree"
	rmdir "$new"
}

# copy_tree: makes the tree a copy of the user's; our files stay in place, originals go to orig/
copy_tree()
{
	local built=(/.config /.config.old /.git /.pmuk /include/config '/include/generated'
		     '/arch/*/include/generated' '*.o' '*.ko' '*.a' '*.cmd' '*.mod' '*.mod.c' '/vmlinux*')
	say "copying $KSRC"
	touch "$tree/.pmuk/manifest"
	sed 's,^,/,' "$tree/.pmuk/manifest" |
		rsync -qrlpc --delete "${built[@]/#/--exclude=}" --exclude-from=- "$KSRC/" "$tree/"
	[ ! -d "$tree/.pmuk/orig" ] ||
		(cd "$tree/.pmuk/orig" && find . -type f) |
		rsync -rlpc --files-from=- "$KSRC/" "$tree/.pmuk/orig/"
}

# stage: prepares the files for the tree in $stage, and their names in .pmuk/manifest.new
stage()
{
	local file
	rm -rf "$stage"
	mkdir "$stage"
	all_our_files | rsync -lp --files-from=- "$top/" "$stage/"
	(cd "$stage" && find . -type f -printf '%P\n') | sort >"$pmuk/manifest.new"
	while read -r file; do
		die "$file is a file of Linux: change it in patches/7.3"
	done < <(comm -13 "$pmuk/manifest" "$pmuk/manifest.new" | linux_files)
	patched | while read -r file; do
		[ -e "$tree/$file" ] || die "patches/7.3 change $file, which Linux $version has not"
		[ -e "$pmuk/orig/$file" ] || keep "$file"
		(cd "$pmuk/orig" && cp -p --parents "$file" "$stage")
		echo "$file" >>"$pmuk/manifest.new"
	done
	for file in "$patches"/*.patch; do
		[ -e "$file" ] || break
		grep -q '^--- a/' "$file" || continue	# the patch only adds our files
		(cd "$stage" && patch -p1 -F0 -s --no-backup-if-mismatch) <"$file" >&2 ||
			die "patches/7.3/${file##*/} does not apply to Linux $version"
	done
	sort -u -o "$pmuk/manifest.new" "$pmuk/manifest.new"
}

# keep FILE: saves the original of FILE, as a whole or not at all
keep()
{
	mkdir -p "$(dirname "$pmuk/orig/$1")"
	cp -p "$tree/$1" "$pmuk/orig.new"
	mv "$pmuk/orig.new" "$pmuk/orig/$1"
}

# linux_files: reads names, and prints those of files that the tree has and that are not ours
linux_files()
{
	while read -r file; do
		if [ -e "$tree/$file" ]; then echo "$file"; fi
	done
}

# original FILE: prints the path of Linux's own version of FILE
original()
{
	if [ -n "${KSRC-}" ]; then
		echo "$KSRC/$1"
	elif [ -e "$tree/.pmuk/orig/$1" ]; then
		echo "$tree/.pmuk/orig/$1"
	else
		echo "$tree/$1"
	fi
}

# patched: prints the files of Linux that the patches of $series change
patched() { cat "${series[@]}" 2>/dev/null | sed -n 's,^+++ b/\([^\t]*\).*,\1,p' | sort -u; }

# state: prints a checksum that differs between the trees of different checkouts.
# patches/7.3/conversions, first and later are only mailed.
state()
{
	{
		all_our_files
		our_files "${patches#"$top/"}" | grep -vE '^patches/7\.3/(conversions|first|later)(/|$)'
	} | tar -c -C "$top" --mtime=@0 --owner=0 --group=0 -T - | sha1sum
	# the user's tree may have changed since it was copied
	[ -z "${KSRC-}" ] || date +"copied by $$, %s.%N"
}

# take_tree: sets $tree, brings the tree up to date, and holds it until this script ends. Scripts that this one starts
# use the state in $PMUK_HELD, also if files have changed since: with a new state, they would wait for this script.
take_tree()
{
	local wanted
	find_tree
	if [[ ${PMUK_HELD-} != "$top "* ]]; then
		wanted=$(state)
	else
		wanted=${PMUK_HELD#"$top "}
		[ "${KSRC-}" ] || [ "$(state)" = "$wanted" ] || say "files have changed since this run began; it uses the old ones"
	fi
	until hold_tree; do update_tree; done
	export PMUK_HELD="$top $wanted"
}

# leave_tree: lets other checkouts have the tree
leave_tree() { unset PMUK_HELD; unlock; }

# hold_tree: holds the tree, or fails if it is another checkout's
hold_tree()
{
	lock "tree-$version" -s
	# older versions of this script renew the manifest, but not the state
	if [ "$(cat "$pmuk/state" 2>/dev/null)" = "$wanted" ] && [ ! "$pmuk/manifest" -nt "$pmuk/state" ]; then return; fi
	unlock
	return 1
}

update_tree()
{
	local file stage=$pmuk/stage
	lock "tree-$version"
	wanted=$(state)	# files may have changed while another checkout had the tree
	rm -f "$pmuk/state"
	[ -z "${KSRC-}" ] || copy_tree
	mkdir -p "$pmuk/orig"
	touch "$pmuk/manifest"
	stage
	# the manifest must also list files that an interrupted run leaves
	sort -mu -o "$pmuk/manifest.both" "$pmuk/manifest" "$pmuk/manifest.new"
	mv "$pmuk/manifest.both" "$pmuk/manifest"
	rsync -rlpc "$stage/" "$tree/"
	while read -r file; do
		drop "$file"
	done < <(comm -23 "$pmuk/manifest" "$pmuk/manifest.new")
	mv "$pmuk/manifest.new" "$pmuk/manifest"
	rm -rf "$stage"
	echo "$wanted" >"$pmuk/state"
	unlock
}

# drop FILE: restores the original of FILE, or removes it
drop()
{
	if [ -e "$pmuk/orig/$1" ]; then
		cp "$pmuk/orig/$1" "$tree/$1"
		rm "$pmuk/orig/$1"
	else
		rm -f "$tree/$1"
		rmdir -p --ignore-fail-on-non-empty "$tree/${1%/*}"
	fi
}
