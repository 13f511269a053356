# Reads the kernel's log. For each lockup that pmuk_lockup or test_lockup made on one CPU, prints
# the CPU, the lockup's length, and the times of the reports by us and by the kernel's own detector,
# in thresholds (-: no report):
#	CPU LENGTH OURS THEIRS
# Also prints how many of our reports were of another CPU, of no lockup, or of a lockup already
# reported, if any:
#	alien NUMBER
# -v threshold=MILLISECONDS
function seconds() { match($0, /[0-9]+\.[0-9]+/); return substr($0, RSTART, RLENGTH) }
function part(when) { return when == "" ? "-" : sprintf("%.3f", (when - begin) * 1000 / threshold) }
function finish() {
	print cpu, part(seconds()), part(ours), part(theirs)
	begin = ""
}
/pmuk_lockup: CPU [0-9]+ begins/ { begin = seconds(); cpu = $(NF - 1); ours = theirs = ""; next }
/test_lockup: START/ { begin = seconds(); cpu = "?"; ours = theirs = ""; next }
/pmuk_wdt: CPU[0-9]+: Watchdog detected hard LOCKUP/ {
	if (begin == "" || ours != "" || (cpu != "?" && $0 !~ "on cpu " cpu ":"))
		alien++
	else
		ours = seconds()
}
begin == "" { next }
/[^_]watchdog: .*Watchdog detected hard LOCKUP/ && theirs == "" { theirs = seconds() }
/pmuk_lockup: CPU [0-9]+ ends/ || /test_lockup: FINISH/ { finish() }
END { if (alien) print "alien", alien }
