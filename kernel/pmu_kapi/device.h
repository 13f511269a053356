/* SPDX-License-Identifier: GPL-2.0 */
/* The device by which user space reads the buffers of contexts. */
#ifndef _PMU_KAPI_DEVICE_H
#define _PMU_KAPI_DEVICE_H

int pmuk_device_init(void);
void pmuk_device_exit(void);

#endif /* _PMU_KAPI_DEVICE_H */
