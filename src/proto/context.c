/* SPDX-License-Identifier: MIT */
#include "proto/context.h"

#include <linux/perf_event.h>

#define INT32	 KYMO_FIELD_INT, 0, 4, 0, 0
#define UINT32	 KYMO_FIELD_UINT, 0, 4, 0, 0
#define UINT64	 KYMO_FIELD_UINT, 0, 8, 0, 0
#define ADDRESS	 KYMO_FIELD_UINT, 0, 8, KYMO_FIELD_HEX, 0
#define TEXT(n)	 KYMO_FIELD_TEXT, 0, 1, 0, n
#define ADDRS	 KYMO_FIELD_ARRAY, KYMO_FIELD_UINT, 8, KYMO_FIELD_HEX, 0
#define STRING	 KYMO_FIELD_STRING, 0, 0, 0, 0
#define NO_FIELD KYMO_FIELD_END, 0, 0, 0, 0

const struct ky_ctx_type ky_ctx_types[] = {
	{"cpu_id", KY_CTX_CPU_ID, INT32, "CPU that the event was recorded on"},
	{"vpid", KY_CTX_VPID, INT32, "process, as it knows itself"},
	{"vtid", KY_CTX_VTID, INT32, "thread, as it knows itself"},
	{"pthread_id", KY_CTX_PTHREAD_ID, UINT64, "what pthread_self() returns"},
	{"procname", KY_CTX_PROCNAME, TEXT(KY_CTX_PROCNAME_SIZE), "name of the thread"},
	{"ip", KY_CTX_IP, ADDRESS, "address of the instruction after the event"},
	{"vuid", KY_CTX_VUID, UINT32, "real user"},
	{"veuid", KY_CTX_VEUID, UINT32, "effective user"},
	{"vsuid", KY_CTX_VSUID, UINT32, "saved user"},
	{"vgid", KY_CTX_VGID, UINT32, "real group"},
	{"vegid", KY_CTX_VEGID, UINT32, "effective group"},
	{"vsgid", KY_CTX_VSGID, UINT32, "saved group"},
	{"cgroup_ns", KY_CTX_CGROUP_NS, UINT64, "namespace of control groups, as inode number"},
	{"ipc_ns", KY_CTX_IPC_NS, UINT64, "namespace of System V IPC"},
	{"mnt_ns", KY_CTX_MNT_NS, UINT64, "namespace of mounts"},
	{"net_ns", KY_CTX_NET_NS, UINT64, "namespace of the network"},
	{"pid_ns", KY_CTX_PID_NS, UINT64, "namespace of processes"},
	{"time_ns", KY_CTX_TIME_NS, UINT64, "namespace of clocks"},
	{"user_ns", KY_CTX_USER_NS, UINT64, "namespace of users"},
	{"uts_ns", KY_CTX_UTS_NS, UINT64, "namespace of the host's name"},
	{"perf:thread:", KY_CTX_PERF, UINT64,
		"COUNTER or raw:rHEX:NAME: a counter of the thread, since its first event"},
	{"$app.", KY_CTX_APP, STRING,
		"PROVIDER:NAME: a value that the program registered, as text"},
	{"callstack", KY_CTX_CALLSTACK, ADDRS, "[:DEPTH]: return addresses, innermost first"},
	{"", 0, NO_FIELD, ""},
};

#define HARDWARE(name) PERF_TYPE_HARDWARE, PERF_COUNT_HW_##name
#define SOFTWARE(name) PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##name
#define CACHE(level, op, result)                                                                   \
	PERF_TYPE_HW_CACHE, PERF_COUNT_HW_CACHE_##level | PERF_COUNT_HW_CACHE_OP_##op << 8 |       \
				    PERF_COUNT_HW_CACHE_RESULT_##result << 16

