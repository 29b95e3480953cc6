/* SPDX-License-Identifier: MIT */
#include "kernel/names.h"

#include "base/glob.h"

/* The names of the trace: of an event, or of all events of a system, with what stands before. */
static const struct {
	const char *system, *event; /* the kernel's; "" matches all events of the system */
	const char *name;	    /* for "": what is put before the event's name */
} event_names[] = {
	{"irq", "softirq_raise", "irq_softirq_raise"},
	{"irq", "softirq_entry", "irq_softirq_entry"},
	{"irq", "softirq_exit", "irq_softirq_exit"},
	{"irq", "tasklet_entry", "irq_tasklet_entry"},
	{"irq", "tasklet_exit", "irq_tasklet_exit"},
	{"timer", "hrtimer_init", "timer_hrtimer_init"},
	{"timer", "hrtimer_setup", "timer_hrtimer_init"},
	{"timer", "hrtimer_start", "timer_hrtimer_start"},
	{"timer", "hrtimer_cancel", "timer_hrtimer_cancel"},
	{"timer", "hrtimer_expire_entry", "timer_hrtimer_expire_entry"},
	{"timer", "hrtimer_expire_exit", "timer_hrtimer_expire_exit"},
	{"timer", "itimer_state", "timer_itimer_state"},
	{"timer", "itimer_expire", "timer_itimer_expire"},
	{"irq_vectors", "", "x86_irq_vectors_"},
	{"exceptions", "page_fault_user", "x86_exceptions_page_fault_user"},
	{"exceptions", "page_fault_kernel", "x86_exceptions_page_fault_kernel"},
	{"power", "cpu_idle", "power_cpu_idle"},
	{"power", "cpu_frequency", "power_cpu_frequency"},
	{"kmem", "mm_page_alloc", "kmem_mm_page_alloc"},
	{"kmem", "mm_page_free", "kmem_mm_page_free"},
	{"kmem", "kmalloc", "kmem_kmalloc"},
	{"kmem", "kfree", "kmem_kfree"},
	{"kvm", "kvm_entry", "kvm_x86_entry"},
	{"kvm", "kvm_exit", "kvm_x86_exit"},
};

static const struct {
	const char *prefix, *name;
} call_names[] = {
	{"sys_enter_", "syscall_entry_"},
	{"sys_exit_", "syscall_exit_"},
};

/* In the order of their identifiers. */
static const char *const fixed_names[] = {
	"sched_switch",
	"sched_waking",
	"sched_wakeup",
	"irq_softirq_entry",
	"irq_softirq_exit",
	"irq_softirq_raise",
	"irq_handler_entry",
	"irq_handler_exit",
	"timer_hrtimer_start",
	"timer_hrtimer_cancel",
	"timer_hrtimer_expire_entry",
	"timer_hrtimer_expire_exit",
	"power_cpu_idle",
	"syscall_entry_read",
	"syscall_exit_read",
	"syscall_entry_write",
	"syscall_exit_write",
	"syscall_entry_futex",
	"syscall_exit_futex",
	"syscall_entry_epoll_wait",
	"syscall_exit_epoll_wait",
};

/* The kernel's priorities are 100 more than those that users know. */
#define PRIO -100

static const struct ky_krename renames[] = {
	{"sched_switch", "prev_pid", "prev_tid", 0},
	{"sched_switch", "next_pid", "next_tid", 0},
	{"sched_switch", "prev_prio", "prev_prio", PRIO},
	{"sched_switch", "next_prio", "next_prio", PRIO},
	{"sched_waking", "pid", "tid", 0},
	{"sched_waking", "prio", "prio", PRIO},
	{"sched_wakeup", "pid", "tid", 0},
	{"sched_wakeup", "prio", "prio", PRIO},
	{"sched_wakeup_new", "pid", "tid", 0},
	{"sched_wakeup_new", "prio", "prio", PRIO},
	{"sched_migrate_task", "pid", "tid", 0},
	{"sched_migrate_task", "prio", "prio", PRIO},
	{"sched_process_fork", "parent_pid", "parent_tid", 0},
	{"sched_process_fork", "child_pid", "child_tid", 0},
	{"sched_process_exec", "pid", "tid", 0},
	{"sched_process_exec", "old_pid", "old_tid", 0},
	{"sched_process_*", "pid", "tid", 0},
	{"sched_process_*", "prio", "prio", PRIO},
	{"sched_pi_setprio", "pid", "tid", 0},
	{"sched_pi_setprio", "oldprio", "oldprio", PRIO},
	{"sched_pi_setprio", "newprio", "newprio", PRIO},
	{"sched_stat_*", "pid", "tid", 0},
	{"sched_kthread_stop", "pid", "tid", 0},
	/* of probes, as LTTng's */
	{"*", "__probe_ip", "ip", 0},
	{"*", "__probe_func", "ip", 0},
	{"*", "__probe_ret_ip", "parent_ip", 0},
	{"sys_enter_*", "__syscall_nr", NULL, 0},
	{"sys_exit_*", "__syscall_nr", NULL, 0},
};

static bool has_prefix(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

char *ky_kname(const char *system, const char *event, char *buf, size_t size)
{
	for (size_t i = 0; i < KY_ARRAY_SIZE(call_names); i++) {
		const char *prefix = call_names[i].prefix;

		if (!strcmp(system, "syscalls") && has_prefix(event, prefix)) {
			snprintf(buf, size, "%s%s", call_names[i].name, event + strlen(prefix));
			return buf;
		}
	}
	for (size_t i = 0; i < KY_ARRAY_SIZE(event_names); i++) {
		if (strcmp(system, event_names[i].system))
			continue;
		if (!*event_names[i].event) {
			snprintf(buf, size, "%s%s", event_names[i].name, event);
			return buf;
		}
		if (!strcmp(event, event_names[i].event)) {
			snprintf(buf, size, "%s", event_names[i].name);
			return buf;
		}
	}
	snprintf(buf, size, "%s", event);
	return buf;
}

uint32_t ky_kernel_fixed_id(const char *trace_name)
{
	for (uint32_t i = 0; i < KY_ARRAY_SIZE(fixed_names); i++)
		if (!strcmp(trace_name, fixed_names[i]))
			return i;
	return UINT32_MAX;
}

const struct ky_krename *ky_krename_find(const char *event, const char *field)
{
	for (size_t i = 0; i < KY_ARRAY_SIZE(renames); i++)
		if (ky_glob_match(renames[i].event, event) && !strcmp(renames[i].field, field))
			return &renames[i];
	return NULL;
}
