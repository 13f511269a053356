// SPDX-License-Identifier: GPL-2.0
/*
 * The registry of formats, which handle the overflows of contexts. perf's own format is always
 * there. A format is in use, and its module stays, as long as a context has it.
 */
#define pr_fmt(fmt) "pmuk: " fmt

#include <linux/cleanup.h>
#include <linux/export.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/string.h>
#include <linux/wait_bit.h>

#include "context.h"
#include "format.h"
#include "registry.h"

static DEFINE_MUTEX(pmuk_formats_lock);

static LIST_HEAD_GUARDED(pmuk_formats, pmuk_formats_lock);

/* perf's format writes records as perf does, into the CPU's buffer if there is one. */
static int pmuk_perf_validate(const void *arg, size_t size, const struct pmuk_context_attr *attr)
{
	const struct pmuk_perf_format *perf = arg;
	const char *fault;
	u64 fields;

	if (!size)
		return 0;
	if (size != sizeof(*perf))
		return -EINVAL;
	fault = pmuk_fields_fault(perf->sample_type);
	if ((perf->sample_type & PERF_SAMPLE_AUX) && !attr->buffer.aux.nr_pages)
		fault = "PERF_SAMPLE_AUX, and buffers without AUX areas";
	if (fault) {
		pr_debug("create_context: perf's format: %s\n", fault);
		return -EINVAL;
	}
	fields = pmuk_unsupported_record_fields(perf->sample_type);
	if (!fields && !pmuk_unsupported_read_format(perf->read_format))
		return 0;
	pr_debug("create_context: perf's format: fields %#llx of sample_type, or read_format %#llx, not supported\n",
		 fields, perf->read_format);
	return -EOPNOTSUPP;
}

/* Most overflows write a record, so this counts the few that do not: see pmuk_inst_records(). */
static u32 pmuk_perf_handler(const struct pmuk_format_event *event)
{
	struct pmuk_slot *slot = event->counter->slot;
	u32 action = PMUK_FORMAT_RESET;

	if (!event->buffer ||
	    !pmuk_format_sample(event->counter, event->buffer, event->sample, event->data))
		atomic64_inc(&slot->inst->unwritten);
	if (event->notify)
		action |= PMUK_FORMAT_NOTIFY | (event->mask ? PMUK_FORMAT_MASK : 0);
	return action;
}

static struct pmuk_format pmuk_perf_format = {
	.name		= "perf",
	.owner		= THIS_MODULE,
	.validate	= pmuk_perf_validate,
	.handler	= pmuk_perf_handler,
};

bool pmuk_format_is_perf(const struct pmuk_format *format)
{
	return format == &pmuk_perf_format;
}

static struct pmuk_format *pmuk_format_lookup(const uuid_t *uuid, const char *name)
	__must_hold(&pmuk_formats_lock)
{
	struct pmuk_format *format;

	list_for_each_entry(format, &pmuk_formats, node) {
		if (uuid_equal(&format->uuid, uuid) || (name && !strcmp(format->name, name)))
			return format;
	}
	return NULL;
}

/*
 * Returns a format, or NULL if there is none. Until pmuk_format_put() it stays registered, and its
 * module is held. perf's own format is always there, and its contexts are not counted.
 */
struct pmuk_format *pmuk_format_find(const uuid_t *uuid)
{
	struct pmuk_format *format;

	if (!uuid)
		return &pmuk_perf_format;
	guard(mutex)(&pmuk_formats_lock);
	format = pmuk_format_lookup(uuid, NULL);
	if (!format || format->leaving || !try_module_get(format->owner))
		return NULL;
	atomic_inc(&format->users);
	atomic_inc(&format->open);
	return format;
}

/* The context is being closed, or was never made: its format may leave. May be called in NMI. */
void pmuk_format_let_go(struct pmuk_format *format)
{
	if (format && !pmuk_format_is_perf(format))
		atomic_dec(&format->open);
}

