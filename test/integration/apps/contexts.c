/* SPDX-License-Identifier: MIT */
/*
 * Emits ctx:event { text step, ... the true values, from system calls } in situations in which
 * contexts are easy to get wrong.
 *
 *   contexts SITUATION...
 *
 * The program passes through the situations in the given order. "wait" prints "ready" and waits for
 * a line on stdin. "forbid-counting-at-start" must be the first situation, if it is used.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <kymo/context.h>
#include <kymo/tracepoint.h>

#include "mapped.h"

static uint64_t namespace_of(const char *name)
{
	char path[64], text[64];
	const char *bracket;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/thread-self/ns/%s", name);
	n = readlink(path, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	bracket = strchr(text, '[');
	return bracket ? strtoull(bracket + 1, NULL, 10) : 0;
}

static __attribute__((noinline)) void emit(const char *step)
{
	uid_t u[3];
	gid_t g[3];
	char name[16];

	prctl(PR_GET_NAME, name);
	getresuid(&u[0], &u[1], &u[2]);
	getresgid(&g[0], &g[1], &g[2]);
	kymo_event(ctx, event, kymo_string(step, step), kymo_i32(t_vpid, getpid()),
		kymo_i32(t_vtid, (int32_t)syscall(SYS_gettid)),
		kymo_u64(t_pthread_id, (uintptr_t)pthread_self()), kymo_string(t_procname, name),
		kymo_u32(t_vuid, u[0]), kymo_u32(t_veuid, u[1]), kymo_u32(t_vsuid, u[2]),
		kymo_u32(t_vgid, g[0]), kymo_u32(t_vegid, g[1]), kymo_u32(t_vsgid, g[2]),
		kymo_u64(t_cgroup_ns, namespace_of("cgroup")),
		kymo_u64(t_ipc_ns, namespace_of("ipc")), kymo_u64(t_mnt_ns, namespace_of("mnt")),
		kymo_u64(t_net_ns, namespace_of("net")), kymo_u64(t_pid_ns, namespace_of("pid")),
		kymo_u64(t_time_ns, namespace_of("time")),
		kymo_u64(t_user_ns, namespace_of("user")), kymo_u64(t_uts_ns, namespace_of("uts")),
		kymo_ptr(t_function, (void *)(uintptr_t)emit));
}

static void situation(const char *name);

static void on_signal(int sig)
{
	(void)sig;
	emit("handler");
}

static void signal_on_other_stack(void)
{
	stack_t stack = {.ss_size = 65536, .ss_sp = malloc(65536)}, none = {.ss_flags = SS_DISABLE};
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};

	sigaltstack(&stack, NULL);
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	sigaltstack(&none, NULL);
	free(stack.ss_sp);
}

static void *thread(void *name)
{
	pthread_setname_np(pthread_self(), name);
	kymo_contexts_changed();
	emit("thread");
	signal_on_other_stack();
	return NULL;
}

static void run_thread(void)
{
	pthread_t t;

	if (pthread_create(&t, NULL, thread, (void *)(uintptr_t) "a-thread"))
		exit(3);
	pthread_join(t, NULL);
}

static ucontext_t outside, inside;

static void coroutine(void)
{
	emit("coroutine");
}

/* The stack lies between pages that cannot be read. */
static void run_coroutine(void)
{
	char *memory = mmap(NULL, 3 * 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED || mprotect(memory + 65536, 65536, PROT_READ | PROT_WRITE))
		exit(3);
	getcontext(&inside);
	inside.uc_stack.ss_sp = memory + 65536;
	inside.uc_stack.ss_size = 65536;
	inside.uc_link = &outside;
	makecontext(&inside, coroutine, 0);
	swapcontext(&outside, &inside);
	munmap(memory, 3 * 65536);
}

static void run_child(void (*change)(void), const char *step)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		if (change)
			change();
		emit(step);
		/* a sanitizer's check at exit fails in a process that has changed its user */
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		exit(3);
}

static void become_other(void)
{
	unsigned long inodes[64];
	unsigned n;

	emit("before setresuid");
	n = find_rings(inodes, 64);
	if (setresgid(11, 12, 13) || setresuid(21, 22, 23))
		exit(3);
	kymo_contexts_changed();
	/* The library unmaps what it had as root, and registers again as this user. */
	wait_until_unmapped(inodes, n);
	while (!kymo_event_enabled(ctx, event))
		usleep(1000);
}

static void leave_namespaces(void)
{
	emit("before unshare");
	if (unshare(CLONE_NEWUTS | CLONE_NEWIPC))
		exit(3);
	kymo_contexts_changed();
}

static __attribute__((noinline)) void deep(int n)
{
	if (n)
		deep(n - 1);
	else
		emit("deep");
	__asm__ volatile("" ::: "memory"); /* prevents a tail call */
}

/* Values that the program provides as contexts. */
static int64_t number = -42;

static void get_number(void *data, union kymo_context_value *value)
{
	value->i64 = *(int64_t *)data;
}

