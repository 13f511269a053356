// SPDX-License-Identifier: GPL-2.0
/*
 * A guest has the PMU for itself while it runs, beside counters of pmuk that count guests, too.
 * Needs x86, and kvm_amd or kvm_intel with enable_mediated_pmu=1.
 */
#include <sys/syscall.h>

#include "live.h"
#include "harness.h"

#ifdef __x86_64__

#include <linux/kvm.h>

#define MEMORY	0x10000
#define CODE	0x1000
#define ENTRIES	256

/* From the start: cx = 0xffff; count cx down to 0; write al to port 0x10; go to the start. */
static const uint8_t code[] = { 0xb9, 0xff, 0xff, 0xe2, 0xfe, 0xe6, 0x10, 0xeb, 0xf7 };

struct guest {
	int kvm, vm, vcpu;
	void *memory;
	struct kvm_run *run;
	size_t run_size;
};

/* Each returns 0, or -1 and errno. */

static int set_memory(struct guest *g)
{
	struct kvm_userspace_memory_region region = { .memory_size = MEMORY };

	g->memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (g->memory == MAP_FAILED)
		return -1;
	memcpy(g->memory + CODE, code, sizeof(code));
	region.userspace_addr = (uintptr_t)g->memory;
	return ioctl(g->vm, KVM_SET_USER_MEMORY_REGION, &region);
}

/* The guest has a PMU as KVM supports it. */
static int set_cpuid(struct guest *g)
{
	struct kvm_cpuid2 *cpuid = calloc(1, sizeof(*cpuid) + ENTRIES * sizeof(cpuid->entries[0]));
	int ret;

	if (!cpuid)
		return -1;
	cpuid->nent = ENTRIES;
	ret = ioctl(g->kvm, KVM_GET_SUPPORTED_CPUID, cpuid);
	if (!ret)
		ret = ioctl(g->vcpu, KVM_SET_CPUID2, cpuid);
	free(cpuid);
	return ret;
}

static int set_registers(struct guest *g)
{
	struct kvm_regs regs = { .rip = CODE, .rflags = 2 };
	struct kvm_sregs sregs;

	if (ioctl(g->vcpu, KVM_GET_SREGS, &sregs))
		return -1;
	sregs.cs.base = 0;
	sregs.cs.selector = 0;
	return ioctl(g->vcpu, KVM_SET_SREGS, &sregs) || ioctl(g->vcpu, KVM_SET_REGS, &regs) ?
		-1 : 0;
}

static int map_run(struct guest *g)
{
	g->run_size = ioctl(g->kvm, KVM_GET_VCPU_MMAP_SIZE, 0);
	g->run = mmap(NULL, g->run_size, PROT_READ | PROT_WRITE, MAP_SHARED, g->vcpu, 0);
	return g->run == MAP_FAILED ? -1 : 0;
}

/* A guest has the PMU for itself only if KVM emulates its local APICs. */
static int create_vm(struct guest *g)
{
	struct kvm_enable_cap apics = { .cap = KVM_CAP_SPLIT_IRQCHIP, .args = { 24 } };

	*g = (struct guest){ .kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC), .vm = -1, .vcpu = -1,
			     .memory = MAP_FAILED, .run = MAP_FAILED };
	if (g->kvm < 0)
		return -1;
	g->vm = ioctl(g->kvm, KVM_CREATE_VM, 0);
	if (g->vm < 0 || ioctl(g->vm, KVM_SET_TSS_ADDR, 0xfffbd000) ||
	    ioctl(g->vm, KVM_ENABLE_CAP, &apics))
		return -1;
	return set_memory(g);
}

/* KVM asks perf core here whether the guest can have the PMU. */
static int create_vcpu(struct guest *g)
{
	g->vcpu = ioctl(g->vm, KVM_CREATE_VCPU, 0);
	return g->vcpu < 0 || set_cpuid(g) || set_registers(g) || map_run(g) ? -1 : 0;
}

/* The guest runs until it has written @n times to its port. Returns false if it ends otherwise. */
static bool guest_runs(struct guest *g, unsigned int n)
{
	while (n--) {
		if (ioctl(g->vcpu, KVM_RUN, 0) || g->run->exit_reason != KVM_EXIT_IO)
			return false;
	}
	return true;
}

static void end(struct guest *g)
{
	if (g->run != MAP_FAILED)
		munmap(g->run, g->run_size);
	close(g->vcpu);
	close(g->vm);
	close(g->kvm);
	if (g->memory != MAP_FAILED)
		munmap(g->memory, MEMORY);
}

FIXTURE(kvm)
{
	struct guest guest;
};

FIXTURE_SETUP(kvm)
{
	if (create_vm(&self->guest))
		SKIP(return, "no KVM: %s", strerror(errno));
}

FIXTURE_TEARDOWN(kvm)
{
	end(&self->guest);
}

/* Creates an event of perf that counts cycles of the host and of guests. Returns a file or -1. */
static int perf_event(void)
{
	struct perf_event_attr attr = {
		.type	= PERF_TYPE_HARDWARE,
		.size	= sizeof(attr),
		.config	= PERF_COUNT_HW_CPU_CYCLES,
	};

	return syscall(SYS_perf_event_open, &attr, -1, 0, -1, 0);
}

/* A context of pmuk that counts cycles of the host and of guests, on all CPUs. Returns a file. */
static int context(struct __test_metadata *_metadata)
{
	struct pmuk_live_attr attr = live_clock(0);
	int fd = live_open();

	ASSERT_GE(fd, 0);
	attr.type = PERF_TYPE_HARDWARE;
	attr.config = PERF_COUNT_HW_CPU_CYCLES;
	EXPECT_EQ(live_create(fd, attr), 0);
	return fd;
}

/* perf's events keep guests away, and guests keep these away: this is a guest with the PMU. */
TEST_F(kvm, guest_has_the_pmu)
{
	int fd = perf_event();

	ASSERT_GE(fd, 0);
	EXPECT_EQ(create_vcpu(&self->guest), -1);
	EXPECT_EQ(errno, EBUSY);
	close(fd);
	ASSERT_EQ(create_vcpu(&self->guest), 0);
	EXPECT_TRUE(guest_runs(&self->guest, 3));
	EXPECT_EQ(perf_event(), -1);
	EXPECT_EQ(errno, EOPNOTSUPP);
}

TEST_F(kvm, counters_keep_no_guest_away)
{
	int fd = context(_metadata);
	struct pmuk_live_cpu at;

	ASSERT_EQ(create_vcpu(&self->guest), 0);
	EXPECT_TRUE(guest_runs(&self->guest, 30));
	EXPECT_EQ(live_look(fd, 0, &at), 0);
	EXPECT_GT(at.counts[0], 0);
	EXPECT_EQ(at.counter_lost, 0);
	close(fd);
}

TEST_F(kvm, guests_keep_no_counter_away)
{
	struct pmuk_live_cpu at;
	int fd;

	ASSERT_EQ(create_vcpu(&self->guest), 0);
	EXPECT_TRUE(guest_runs(&self->guest, 3));
	fd = context(_metadata);
	EXPECT_TRUE(guest_runs(&self->guest, 30));
	EXPECT_EQ(live_look(fd, 0, &at), 0);
	EXPECT_GT(at.counts[0], 0);
	close(fd);
}

#else

TEST(needs_x86)
{
	SKIP(return, "no guest of this architecture has the PMU for itself");
}

#endif

TEST_HARNESS_MAIN