/* A format without an owner may be freed once it has no users, so read its owner before that. */
void pmuk_format_put(struct pmuk_format *format)
{
	struct module *owner;

	if (!format || pmuk_format_is_perf(format))
		return;
	owner = format->owner;
	guard(mutex)(&pmuk_formats_lock);
	if (atomic_dec_and_test(&format->users))
		wake_up_var(&format->users);
	module_put(owner);
}

static const char *pmuk_format_wrong(const struct pmuk_format *format)
{
	if (!format->name || !*format->name || !format->handler)
		return "a name and a handler are needed";
	if (uuid_is_null(&format->uuid))
		return "a uuid is needed";
	if ((format->init || format->exit) && !format->getsize)
		return "init or exit without getsize";
	if (format->sample_type & ~PMUK_SAMPLE_TYPE)
		return "unknown sample_type";
	return pmuk_fields_fault(format->sample_type);
}

/**
 * pmuk_register_format() - add a way to handle overflows
 * @format: the format. It stays, and the caller does not change it, until it is unregistered
 *
 * Follows pfm_register_smpl_fmt() of perfmon2.
 *
 * Context: May sleep.
 * Return: 0; -EINVAL if @format is NULL or an ERR_PTR(), or something of it is missing or
 * unknown; -EOPNOTSUPP for fields of samples that this kernel does not support; -EEXIST if there is
 * one of this name or uuid.
 */
int pmuk_register_format(struct pmuk_format *format)
{
	const char *wrong = IS_ERR_OR_NULL(format) ? "no format" : pmuk_format_wrong(format);

	if (wrong) {
		pr_debug("register_format: %s\n", wrong);
		return -EINVAL;
	}
	if (pmuk_unsupported_fields(format->sample_type, PMUK_SAMPLE_TYPE)) {
		pr_debug("register_format: this kernel does not support fields %#llx\n",
			 pmuk_unsupported_fields(format->sample_type, PMUK_SAMPLE_TYPE));
		return -EOPNOTSUPP;
	}
	guard(mutex)(&pmuk_formats_lock);
	if (pmuk_format_lookup(&format->uuid, format->name) ||
	    !strcmp(format->name, pmuk_perf_format.name))
		return -EEXIST;
	atomic_set(&format->users, 0);
	atomic_set(&format->open, 0);
	format->leaving = false;
	list_add_tail(&format->node, &pmuk_formats);
	return 0;
}
EXPORT_SYMBOL_GPL(pmuk_register_format);

static int pmuk_format_begin_leaving(struct pmuk_format *format)
{
	guard(mutex)(&pmuk_formats_lock);
	if (pmuk_format_lookup(&format->uuid, NULL) != format || format->leaving)
		return -ENOENT;
	if (atomic_read(&format->open))
		return -EBUSY;
	format->leaving = true;
	return 0;
}

/**
 * pmuk_unregister_format() - take a format away
 * @format: what was registered
 *
 * Waits for contexts that are being closed, so the caller of pmuk_close_deferred() need not wait.
 * When this has returned 0, no function of @format runs or will run: then its module may go, even
 * if &pmuk_format.owner is NULL.
 *
 * Context: May sleep. Not from a function of @format.
 * Return: 0; -EINVAL if @format is NULL or an ERR_PTR(), -ENOENT if it is not registered,
 * -EBUSY if a context uses it that is not being closed, or is being created.
 */
int pmuk_unregister_format(struct pmuk_format *format)
{
	int ret = IS_ERR_OR_NULL(format) ? -EINVAL : pmuk_format_begin_leaving(format);

	if (ret)
		return ret;
	wait_var_event(&format->users, !atomic_read(&format->users));
	guard(mutex)(&pmuk_formats_lock);
	list_del(&format->node);
	return 0;
}
EXPORT_SYMBOL_GPL(pmuk_unregister_format);