static void get_text(void *data, union kymo_context_value *value)
{
	value->string = data;
}

static void get_real(void *data, union kymo_context_value *value)
{
	(void)data;
	value->f64 = 0.5;
}

static struct kymo_context numbers = {
	sizeof(numbers), KYMO_CONTEXT_I64, "shop:number", get_number, &number};
static struct kymo_context reals = {sizeof(reals), KYMO_CONTEXT_F64, "shop:real", get_real, NULL};
static char user[400] = "bob";
static struct kymo_context texts = {
	sizeof(texts), KYMO_CONTEXT_STRING, "shop:user", get_text, user};

static void application(void)
{
	if (kymo_context_register(&numbers) || kymo_context_register(&texts) ||
		kymo_context_register(&reals))
		exit(3);
	if (kymo_context_register(&texts) == 0)
		exit(4);
	emit("application");
	number = 43;
	memset(user, 'x', sizeof(user) - 1);
	emit("application changed");
	kymo_context_unregister(&texts);
	kymo_context_unregister(&numbers);
	kymo_context_unregister(&reals);
	emit("application removed");
}

static void faults(void)
{
	char *memory = mmap(
		NULL, 100 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		exit(3);
	madvise(memory, 100 * 4096, MADV_NOHUGEPAGE);
	emit("before faults");
	for (int i = 0; i < 100; i++)
		((volatile char *)memory)[i * 4096] = 1;
	emit("after faults");
	munmap(memory, 100 * 4096);
}

/* Forbids this thread to open performance counters, as in a container. */
static void forbid_counting(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		exit(3);
}

/* Executes the program again, with counters forbidden from its start. */
static void forbid_at_start(char **argv)
{
	if (getenv("FORBIDDEN"))
		return;
	forbid_counting();
	setenv("FORBIDDEN", "1", 1);
	execv(argv[0], argv);
	exit(3);
}

static void large(void)
{
	static char text[3000];

	memset(text, 'L', sizeof(text) - 1);
	kymo_event(ctx, large, kymo_string(text, text), kymo_i32(last, 7));
}

static void wait_line(void)
{
	char line[16];

	puts("ready");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		exit(0);
}

#define KIND(n) kymo_event(ctx, kind##n, kymo_i32(i, 1##n))
#define FIVE_KINDS(a, b, c, d, e)                                                                  \
	KIND(a);                                                                                   \
	KIND(b);                                                                                   \
	KIND(c);                                                                                   \
	KIND(d);                                                                                   \
	KIND(e)
#define TEN_KINDS(n)                                                                               \
	FIVE_KINDS(n##0, n##1, n##2, n##3, n##4);                                                  \
	FIVE_KINDS(n##5, n##6, n##7, n##8, n##9)

/* Emits one event of each of a hundred kinds. */
static void emit_kinds(void)
{
	TEN_KINDS(0);
	TEN_KINDS(1);
	TEN_KINDS(2);
	TEN_KINDS(3);
	TEN_KINDS(4);
	TEN_KINDS(5);
	TEN_KINDS(6);
	TEN_KINDS(7);
	TEN_KINDS(8);
	TEN_KINDS(9);
}

static void situation(const char *name)
{
	if (!strcmp(name, "main"))
		emit("main");
	else if (!strcmp(name, "many"))
		for (int i = 0; i < 5000; i++)
			kymo_event(ctx, many, kymo_i32(i, i));
	else if (!strcmp(name, "kinds"))
		emit_kinds();
	else if (!strcmp(name, "name"))
		prctl(PR_SET_NAME, "renamed"), kymo_contexts_changed(), emit("renamed");
	else if (!strcmp(name, "name-silently"))
		prctl(PR_SET_NAME, "silent"), usleep(20000), emit("renamed silently");
	else if (!strcmp(name, "preloaded"))
		emit("before"), prctl(PR_SET_NAME, "preloaded"), emit("preloaded");
	else if (!strcmp(name, "thread"))
		run_thread();
	else if (!strcmp(name, "signal"))
		signal_on_other_stack();
	else if (!strcmp(name, "coroutine"))
		run_coroutine();
	else if (!strcmp(name, "fork"))
		run_child(NULL, "child");
	else if (!strcmp(name, "user"))
		run_child(become_other, "other user");
	else if (!strcmp(name, "namespaces"))
		run_child(leave_namespaces, "other namespaces");
	else if (!strcmp(name, "deep"))
		deep(5);
	else if (!strcmp(name, "application"))
		application();
	else if (!strcmp(name, "faults"))
		faults();
	else if (!strcmp(name, "forbid-counting"))
		forbid_counting();
	else if (!strcmp(name, "large"))
		large();
	else if (!strcmp(name, "wait"))
		wait_line();
	else
		exit(2);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "forbid-counting-at-start"))
			forbid_at_start(argv);
		else
			situation(argv[i]);
	}
	return 0;
}
