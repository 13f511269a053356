// SPDX-License-Identifier: GPL-2.0
/*
 * Makes samples of perf.data from the module's records and packets. perf computes the increase of
 * each sum since the CPU's previous sample, and shows no sample where that is 0. So a slice of the
 * idle task counts for "idle" and not for "run", and that of another task the other way round.
 */
#include <string.h>

#include "recording.h"

static const char *const hardware[] = {
	[PERF_COUNT_HW_CPU_CYCLES] = "cycles",
	[PERF_COUNT_HW_INSTRUCTIONS] = "instructions",
	[PERF_COUNT_HW_CACHE_REFERENCES] = "cache-references",
	[PERF_COUNT_HW_CACHE_MISSES] = "cache-misses",
	[PERF_COUNT_HW_BRANCH_INSTRUCTIONS] = "branches",
	[PERF_COUNT_HW_BRANCH_MISSES] = "branch-misses",
	[PERF_COUNT_HW_BUS_CYCLES] = "bus-cycles",
	[PERF_COUNT_HW_STALLED_CYCLES_FRONTEND] = "stalled-cycles-frontend",
	[PERF_COUNT_HW_STALLED_CYCLES_BACKEND] = "stalled-cycles-backend",
	[PERF_COUNT_HW_REF_CPU_CYCLES] = "ref-cycles",
};

const char *event_name(u32 type, u64 config)
{
	static char numbers[40];

	if (type == PERF_TYPE_HARDWARE && config < ARRAY_SIZE(hardware))
		return hardware[config];
	if (type == PERF_TYPE_SOFTWARE && config == PERF_COUNT_SW_CPU_CLOCK)
		return "cpu-clock";
	snprintf(numbers, sizeof(numbers), "%u:%llx", type, (unsigned long long)config);
	return numbers;
}

/* Makes @attr count the event. If only the module knows the name, @attr stays a dummy. */
static void encode(struct perf_event_attr *attr, const char *name)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(hardware); i++) {
		if (strcmp(hardware[i], name))
			continue;
		attr->type = PERF_TYPE_HARDWARE;
		attr->config = i;
	}
}

static void define(struct perfdata *file, const char *name, u64 config)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = config,
		.sample_period = 1,
		.sample_type = RECORDING_SAMPLE_TYPE,
		.read_format = RECORDING_READ_FORMAT,
		.sample_id_all = 1,
	};

	encode(&attr, name);
	perfdata_add_event(file, &attr, name);
}

void switches_begin(struct switches *s, struct perfdata *file, struct track *track,
		    const struct reading *events)
{
	unsigned int i;

	*s = (struct switches) { .file = file, .track = track, .nr_sums = SUM_COUNTS };
	define(file, "run", PERF_COUNT_SW_TASK_CLOCK);
	define(file, "wait", PERF_COUNT_SW_DUMMY);
	define(file, "idle", PERF_COUNT_SW_DUMMY);
	for (i = 0; i < RECORDING_COUNTS && i < (unsigned int)events->nr_events; i++) {
		define(file, events->events[i], PERF_COUNT_SW_DUMMY);
		s->nr_sums++;
	}
}

void switches_add_cpu(const struct switches *s, u32 cpu)
{
	unsigned int i;

	for (i = 0; i < s->nr_sums; i++)
		perfdata_add_id(s->file, i, recording_id(cpu, i));
}

static void add_up(struct cpu_switches *c, const struct slice *s)
{
	unsigned int i;

	c->sums[s->pid ? SUM_RUN : SUM_IDLE] += s->run;
	c->sums[SUM_WAIT] += s->wait;
	for (i = 0; i < RECORDING_COUNTS; i++)
		c->sums[SUM_COUNTS + i] += s->counts[i];
}

static void put_switch(const struct switches *s, struct cpu_switches *c, const struct slice *slice)
{
	struct recording_raw raw = {
		.size = sizeof(raw) - sizeof(raw.size),
		.next_tid = slice->next,
		.misc = slice->misc,
	};
	struct recording_sample sample = {
		.header = {
			.type = PERF_RECORD_SAMPLE,
			.size = (uint16_t)(sizeof(sample) + sizeof(raw) +
					   s->nr_sums * sizeof(*sample.sums)),
		},
		.id = recording_id(c->cpu, SUM_RUN),
		.pid = track_process(s->track, slice->pid),
		.tid = slice->pid,
		.time = slice->time,
		.cpu = c->cpu,
		.period = slice->run,
		.nr = s->nr_sums,
	};
	u64 sums[2 * NR_SUMS];
	unsigned int i;

	add_up(c, slice);
	for (i = 0; i < s->nr_sums; i++) {
		sums[2 * i] = c->sums[i];
		sums[2 * i + 1] = recording_id(c->cpu, i);
	}
	perfdata_put(s->file, &sample, sizeof(sample));
	perfdata_put(s->file, sums, s->nr_sums * sizeof(*sample.sums));
	perfdata_put(s->file, &raw, sizeof(raw));
}

static void put_lost(const struct switches *s, struct cpu_switches *c, u64 lost)
{
	const struct perfdata_id id = track_id(s->track, c->cpu);
	const u64 body[] = { recording_id(c->cpu, SUM_RUN), lost };

	if (lost)
		perfdata_put_record(s->file, PERF_RECORD_LOST, 0, body, sizeof(body), &id);
	c->lost += lost;
}

void switches_lost(const struct switches *s, struct cpu_switches *c, u64 lost)
{
	if (lost > c->lost)
		put_lost(s, c, lost - c->lost);
}

/* A record of the module, either of a switch or of losses. */
union record {
	struct perf_event_header header;
	struct pmuk_sched_switch one;
	struct {
		struct perf_event_header header;
		u64 id, lost;
	} lost;
};

static void put_record(const struct switches *s, struct cpu_switches *c, const union record *r)
{
	const struct pmuk_sched_switch *one = &r->one;

	if (r->header.type == PERF_RECORD_LOST)
		put_lost(s, c, r->lost.lost);
	if (r->header.type == PMUK_SCHED_RECORD_SWITCH)
		put_switch(s, c, &(struct slice) {
			.pid = one->prev_pid,
			.next = one->next_pid,
			.misc = one->header.misc,
			.time = one->time,
			.run = one->run,
			.wait = one->wait,
			.counts = { one->counts[0], one->counts[1] },
		});
}

void switches_records(const struct switches *s, struct cpu_switches *c,
		      const unsigned char *data, size_t size)
{
	union record r = {};
	size_t room;

	for (; size >= sizeof(r.header); data += r.header.size, size -= r.header.size) {
		room = size < sizeof(r) ? size : sizeof(r);
		memcpy(&r, data, room);
		if (r.header.size < sizeof(r.header) || r.header.size > size)
			die("CPU %u: its ring has a record of %u bytes where %zu are left", c->cpu,
			    r.header.size, size);
		put_record(s, c, &r);
	}
}

void switches_packets(const struct switches *s, struct cpu_switches *c,
		      const unsigned char *data, size_t size)
{
	struct slice slice;
	const char *fault;
	size_t length;

	for (; size; data += length, size -= length) {
		length = raw_packet(&c->raw, data, size, &slice, &fault);
		if (fault)
			die("CPU %u: its area has %s", c->cpu, fault);
		if (*data == PMUK_SCHED_RAW_MARK)
			switches_lost(s, c, c->raw.missing);
		else
			put_switch(s, c, &slice);
	}
}
