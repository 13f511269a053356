// SPDX-License-Identifier: GPL-2.0
/*
 * Formats numbers for people: three significant digits and a unit.
 */
#include <string.h>

#include "pmuk.h"

struct ratios ratios_of(const struct totals *t, int cycles, int instructions)
{
	struct ratios r = { -1, -1 };
	u64 c = cycles < 0 ? NONE : t->counts[cycles];
	u64 i = instructions < 0 ? NONE : t->counts[instructions];

	if (c == NONE)
		return r;
	if (t->run && t->run != NONE)
		r.ghz = (double)c / (double)t->run;
	if (i != NONE && c)
		r.ipc = (double)i / (double)c;
	return r;
}

static char *three_digits(char *cell, double value, const char *unit)
{
	int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;

	snprintf(cell, CELL, "%.*f%s", decimals, value, unit);
	return cell;
}

char *format_ns(char *cell, u64 ns)
{
	if (ns == NONE)
		return strcpy(cell, "-");
	if (ns < 1000)
		snprintf(cell, CELL, "%uns", (unsigned int)ns);
	else if (ns < 999500)
		three_digits(cell, (double)ns / 1e3, "us");
	else if (ns < 999500000)
		three_digits(cell, (double)ns / 1e6, "ms");
	else if (ns < 99999 * NSEC)
		three_digits(cell, (double)ns / 1e9, "s");
	else
		three_digits(cell, (double)ns / 3.6e12, "h");
	return cell;
}

char *format_count(char *cell, u64 count)
{
	static const char *const units[] = { "k", "M", "G", "T", "P", "E" };
	double value = (double)count;
	size_t i;

	if (count == NONE)
		return strcpy(cell, "-");
	if (count < 10000) {
		snprintf(cell, CELL, "%u", (unsigned int)count);
		return cell;
	}
	for (i = 0; i < ARRAY_SIZE(units) - 1 && value >= 999500; i++)
		value /= 1000;
	return three_digits(cell, value / 1000, units[i]);
}

char *format_ratio(char *cell, double ratio, bool valid)
{
	if (ratio < 0)
		return strcpy(cell, "-");
	return three_digits(cell, ratio, valid ? "" : "?");
}

char *format_percent(char *cell, u64 part, u64 all)
{
	if (part == NONE || !all)
		return strcpy(cell, "-");
	snprintf(cell, CELL, "%.1f", 100.0 * (double)part / (double)all);
	return cell;
}

/* Counts one column for each character, also for those that terminals show in two. */
int put_text(FILE *out, const char *text, int width)
{
	int columns = 0, length;

	for (; *text; text += length, columns++) {
		length = utf8_length(text);
		if (width && columns == width - 1 && text[length ? length : 1]) {
			fputc('+', out);
			return width;
		}
		if (!length || (unsigned char)*text < ' ' || *text == 127 ||
		    (length == 2 && (unsigned char)text[0] == 0xc2 &&
		     (unsigned char)text[1] < 0xa0)) {
			fputc('?', out);
			length = length ? length : 1;
		} else {
			fwrite(text, 1, (size_t)length, out);
		}
	}
	return columns;
}