const struct ky_ctx_counter ky_ctx_counters[] = {
	{"page-faults", SOFTWARE(PAGE_FAULTS)},
	{"faults", SOFTWARE(PAGE_FAULTS)},
	{"minor-faults", SOFTWARE(PAGE_FAULTS_MIN)},
	{"major-faults", SOFTWARE(PAGE_FAULTS_MAJ)},
	{"context-switches", SOFTWARE(CONTEXT_SWITCHES)},
	{"cs", SOFTWARE(CONTEXT_SWITCHES)},
	{"cpu-migrations", SOFTWARE(CPU_MIGRATIONS)},
	{"migrations", SOFTWARE(CPU_MIGRATIONS)},
	{"cpu-clock", SOFTWARE(CPU_CLOCK)},
	{"task-clock", SOFTWARE(TASK_CLOCK)},
	{"alignment-faults", SOFTWARE(ALIGNMENT_FAULTS)},
	{"emulation-faults", SOFTWARE(EMULATION_FAULTS)},
	{"cpu-cycles", HARDWARE(CPU_CYCLES)},
	{"cycles", HARDWARE(CPU_CYCLES)},
	{"instructions", HARDWARE(INSTRUCTIONS)},
	{"cache-references", HARDWARE(CACHE_REFERENCES)},
	{"cache-misses", HARDWARE(CACHE_MISSES)},
	{"branches", HARDWARE(BRANCH_INSTRUCTIONS)},
	{"branch-instructions", HARDWARE(BRANCH_INSTRUCTIONS)},
	{"branch-misses", HARDWARE(BRANCH_MISSES)},
	{"bus-cycles", HARDWARE(BUS_CYCLES)},
	{"ref-cycles", HARDWARE(REF_CPU_CYCLES)},
	{"stalled-cycles-frontend", HARDWARE(STALLED_CYCLES_FRONTEND)},
	{"stalled-cycles-backend", HARDWARE(STALLED_CYCLES_BACKEND)},
	{"L1-dcache-loads", CACHE(L1D, READ, ACCESS)},
	{"L1-dcache-load-misses", CACHE(L1D, READ, MISS)},
	{"L1-icache-load-misses", CACHE(L1I, READ, MISS)},
	{"LLC-loads", CACHE(LL, READ, ACCESS)},
	{"LLC-load-misses", CACHE(LL, READ, MISS)},
	{"dTLB-load-misses", CACHE(DTLB, READ, MISS)},
	{"iTLB-load-misses", CACHE(ITLB, READ, MISS)},
	{"", 0, 0},
};

const struct ky_ctx_type *ky_ctx_type(uint32_t kind)
{
	return kind && kind < KY_CTX_KINDS ? &ky_ctx_types[kind - 1] : NULL;
}

bool ky_ctx_perf_argument(const char *argument, uint32_t *ret_type, uint64_t *ret_config)
{
	unsigned long long type, config;
	char *end;

	type = strtoull(argument, &end, 16);
	if (end == argument || *end != ':' || type > UINT32_MAX)
		return false;
	argument = end + 1;
	config = strtoull(argument, &end, 16);
	if (end == argument || *end)
		return false;
	*ret_type = (uint32_t)type;
	*ret_config = config;
	return true;
}

uint32_t ky_ctx_depth(const char *argument)
{
	char *end;
	unsigned long depth = strtoul(argument, &end, 10);

	return *argument >= '0' && *argument <= '9' && !*end && depth <= KY_CTX_DEPTH_MAX
		       ? (uint32_t)depth
		       : 0;
}

uint32_t ky_ctx_record_size(uint32_t kind, const char *argument)
{
	const struct ky_ctx_type *t = ky_ctx_type(kind);
	uint32_t type;
	uint64_t config;

	if (!t)
		return 0;
	switch (kind) {
	case KY_CTX_PERF:
		return ky_ctx_perf_argument(argument, &type, &config) ? t->size : 0;
	case KY_CTX_APP:
		return *argument ? KY_CTX_STRING_MAX : 0;
	case KY_CTX_CALLSTACK:
		return ky_ctx_depth(argument) * t->size;
	default:
		return t->count ? t->count * t->size : t->size;
	}
}
