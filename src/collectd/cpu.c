/* SPDX-License-Identifier: MIT */
/*
 * Processors: kymo_cpu:topology for each and, last, :cpus, in a state dump; :online and :offline
 * when one is switched on or off, :added and :removed when one appears or disappears.
 */
#include <kymo/tracepoint.h>
#include <sys/utsname.h>

#include "collectd/text.h"
#include "collectd/uevents.h"

#define VALUE_MAX 64

/* Properties of the first processor in /proc/cpuinfo, which the others share. */
struct machine {
	struct utsname names;
	char vendor[VALUE_MAX], family[VALUE_MAX], model[VALUE_MAX], model_name[VALUE_MAX];
};

static struct machine machine; /* of the thread that runs state dumps */

/* Reads "KEY<TAB>: VALUE"; empty if this kind of processor has no such line. */
static void take_value(char buf[VALUE_MAX], const char *info, const char *key)
{
	const char *value = text_value(info, key);

	*buf = '\0';
	if (value && !strncmp(value, ": ", 2))
		snprintf(buf, VALUE_MAX, "%.*s", (int)strcspn(value + 2, "\n"), value + 2);
}

static void look_at_machine(void)
{
	char info[4096]; /* long enough for the first processor's part */

	text_read(info, sizeof(info), "/proc/cpuinfo");
	take_value(machine.vendor, info, "\nvendor_id");
	take_value(machine.family, info, "\ncpu family");
	take_value(machine.model, info, "\nmodel\t");
	take_value(machine.model_name, info, "\nmodel name");
	uname(&machine.names);
}

static void record_cpu(struct udev_device *d)
{
	kymo_event(kymo_cpu, topology, kymo_u32(cpu_id, (uint32_t)atoi(udev_device_get_sysnum(d))),
		kymo_bool(online, device_number(d, "online", 1)),
		kymo_i32(
			physical_id, (int32_t)device_number(d, "topology/physical_package_id", -1)),
		kymo_i32(core_id, (int32_t)device_number(d, "topology/core_id", -1)),
		kymo_string(architecture, machine.names.machine),
		kymo_string(vendor, machine.vendor), kymo_string(family, machine.family),
		kymo_string(model, machine.model), kymo_string(model_name, machine.model_name));
}

static void record_state(void)
{
	uint32_t n;

	if (!kymo_event_enabled(kymo_cpu, topology) && !kymo_event_enabled(kymo_cpu, cpus))
		return;
	look_at_machine();
	n = devices_each("cpu", record_cpu);
	kymo_event(kymo_cpu, cpus, kymo_u32(n, n));
}

static void take_device(struct udev_device *d)
{
	const char *action = uevent_text(d, "ACTION");
	uint32_t cpu = (uint32_t)atoi(udev_device_get_sysnum(d));

	if (!strcmp(action, "online"))
		kymo_event(kymo_cpu, online, kymo_u32(cpu_id, cpu));
	else if (!strcmp(action, "offline"))
		kymo_event(kymo_cpu, offline, kymo_u32(cpu_id, cpu));
	else if (!strcmp(action, "add"))
		kymo_event(kymo_cpu, added, kymo_u32(cpu_id, cpu));
	else if (!strcmp(action, "remove"))
		kymo_event(kymo_cpu, removed, kymo_u32(cpu_id, cpu));
}

const struct provider cpu_provider = {
	.name = "cpu", .record_state = record_state, .subsystem = "cpu", .take = take_device};
