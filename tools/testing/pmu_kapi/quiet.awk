# SPDX-License-Identifier: GPL-2.0
#
# Reads what objdump -d prints, and prints the addresses of quiet instructions: those that access
# registers and the stack below the stack pointer only, so that no other code can tell whether they
# have run. Whatever this does not know is not quiet.

BEGIN { FS = "\t" }

NF == 2 && $1 ~ /^ *[0-9a-f]+:$/ {
	text = $2
	sub(/ *[#<].*/, "", text)
	name = operands = text
	sub(/ .*/, "", name)
	sub(/^[^ ]* */, "", operands)
	if (name !~ /^(lea|nop)/ && !is_quiet(name, operands))
		next
	sub(/^ */, "", $1)
	sub(/:/, "", $1)
	print $1
}

function is_quiet(name, operands)
{
	if (name ~ /^(j[a-z]+|call|ret|leave|endbr64|cltq|cltd|cqto|cwtl)$/)
		return operands !~ /\(/
	if (name !~ /^(mov|add|adc|sub|sbb|and|or|xor|not|neg|inc|dec|cmp|test|sh|sa|ro|bt|bs|set|cmov|imul|mul|div|push|pop)/)
		return 0
	gsub(/-?(0x[0-9a-f]+)?\(%rsp\)/, "%stack", operands)
	return operands !~ /[(:]/ && operands !~ /(^|,)-?0x/
}
