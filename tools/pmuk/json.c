// SPDX-License-Identifier: GPL-2.0
/*
 * Writes JSON. Names of tasks may have any bytes: those that are not UTF-8 become U+FFFD.
 */
#include "pmuk.h"

/* Returns the length of the sequence that begins with @first, or 0 if none does. */
static int announced(unsigned char first)
{
	if (first < 0x80)
		return 1;
	if (first >= 0xc2 && first <= 0xdf)
		return 2;
	if (first >= 0xe0 && first <= 0xef)
		return 3;
	return first >= 0xf0 && first <= 0xf4 ? 4 : 0;
}

/* Only the second byte shows an overlong sequence, a surrogate, or a character past U+10FFFF. */
static bool second_fits(unsigned char first, unsigned char second)
{
	switch (first) {
	case 0xe0:	return second >= 0xa0;
	case 0xed:	return second < 0xa0;
	case 0xf0:	return second >= 0x90;
	case 0xf4:	return second < 0x90;
	default:	return true;
	}
}

int utf8_length(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	int i, length = announced(*s);

	for (i = 1; i < length; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	return length > 1 && !second_fits(s[0], s[1]) ? 0 : length;
}

static void put_string(FILE *out, const char *text)
{
	int length;

	fputc('"', out);
	for (; *text; text += length ? length : 1) {
		length = utf8_length(text);
		if (!length)
			fputs("\\ufffd", out);
		else if (*text == '"' || *text == '\\')
			fprintf(out, "\\%c", *text);
		else if ((unsigned char)*text < ' ' || *text == 127)
			fprintf(out, "\\u%04x", (unsigned char)*text);
		else
			fwrite(text, 1, (size_t)length, out);
	}
	fputc('"', out);
}

static void begin(struct json *j, const char *key)
{
	if (j->comma)
		fputs(", ", j->out);
	j->comma = true;
	if (key) {
		put_string(j->out, key);
		fputs(": ", j->out);
	}
}

void json_open(struct json *j, const char *key, char bracket)
{
	begin(j, key);
	fputc(bracket, j->out);
	j->comma = false;
}

void json_close(struct json *j, char bracket)
{
	fputc(bracket, j->out);
	j->comma = true;
}

void json_end(struct json *j)
{
	fputc('\n', j->out);
	j->comma = false;
}

void json_text(struct json *j, const char *key, const char *text)
{
	begin(j, key);
	put_string(j->out, text);
}

void json_number(struct json *j, const char *key, u64 number)
{
	begin(j, key);
	if (number == NONE)
		fputs("null", j->out);
	else
		fprintf(j->out, "%llu", (unsigned long long)number);
}

void json_real(struct json *j, const char *key, double real)
{
	begin(j, key);
	if (real < 0)
		fputs("null", j->out);
	else
		fprintf(j->out, "%.6g", real);
}

void json_bool(struct json *j, const char *key, bool value)
{
	begin(j, key);
	fputs(value ? "true" : "false", j->out);
}

void json_totals(struct json *j, const struct reading *r, const struct totals *t)
{
	struct ratios ratios =
		ratios_of(t, event_index(r, "cycles"), event_index(r, "instructions"));
	int i;

	json_number(j, "run_ns", t->run);
	json_number(j, "wait_ns", t->wait);
	json_number(j, "voluntary", t->left[VOLUNTARY]);
	json_number(j, "same_cgroup", t->left[SAME]);
	json_number(j, "other_cgroup", t->left[OTHER]);
	json_bool(j, "valid", t->valid);
	json_open(j, "counts", '{');
	for (i = 0; i < r->nr_events; i++)
		if (event_index(r, r->events[i]) == i)
			json_number(j, r->events[i], t->counts[i]);
	json_close(j, '}');
	json_real(j, "ipc", ratios.ipc);
	json_real(j, "ghz", ratios.ghz);
}

void json_events(struct json *j, const struct reading *r)
{
	int i;

	json_open(j, "events", '[');
	for (i = 0; i < r->nr_events; i++)
		json_text(j, NULL, r->events[i]);
	json_close(j, ']');
}
