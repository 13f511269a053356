/* SPDX-License-Identifier: GPL-2.0 */
/* The device by which user space reads the buffers of contexts. */
#ifndef _PMU_KAPI_DEVICE_H
#define _PMU_KAPI_DEVICE_H

#include <linux/miscdevice.h>

extern struct miscdevice pmuk_device;

#endif /* _PMU_KAPI_DEVICE_H */
