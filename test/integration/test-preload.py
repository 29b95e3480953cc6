#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
The preload libraries: every call is in the trace, once. The programs, which do not know them, run
as without them.
"""

import collections
import json
import os
import pathlib
import re
import signal

from kymotest import BUILD, CLI, SOURCE, TIMEOUT, Skip, check, equal, fields, main, need_program, need_unshare, read_trace, without_sanitizers

PROGRAMS = SOURCE / "test" / "integration" / "preload"
PRELOAD = BUILD / "src" / "preload"
NO_RSEQ = {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}
ROOM = ["--subbuf-size=4M", "--num-subbuf=8"]


def build(k, source, *flags, name=None):
    """Compiles a program of preload/, without any reference to Kymo."""
    program = k.top / (name or source)
    k.run(["cc", "-O1", "-g", "-D_GNU_SOURCE", "-fno-builtin", "-Wl,--export-dynamic", "-o", program, PROGRAMS / f"{source}.c",
        *flags], env={"PATH": os.environ["PATH"]})
    return program


def record(k, libraries, *command, env=None, status=0, lossless=True, **options):
    """
    Runs a command under kymo record; returns its stdout, and the events but for those of the
    tracer's state.
    """
    trace = k.top / f"trace-{len(list(k.top.glob('trace-*')))}"
    done = k.run([CLI, "record", "--no-summary", *ROOM, "-o", trace, f"--with={libraries}", "--", *command], env=env,
        status=status, timeout=2 * TIMEOUT, **options)
    events, discarded = read_trace(trace) if (trace / "ust").exists() else ([], 0)
    if lossless:
        equal(discarded, 0, "discarded events")
    return done.stdout, [(e.name, fields(e)) for e in events if not e.name.startswith("kymo_")]


def behind(library):
    """
    Returns a command that runs the rest of the line with one more library preloaded, after Kymo's.
    """
    return ["sh", "-c", f'LD_PRELOAD=$LD_PRELOAD:{library} exec "$@"', "sh"]


def count(events, *keys):
    """Counts the events by the values of these fields."""
    return collections.Counter((name, *(f[key] for key in keys if key in f)) for name, f in events)


# ---- memory

ALLOCATIONS = {"malloc", "calloc", "realloc", "reallocarray", "memalign", "aligned_alloc", "valloc", "pvalloc", "posix_memalign"}


def check_memory(events, threads, n):
    each = threads * n
    found = count(events, "alignment", "nmemb", "size", "result")
    wanted = {
        ("libc:malloc", 70001): 1, ("libc:malloc", 71001): 1,
        ("libc:malloc", 80001): each, ("libc:realloc", 80002): each, ("libc:calloc", 7, 11443): each,
        ("libc:reallocarray", 5, 20001): each, ("libc:posix_memalign", 64, 90001, 0): each,
        ("libc:aligned_alloc", 128, 89728): each, ("libc:memalign", 256, 90003): each,
        ("libc:valloc", 90004): each, ("libc:pvalloc", 90005): each,
        ("libc:malloc", 2**63 - 6): each,
        ("libc:reallocarray", 2**63 - 1, 3): each, ("libc:posix_memalign", 3, 90007, 22): each,
    }
    equal({key: found[key] for key in wanted}, wanted, "calls")
    equal(sum(found[key] for key in found if key[0] == "libc:realloc" and key[1] > 80000), each, "reallocations, none seen twice")
    check_pairs(events, 8 * each + 2)


def check_pairs(events, wanted):
    """
    Begins at the first call that the program's own code makes. Memory that is released was
    allocated, and is allocated again only after its release.
    """
    live, pairs, began = {}, 0, False
    for name, f in events:
        kind = name.partition(":")[2]
        began = began or f.get("size") == 70001
        if not began:
            continue
        if f.get("in_ptr"):
            live.pop(f["in_ptr"], None)
        if kind in ALLOCATIONS and f.get("ptr", f.get("out_ptr")):
            ptr = f.get("ptr", f.get("out_ptr"))
            check(ptr not in live, f"{name} gave {ptr:#x}, which {live.get(ptr)} has not given back")
            live[ptr] = (name, f)
        elif kind == "free" and live.get(f["ptr"]):
            size = live.pop(f["ptr"])[1]
            pairs += size["size"] * size.get("nmemb", 1) > 70000
    equal(pairs, wanted, "allocations of the program that were released")
    left = [f for _, f in live.values() if f["size"] * f.get("nmemb", 1) > 70000]
    equal(left, [], "allocations of the program that were not")


def memory(k, threads, n, wrap=(), **options):
    output, events = record(k, "libc", *wrap, build(k, "memory", "-pthread"), threads, n, **options)
    equal(output, "ok\n", "output")
    check_memory(events, threads, n)
    return events


def test_memory(k):
    memory(k, 1, 300)


def test_memory_threads(k):
    """All threads use one heap, so that they get each other's addresses."""
    memory(k, 8, 200, env={"GLIBC_TUNABLES": "glibc.malloc.arena_max=1:glibc.malloc.tcache_count=0"})


def test_memory_threads_without_rseq(k):
    memory(k, 8, 200, env=NO_RSEQ)


def test_many_threads_without_rseq(k):
    """
    More threads than rings: each returns its ring, also if it uses it once more during its exit.
    """
    _, events = record(k, "libc", build(k, "threads", "-pthread"), 1500, env=NO_RSEQ)
    equal(count(events, "size")["libc:malloc", 63001], 1500, "allocations")


@without_sanitizers  # the daemons see the same rings from the threads above
def test_many_processes_without_rseq(k):
    _, events = record(k, "libc", "sh", "-c", "for i in $(seq 1100); do /bin/true $i; done", env=NO_RSEQ)
    check(len(events) > 50000, f"{len(events)} events only")


def test_memory_in_destructor(k):
    """Also the libraries' destructors that run after that of the preload library."""
    tail = build(k, "shim", "-DTAIL", "-shared", "-fPIC", name="libtail.so")
    program = build(k, "memory", "-pthread", "-Wl,--no-as-needed", tail, f"-Wl,-rpath,{k.top}")
    _, events = record(k, "libc,pthread,dl", program, 1, 1)
    equal(count(events, "size")["libc:malloc", 72001], 1, "allocations of a destructor")


def test_dlsym_that_allocates(k):
    shim = build(k, "shim", "-shared", "-fPIC", name="shim.so")
    memory(k, 2, 10, wrap=behind(shim))


def test_sanitized_program(k):
    """
    A program with the address sanitizer starts, is recorded, and the sanitizer finds its mistakes.
    """
    source = k.top / "asan.c"
    source.write_text("""
        #include <dlfcn.h>
        #include <stdlib.h>
        int main(int n, char **v)
        {
            char *p = malloc(10);
            p[n + 8] = 1;
            free(p);
            return !dlopen("libm.so.6", RTLD_NOW);
        }""")
    program = k.top / "asan"
    k.run(["gcc", "-g", "-fsanitize=address", source, "-o", program])
    record = [CLI, "record", "--with=libc,pthread,dl,crash", "-o"]
    # the sanitizer finds leaks unless this process is traced, as by a debugger
    plain = k.run([program], status=None)
    env = {"ASAN_OPTIONS": "detect_leaks=0"} if plain.returncode else {}
    k.run([*record, k.top / "fine", "--", program], env=env)
    check(any(e.name == "libc:malloc" for e in read_trace(k.top / "fine")[0]), "events of a sanitized program")
    done = k.run([*record, k.top / "wrong", "--", program, "x"], status=None)
    check(done.returncode and "heap-buffer-overflow" in done.stderr, done.stderr)


def test_thread_sanitized_program(k):
    """The thread sanitizer finds no mistake in a program or its child that are recorded."""
    program = k.top / "tsan"
    source = k.top / "tsan.c"
    source.write_text("""
        #include <pthread.h>
        #include <sys/wait.h>
        #include <unistd.h>
        static void *nothing(void *arg) { return arg; }
        int main(void)
        {
            pthread_t t;
            int status = 1;
            pid_t pid;
            if (!pthread_create(&t, NULL, nothing, NULL)) pthread_join(t, NULL);
            pid = fork();
            if (pid) wait(&status);
            return pid && status;
        }""")
    done = k.run(["gcc", "-g", "-fsanitize=thread", source, "-o", program], status=None)
    if done.returncode or k.run([program], status=None).returncode:
        raise Skip("gcc has no thread sanitizer that works here")
    env = {"TSAN_OPTIONS": "atexit_sleep_ms=0"}
    for libraries in ("dl", "libc,pthread,dl,crash"):
        done = k.run([CLI, "record", f"--with={libraries}", "-o", k.top / libraries, "--", program], env=env, status=None)
        equal((done.returncode, "ThreadSanitizer" in done.stderr), (0, False), f"{libraries}: {done.stderr}")
    # The listener's descriptors are not those of the program. Many starts: the order is chance.
    k.start_daemon()
    k.record("dl:*")
    env = {"TSAN_OPTIONS": "atexit_sleep_ms=0:die_after_fork=0", "LD_PRELOAD": str(PRELOAD / "libkymo-dl.so")}
    for _ in range(40):
        done = k.run([program], env=env, status=None)
        equal((done.returncode, done.stderr), (0, ""), "a start")


REPLACED = """
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
static pthread_mutex_t mine = PTHREAD_MUTEX_INITIALIZER;
#define REPLACE(type, name, parameters, arguments) \\
	type my_##name parameters __asm__(#name); \\
	type my_##name parameters \\
	{ \\
		type (*real) parameters, result; \\
		pthread_mutex_lock(&mine); \\
		*(void **)&real = dlsym(RTLD_NEXT, #name); \\
		result = real arguments; \\
		pthread_mutex_unlock(&mine); \\
		return result; \\
	}
REPLACE(int, getpid, (void), ())
REPLACE(long, syscall, (long n, long a, long b, long c, long d, long e, long f),
	(n, a, b, c, d, e, f))
REPLACE(int, prctl, (int n, long a, long b, long c, long d), (n, a, b, c, d))
REPLACE(int, getresuid, (void *a, void *b, void *c), (a, b, c))
REPLACE(int, getresgid, (void *a, void *b, void *c), (a, b, c))
REPLACE(int, stat, (const char *path, void *st), (path, st))
static void *work(void *arg)
{
	for (int i = 0; i < 5; i++) {
		pthread_mutex_lock(&mine);
		free(malloc(81001));
		pthread_mutex_unlock(&mine);
	}
	return arg;
}
int main(void)
{
	pthread_t t;

	for (int i = 0; i < 10 && pthread_create(&t, NULL, work, NULL) == 0; i++)
		pthread_join(t, NULL);
	return 0;
}
"""


def test_replaced_functions(k):
    """
    A program replaces functions by which contexts can be read, and holds a lock in them and around
    calls that are recorded.
    """
    (k.top / "replaced.c").write_text(REPLACED)
    program, trace = k.top / "replaced", k.top / "replaced.trace"
    k.run(["gcc", "-O1", "-fno-builtin", "-D_GNU_SOURCE", "-rdynamic", "-w", "-o", program, k.top / "replaced.c", "-pthread"])
    contexts = [word for name in ("vpid", "vtid", "procname", "vuid", "vgid", "mnt_ns", "pthread_id") for word in ("-t", name)]
    k.run([CLI, "record", "--no-summary", *ROOM, *contexts, "-o", trace, "--with=libc,pthread", "--", program])
    found = [e for e in read_trace(trace)[0] if e.name == "libc:malloc" and "size = 81001," in e.fields]
    equal(len(found), 50, "allocations while the lock was held")


FAKED = """
#include <kymo/tracepoint.h>
int geteuid(void);
int geteuid(void)
{
	return 12345;
}
int main(void)
{
	for (int i = 0; i < 3; i++)
		kymo_event(faked, event, kymo_i32(i, i));
	return 0;
}
"""


def test_faked_user(k):
    """A program that sees another user than the kernel, as under fakeroot, is recorded."""
    (k.top / "faked.c").write_text(FAKED)
    program, trace = k.top / "faked", k.top / "faked.trace"
    k.run(["gcc", "-O1", "-rdynamic", f"-I{SOURCE}/include", "-o", program, k.top / "faked.c"])
    wrap = []
    if os.geteuid() == 0:  # root may record any user
        need_program("setpriv", "util-linux")
        wrap = ["setpriv", "--reuid=12346", "--regid=12346", "--clear-groups"]
        os.chown(k.top, 12346, 12346)
    k.run([*wrap, CLI, "record", "--no-summary", "-o", trace, "--", program])
    equal(len(read_trace(trace)[0]), 3, "events")


def test_other_allocator(k):
    """A program with its own allocator keeps it."""
    found = sorted(pathlib.Path("/usr/lib").glob("*/libjemalloc.so.2"))
    if not found:
        raise Skip("libjemalloc.so.2 is missing (Debian package libjemalloc2)")
    program = build(k, "memory", "-pthread")
    done = k.run([CLI, "record", "-o", k.top / "jemalloc", *ROOM, "--with=libc,pthread", "--", *behind(found[0]), program, 4, 50,
        "valloc"], env={"MALLOC_CONF": "stats_print:true"})
    check("jemalloc statistics" in done.stderr, "the program did not use its allocator")
    found = count([(e.name, fields(e)) for e in read_trace(k.top / "jemalloc")[0]], "size")
    equal((found["libc:malloc", 80001], found["libc:valloc", 90004]), (200, 200), "calls")


def test_own_allocator(k):
    output, events = record(k, "libc", build(k, "own-malloc"))
    equal(output, "own 1\n", "output")
    equal(count(events)["libc:malloc",], 0, "calls of an allocator that is the program's own")


def test_static_program(k):
    program = build(k, "memory", "-static", "-pthread")
    equal(record(k, "libc,pthread,dl", program, 1, 1), ("ok\n", []), "a static program's output and events")


# ---- mutexes


def mutexes(k, threads, n, **options):
    output, events = record(k, "pthread", build(k, "mutexes", "-pthread"), threads, n, **options)
    shared, held, careful, begin, end = (int(word, 16) for word in output.split())
    equal(dict(count(events, "mutex", "status")), {
        ("pthread:mutex_lock_req", shared): threads * n, ("pthread:mutex_lock_acq", shared, 0): threads * n,
        ("pthread:mutex_unlock", shared, 0): threads * n, ("pthread:mutex_trylock", held, 0): 1,
        ("pthread:mutex_trylock", held, 16): n, ("pthread:mutex_unlock", held, 0): 1, ("pthread:mutex_unlock", careful, 1): 1,
    }, "calls, none of them the tracer's")
    check(all(begin <= f["caller"] < end for _, f in events), "a caller is not in the program")


def test_mutexes(k):
    mutexes(k, 8, 500)


def test_mutexes_without_rseq(k):
    mutexes(k, 8, 500, env=NO_RSEQ)


def waits(k, n, **options):
    """Every form of a wait, with its result; the order of threads decides about some numbers."""
    output, events = record(k, "pthread", build(k, "waits", "-pthread"), n, **options)
    timed, mtx, rwlock, cond, cnd, sem, barrier, word = (int(word, 16) for word in output.split())

    def calls(name, key, value):
        return sorted(f.get("status", "") for e, f in events if e == f"pthread:{name}" and f.get(key) == value)

    timeout, busy = 110, 16
    equal(calls("mutex_lock_acq", "mutex", timed), [0, timeout, timeout], "timed locks of a mutex")
    equal(calls("mutex_lock_acq", "mutex", mtx), [0] * (2 * n + 1) + [4], "locks of C11")
    equal(calls("mutex_unlock", "mutex", mtx), [0] * (2 * n), "unlocks of C11")
    equal(calls("mutex_trylock", "mutex", mtx), [1], "trylock of C11")
    for kind in ("rdlock", "wrlock"):
        equal(calls(f"rwlock_{kind}_end", "rwlock", rwlock), [0, timeout, timeout], f"rwlock_{kind}")
        equal(len(calls(f"rwlock_{kind}_begin", "rwlock", rwlock)), 3, f"rwlock_{kind}")
        equal(calls(f"rwlock_try{kind}", "rwlock", rwlock), [busy], f"rwlock_try{kind}")
    equal(calls("rwlock_unlock", "rwlock", rwlock), [0, 0], "rwlock_unlock")
    ends = calls("cond_wait_end", "cond", cond)
    equal(ends[-2:], [timeout, timeout], "timed waits")
    check(len(ends) >= n + 2 and not any(ends[:-2]), f"waits for a condition: {ends}")
    check(len(calls("cond_wait_end", "cond", cnd)) >= n, "waits for a condition of C11")
    for c, signals in ((cond, "cond_signal"), (cond, "cond_broadcast"), (cnd, "cond_signal"), (cnd, "cond_broadcast")):
        equal(calls(signals, "cond", c), [0] * n, signals)
    equal(calls("sem_post", "sem", sem), [0] * n, "sem_post")
    equal(calls("sem_wait_end", "sem", sem), [0] * n, "sem_wait")
    equal([f["status"] for e, f in events if e in ("pthread:sem_wait_end", "pthread:sem_trywait") and f["sem"] != sem], [-1] * 3, "sem_*wait")
    equal(calls("futex_wait_end", "futex", word), [11, timeout], "waits for a futex")
    equal(calls("barrier_wait_end", "barrier", barrier), [-1] * n + [0] * n, "barrier_wait")
    begun, ended = (sorted(f["span_tid"] for e, f in events if e.endswith(end)) for end in ("_begin", "_end"))
    equal(begun, ended, "begins and ends of spans")


def test_waits(k):
    waits(k, 200)


def test_waits_without_rseq(k):
    waits(k, 20, env=NO_RSEQ)


def test_waits_of_cplusplus(k):
    """std::shared_mutex, std::condition_variable and std::timed_mutex are the same calls."""
    source = k.top / "waits.cpp"
    source.write_text("""
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>
int main()
{
	std::shared_mutex s;
	std::timed_mutex t;
	std::mutex m;
	std::condition_variable c;
	{ std::shared_lock<std::shared_mutex> l(s); }
	{ std::unique_lock<std::shared_mutex> l(s); }
	std::unique_lock<std::mutex> l(m);
	c.wait_for(l, std::chrono::milliseconds(1));
	return t.try_lock_for(std::chrono::milliseconds(1)) ? 0 : 1;
}
""")
    k.run(["c++", "-std=c++17", "-O1", "-pthread", "-o", k.top / "waits-cpp", source], env={"PATH": os.environ["PATH"]})
    _, events = record(k, "pthread", k.top / "waits-cpp")
    names = collections.Counter(name for name, _ in events)
    for name in ("rwlock_rdlock_end", "rwlock_wrlock_end", "cond_wait_end"):
        equal(names[f"pthread:{name}"], 1, name)
    equal(names["pthread:rwlock_unlock"], 2, "rwlock_unlock")
    equal(names["pthread:mutex_lock_acq"], 2, "mutex_lock_acq")


def test_waits_of_atomics(k):
    """std::atomic::wait calls the kernel itself, by syscall()."""
    source = k.top / "atomic.cpp"
    source.write_text("""
#include <atomic>
#include <fstream>
#include <string>
#include <thread>
#include <unistd.h>
std::atomic<int> turn{0};
static void wake(int tid)
{
	unsigned long object = 0;
	while (object != (unsigned long)&turn) {
		std::string number;
		std::ifstream f("/proc/self/task/" + std::to_string(tid) + "/syscall");
		if (!(f >> number >> std::hex >> object))
			object = 0;
		usleep(1000);
	}
	turn = 1;
	turn.notify_all();
}
extern "C" char __executable_start, etext;
int main()
{
	printf("%p %p\\n", (void *)&__executable_start, (void *)&etext);
	std::thread t(wake, gettid());
	turn.wait(0);
	t.join();
}
""")
    k.run(["c++", "-std=c++20", "-O1", "-pthread", "-o", k.top / "atomic", source], env={"PATH": os.environ["PATH"]})
    output, events = record(k, "libc,pthread,dl,crash", k.top / "atomic")
    names = collections.Counter(name for name, _ in events)
    check(names["pthread:futex_wait_begin"] >= 1, f"waits for an atomic variable: {names}")
    equal(names["pthread:futex_wait_end"], names["pthread:futex_wait_begin"], "ends of waits")
    begin, end = (int(word, 16) for word in output.split())
    callers = [f["caller"] for name, f in events if name.startswith("pthread:futex_wait")]
    check(all(begin <= caller < end for caller in callers), "the caller of a wait is not in the program: a wrapper of another library is")


def test_arguments_of_syscall(k):
    """
    What is on the stack behind the arguments of syscall() is the caller's, and another thread may
    write to it: here, any write to it is a fault. If there is a last argument, the kernel gets it.
    """
    if os.uname().machine != "x86_64":
        raise Skip("only x86-64 passes an argument of syscall() on the stack")
    source = k.top / "arguments.c"
    source.write_text("""
#include <linux/futex.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
static long call(char *stack, long number, const void *a, long b, long c)
{
	register void *top __asm__("rbx") = stack;
	long result;

	__asm__ volatile("xchgq %%rsp, %%rbx; xorl %%r8d, %%r8d;"
			 "xorl %%r9d, %%r9d; xorl %%eax, %%eax; call syscall@PLT; movq %%rbx, %%rsp"
			 : "=a"(result), "+r"(top), "+D"(number), "+S"(a), "+d"(b), "+c"(c)
			 : : "r8", "r9", "r10", "r11", "memory");
	return result;
}
int main(void)
{
	char *stack = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);
	int word = 0, fd = fileno(tmpfile());
	char *top = stack + (1 << 19), *page;

	if (ftruncate(fd, 8192) || pwrite(fd, "second", 6, 4096) != 6 ||
		mprotect(top, 1 << 19, PROT_READ))
		return 1;
	page = (char *)syscall(SYS_mmap, NULL, 6L, PROT_READ, MAP_PRIVATE, fd, 4096L);
	printf("%ld", call(top, SYS_getppid, NULL, 0, 0) == getppid());
	printf(" %ld %s\\n", call(top, SYS_futex, &word, FUTEX_WAIT_PRIVATE, 1), page);
	return 0;
}
""")
    program = k.top / "arguments"
    k.run(["cc", "-O1", "-o", program, source], env={"PATH": os.environ["PATH"]})
    for libraries in ("libc", "pthread", "libc,pthread,dl"):
        output, _ = record(k, libraries, program)
        equal(output, "1 -1 second\n", f"results with {libraries}")


def test_stat_of_sites(k):
    """The waits, holds and allocations of places of a program, by names of functions."""
    trace = k.top / "sites.trace"
    k.run([CLI, "record", "--no-summary", *ROOM, "-o", trace, "--with=pthread,libc", "--", build(k, "sites", "-pthread")])
    found = json.loads(k.run([CLI, "--json", "stat", "--locks", "--memory", trace]).stdout)

    def at(rows, **wanted):
        return [r for r in rows if all(r.get(key, "").startswith(value) for key, value in wanted.items())]

    waits = at(found["waits"], kind="mutex", lock="door", waits_at="come_in", held_at="keep")
    equal([(w["count"], w["unfinished"]) for w in waits], [(1, 0)], f"waits, of {found['waits']}")
    check(waits[0]["total_ns"] > 0 and waits[0]["max_ns"] == waits[0]["total_ns"], f"the time of {waits[0]}")
    check(waits[0]["longest"]["thread"] != waits[0]["longest"]["holder"], f"the threads of {waits[0]}")
    for place in ("keep", "come_in"):
        equal([h["count"] for h in at(found["holds"], lock="door", held_at=place)], [1], f"holds of {place}")

    def use(place):
        return [[m[key] for key in ("calls", "allocated", "peak", "in_use", "blocks")] for m in at(found["memory"]["sites"], site=place)]

    equal(use("leave"), [[1, 70001, 70001, 70001, 1]], "memory that was left")
    equal(use("make_and_drop"), [[10, 800010, 80001, 0, 0]], "memory that was released")
    said = k.run([CLI, "stat", "--locks", "--memory", trace]).stdout
    for text in (" for mutex door, held at keep", "mutex door at come_in", "never released"):
        check(text in said, f"'{text}' is not in {said}")
    k.run([CLI, "stat", "--locks", "--by=name", trace], status=2)
    k.run([CLI, "stat", "--locks", "-e", "libc:*", trace], status=1)


def test_stat_of_cplusplus(k):
    """The site is the place that calls `new`, not the library of C++."""
    source = k.top / "news.cpp"
    source.write_text("""
#include <vector>
char *volatile left;
__attribute__((noinline)) static void leave(int n)
{
	left = new char[n];
}
__attribute__((noinline)) static void fill(std::vector<int> &v)
{
	for (int i = 0; i < 100; i++)
		v.push_back(i);
}
int main()
{
	std::vector<int> v;
	for (int i = 0; i < 10; i++)
		leave(7001);
	fill(v);
}
""")
    k.run(["c++", "-O1", "-g", "-fomit-frame-pointer", "-o", k.top / "news", source], env={"PATH": os.environ["PATH"]})
    trace = k.top / "news.trace"
    k.run([CLI, "record", "--no-summary", *ROOM, "-o", trace, "--with=libc", "--", k.top / "news"])
    sites = json.loads(k.run([CLI, "--json", "stat", "--memory", trace]).stdout)["memory"]["sites"]
    left = [(s["calls"], s["in_use"]) for s in sites if s["site"].startswith("leave")]
    equal(left, [(10, 70010)], f"memory of leave(), of {sites}")
    check(not any("operator new" in s["site"] for s in sites), f"sites: {sites}")


def test_events_beside_others(k):
    """
    --event of other providers keeps the events of --with; a pattern for the latter selects among
    them.
    """
    program = build(k, "mutexes", "-pthread")
    every = {f"pthread:mutex_{name}" for name in ("lock_req", "lock_acq", "trylock", "unlock")}
    for rules, names in (("other:*", every), ("other:*,pthread:mutex_unlock", {"pthread:mutex_unlock"})):
        out = k.top / f"beside-{len(names)}"
        k.run([CLI, "record", "-o", out, "--with=pthread", "-e", rules, "--", program, 1, 5])
        found = {e.name for e in read_trace(out)[0] if not e.name.startswith("kymo_")}
        equal(found, names, f"events recorded with -e {rules}")


# ---- crashes


def crash(k, how, *options):
    """
    Returns the exit status of the program, the messages of kymo record, and the events of crashes
    with their symbols.
    """
    program = k.top / "crash"
    if not program.exists():
        build(k, "crash", "-O2", "-fomit-frame-pointer", "-pthread")
    trace = k.top / f"{how} of a program"  # a shell would divide the name
    done = k.run([CLI, "record", "--no-summary", "-o", trace, "--with=crash", *options, "--", program, how], status=None)
    if not (trace / "ust").exists():
        return done.returncode, done.stderr, []
    lines = k.run([CLI, "view", "--symbols", "--format=json", "-e", "crash:signal", trace]).stdout.splitlines()
    return done.returncode, done.stderr, [json.loads(line)["fields"] for line in lines]


def test_crashes(k):
    """The stack of a program without frame pointers that ends by a signal, which stays the same."""
    for how, number, names in (("null", signal.SIGSEGV, ["boom", "middle", "main"]), ("call", signal.SIGSEGV, ["?", "boom"]),
        ("abort", signal.SIGABRT, ["boom", "middle", "main"]), ("sent", signal.SIGFPE, ["boom", "middle", "main"]),
        ("overflow", signal.SIGSEGV, ["overflow", "overflow"])):
        status, said, events = crash(k, how)
        equal(status, -number, f"{how}: exit status")
        equal([e["signal"] for e in events], [number], f"{how}: signals")
        stack = [events[0].get("addr_symbol") or "?", *events[0]["callstack_symbol"]]
        functions = [(symbol or "?").partition("+")[0] for symbol in stack]
        check(any(functions[i:i + len(names)] == names for i in range(len(functions))), f"{how}: the stack is {stack}")
        check(f"the stack: kymo view --symbols -e crash:signal '{k.top / how} of a program'\n" in said, f"{how}: record said {said}")


def test_handled_crashes(k):
    """A program's own handlers run, as often and in the way that it has chosen."""
    for how, status, n in (("own", 7, 1), ("jump", 0, 10), ("vfork", 0, 10), ("once", -signal.SIGSEGV, 2), ("ignored", 0, 0)):
        found, _, events = crash(k, how)
        equal((found, len(events)), (status, n), f"{how}: exit status, events")


def test_overflow_of_threads(k):
    """
    A program's own handler aborts on a small stack: the end is the same, and what has room is
    recorded.
    """
    for how, signals in (("tiny", []), ("small", [signal.SIGSEGV]), ("large", [signal.SIGSEGV, signal.SIGABRT])):
        found, _, events = crash(k, how)
        equal(found, k.run([k.top / "crash", how], status=None).returncode, f"{how}: exit status")
        equal([e["signal"] for e in events], signals, f"{how}: signals")
        check(all(len(e["callstack"]) > 10 for e in events), f"{how}: callers")


# ---- libraries


def test_loader(k):
    library = build(k, "shim", "-DTAIL", "-shared", "-fPIC", name="libtail.so")
    program = build(k, "loader")
    plain = k.run([program, 20, library]).stdout
    output, events = record(k, "dl", program, 20, library)
    check(len(plain) == len(output), "the program ran differently")
    opened = [f for name, f in events if name == "dl:dlopen" and f["path"] == str(library)]
    closed = [f for name, f in events if name == "dl:dlclose"]
    equal([f["handle"] for f in opened], [f["handle"] for f in closed], "handles")
    equal([f["baddr"] for f in opened], [f["baddr"] for f in closed], "addresses")
    equal({(f["flags"], f["result"]) for f in [{**a, **b} for a, b in zip(opened, closed)]}, {(1, 0)}, "flags and results")
    equal((len(opened), opened[-1]["baddr"]), (20, int(output, 16)), "loads of the library, and its address")
    rest = [(name, f["path"], f["flags"], bool(f["handle"])) for name, f in events if name != "dl:dlclose"][20:]
    equal(rest, [("dl:dlopen", "/nowhere/to/be/found.so", 2, False), ("dl:dlmopen", str(library), 2, True),
        ("dl:dlopen", "(null)", 2, True)], "other calls")


def test_loader_search_path(k):
    """
    A library is found in the calling object's own search path, in its order, with and without Kymo.
    """
    for directory in ("outer", "run", "env"):
        (k.top / directory).mkdir()
    shared = ["-shared", "-fPIC"]
    build(k, "loader", *shared, '-DLIBRARY="run"', name="run/libplugin.so")
    build(k, "loader", *shared, '-DLIBRARY="run"', name="run/libonly.so")
    build(k, "loader", *shared, '-DLIBRARY="env"', name="env/libplugin.so")
    build(k, "loader", *shared, '-DLIBRARY="origin"', name="outer/liborigin.so")
    names = ["libplugin.so", "libonly.so", "$ORIGIN/liborigin.so", "libm.so.6", "libnone.so", "./libplugin.so", ""]
    for tags, path in (("--enable-new-dtags", None), ("--disable-new-dtags", None), ("--enable-new-dtags", k.top / "env")):
        build(k, "loader", *shared, '-DLIBRARY="outer"', f"-Wl,{tags},-rpath,$ORIGIN/../run", name="outer/libouter.so")
        program = build(k, "loader", "-DCALLER", f"-L{k.top / 'outer'}", "-louter", f"-Wl,-rpath,{k.top / 'outer'}")
        env = {"LD_LIBRARY_PATH": f"{k.env['LD_LIBRARY_PATH']}{':' if path else ''}{path or ''}"}
        plain = k.run([program, *names], env=env).stdout
        check("libonly.so: run\n" in plain and "liborigin.so: origin\n" in plain, f"output without us: {plain}")
        equal(record(k, "dl", program, *names, env=env)[0], plain, f"output, with {tags} and {path}")


# ---- functions


def test_functions(k):
    """Also in a signal handler: entries and exits form pairs, wherever the handler interrupts."""
    n = 5000
    output, events = record(k, "cyg-profile", build(k, "functions", "-finstrument-functions"), n)
    f, g, n_signals, n_calls = (int(word, 0) for word in output.split())
    found = count(events, "addr")
    for kind in ("func_entry", "func_exit"):
        equal((found[f"cyg_profile:{kind}", f], found[f"cyg_profile:{kind}", g]), (n_calls, n_signals), f"{kind} of f and g")
    stack = []
    for name, event in events:
        if name == "cyg_profile:func_entry":
            stack.append(event)
        else:
            equal(stack.pop(), event, "the function that is left, against the one entered last")


def test_explained_functions(k):
    """kymo explain knows functions by their names, as spans."""
    trace, n = k.top / "trace", 400
    program = build(k, "functions", "-finstrument-functions")
    output = k.run([CLI, "record", "--no-summary", *ROOM, "-o", trace, "--with=cyg-profile", "--", program, n]).stdout
    n_calls = int(output.split()[3])
    explained = k.kymo_json("explain", trace, "--span=f")
    equal(explained["count"] + explained["left_out"]["instant"], n_calls, "calls of f")
    unknown = k.kymo("explain", trace, "--span=nothing", status=1).stderr
    check("there are: f, g, main, on_signal" in unknown, unknown)
    check(n_calls >= 4 * n, f"{n_calls} calls")


OWN_HOOKS = """
#include <stdio.h>
#include <kymo/nested.h>
#include <kymo/span.h>
#include <kymo/state.h>
#include <lttng/tracef.h>
#ifdef __cplusplus
#define HOOK extern "C" __attribute__((no_instrument_function))
#else
#define HOOK __attribute__((no_instrument_function))
#endif
KYMO_STRUCT(place, const int *p, kymo_i32(x, *p), kymo_string(text, "text"))
KYMO_EVENT_DEFINE(own, shared, KYMO_INFO, KYMO_ARGS(int n), kymo_i32(n, n))
HOOK void __cyg_profile_func_enter(void *f, void *site);
HOOK void __cyg_profile_func_exit(void *f, void *site);
void __cyg_profile_func_enter(void *f, void *site)
{
	kymo_span(own, enter, kymo_ptr(f, f));
	kymo_event(own, places, kymo_seq_struct(places, place, (const int *)site, f != NULL));
	kymo_trace(own, shared, 1);
	kymo_state_event(own, last, kymo_i32(key, 1));
	kymo_tracef("%s", "text");
	tracef("%s", "text");
}
void __cyg_profile_func_exit(void *f, void *site)
{
	kymo_event(own, leave, kymo_ptr(f, f), kymo_ptr(site, site));
}
static __attribute__((noinline)) int leaf(int n)
{
	kymo_event(own, leaf, kymo_i32(n, n), kymo_string(text, "text"));
	return n;
}
int main(void)
{
	for (int i = 0; i < 10; i++)
		if (leaf(i) != i)
			return 1;
	return 0;
}
"""


def test_own_hooks(k):
    """A program's own hooks record events; they are called in the program's functions only."""
    (k.top / "hooks.c").write_text(OWN_HOOKS)
    for compiler in ("gcc", "g++ -xc++", "clang"):
        need_program(compiler.split()[0], compiler.split()[0])
        k.run([*compiler.split(), "-O1", "-finstrument-functions", f"-I{SOURCE}/include", f"-I{SOURCE}/include/kymo-lttng", "-o", k.top / "hooks",
            k.top / "hooks.c"])
        trace = k.top / f"{compiler[:3]}.trace"
        k.run([CLI, "record", "--no-summary", "-o", trace, "-e", "*:*", "--", k.top / "hooks"])
        found = collections.Counter(e.name for e in read_trace(trace)[0])
        names = ("own:enter_begin", "own:enter_end", "own:places", "own:shared", "own:last", "kymo_tracef:event", "lttng_ust_tracef:event",
            "own:leave")
        equal(found, {"own:leaf": 10, **dict.fromkeys(names, 11)}, f"events with {compiler}")


# ---- processes


def forks(k, how, n, **options):
    program = build(k, "forks", "-pthread")
    output, events = record(k, "libc,pthread", program, how, n, **options)
    equal(int(output), n, "children that ended well")
    return count(events, "size")


def test_forks(k):
    found = forks(k, "fork", 40)
    equal((found["libc:malloc", 60001], found["libc:malloc", 62001]), (40, 40), "allocations of children and parent")


def test_forks_without_rseq(k):
    found = forks(k, "fork", 20, env=NO_RSEQ)
    equal((found["libc:malloc", 60001], found["libc:malloc", 62001]), (20, 20), "allocations of children and parent")


def test_vforks(k):
    """
    Children of vfork do not record. Their parents do, also if they are children of vfork
    themselves.
    """
    found = forks(k, "vfork", 300)
    equal((found["libc:malloc", 60001], found["libc:malloc", 62001]), (0, 300), "allocations of children and parent")


def test_user_namespaces(k):
    """
    A program of one thread enters a user namespace although the tracer has threads, and is recorded
    before and after.
    """
    need_unshare("-Ur")
    program = build(k, "namespaces", "-pthread")
    for threads in ((), ("thread",)):
        expected = k.run([program, *threads]).stdout
        equal("unshare: done" in expected, not threads, f"the kernel's answer: {expected}")
        for libraries in ("libc", "libc,pthread,dl"):
            output, events = record(k, libraries, program, *threads)
            equal(output, expected, "what the program prints")
            found = count(events, "size")
            equal([found["libc:malloc", 70000 + i] for i in range(1, 5)], [100] * 4, "allocations")


def test_filtered(k):
    """A program that forbids itself the calls that read contexts: it runs, and has its contexts."""
    program = build(k, "filtered", "-pthread")
    for call in ("prctl", "seccomp"):
        trace = k.top / f"trace-{call}"
        done = k.run([CLI, "record", "--no-summary", *ROOM, "-o", trace, "--with=libc", "-t", "procname,vtid,vuid", "--",
            program, call])
        equal(done.stdout, "done\n", "what the program prints")
        wanted = re.compile(r'procname = "(\w+)", vtid = (\d+), vuid = (\d+),.* size = (7000[12]),')
        found = [wanted.match(e.fields) for e in read_trace(trace)[0]]
        threads = {m.groups() for m in found if m}
        equal({(name, user, size) for name, _, user, size in threads},
            {("server", str(os.getuid()), size) for size in ("70001", "70002")}, "contexts")
        equal(len({thread for _, thread, _, _ in threads}), len(threads), "numbers of threads")


def test_zygote(k):
    """A process that aborts if it has a second thread has none; the programs it executes record."""
    for argument, threads in (("--type=zygote", 1), ("--type=renderer", 2)):
        output, events = record(k, "libc", "sh", "-c", "ls /proc/$$/task", "sh", argument)
        equal(len(output.splitlines()), threads, f"threads of sh {argument}")
        check(events, f"no events of ls beside sh {argument}")


# ---- unchanged programs


def same(k, *command, status=0, prepare=None, events=("libc:malloc", "libc:free"), env=None, **options):
    """The command's output, errors and exit status are the same with and without Kymo."""
    results = []
    for traced in (False, True):
        directory = k.top / f"place-{traced}-{len(os.listdir(k.top))}"
        directory.mkdir()
        if prepare:
            prepare(directory)
        trace = k.top / f"of-{directory.name}"
        wrap = [CLI, "record", "--no-summary", *ROOM, "-o", trace, "--with=libc,pthread,dl", "--"] if traced else []
        done = k.run([*wrap, *command], status=status, cwd=directory, env=env, timeout=2 * TIMEOUT, **options)
        results.append((done.stdout, done.stderr, sorted(p.name for p in directory.rglob("*") if ".git/objects" not in str(p))))
    equal(results[1][2], results[0][2], f"files that {command[0]} made")
    equal(results[1][0], results[0][0], f"output of {command[0]}")
    equal([line for line in results[1][1].splitlines() if not line.startswith("kymo: ")], results[0][1].splitlines(), f"errors of {command[0]}")
    recorded, discarded = read_trace(trace)
    found = count([(e.name, {}) for e in recorded])
    for name in events:
        check(found[name,] or discarded, f"{command[0]}: no {name} among {dict(found)}")


def test_ls(k):
    same(k, "ls", "-R", SOURCE / "src")


def test_env_true(k):
    same(k, "env", "true")


def test_failing_program(k):
    same(k, "ls", "/nowhere", status=2)


def test_bash(k):
    same(k, "bash", "-c", "for i in $(seq 30); do x=$(echo $i | tr 0-9 a-j); echo $x; done; exit 3", status=3)


def test_sh_vforks(k):
    """A shell that uses vfork, and whose children allocate before they execute."""
    same(k, "sh", "-c", "for i in $(seq 200); do /bin/true; done; no-such-command; echo $?")


def test_sort_threads(k):
    lines = "".join(f"{i * 7919 % 100003}\n" for i in range(60000))
    same(k, "sort", "-n", "--parallel=4", "-S", "1M", input=lines, events=("libc:malloc", "pthread:mutex_lock_acq"))


def test_python_threads(k):
    code = """
import threading, json, zlib, ctypes
results = {}
def work(n):
    results[n] = zlib.crc32(json.dumps(list(range(n * 500))).encode())
threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
for t in threads: t.start()
for t in threads: t.join()
print(sorted(results.items()), ctypes.CDLL("libm.so.6") is not None)
"""
    same(k, "/usr/bin/python3", "-c", code, events=("libc:malloc", "libc:free", "pthread:mutex_lock_acq", "dl:dlopen"))


def test_sqlite(k):
    need_program("sqlite3", "sqlite3")
    script = """create table t(a integer primary key, b text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000)
insert into t select i, hex(i * 7919) from n;
create index x on t(b); select count(*), sum(length(b)), max(b) from t; pragma integrity_check;"""
    same(k, "sqlite3", "data.db", script, events=("libc:malloc", "libc:realloc", "libc:free", "pthread:mutex_lock_acq"))


def test_git(k):
    need_program("git", "git")
    env = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in
        (("NAME", "A"), ("EMAIL", "a@example.org"), ("DATE", "2020-01-01T00:00:00Z"))}
    script = "git init -q -b main . && seq 100 > f && git add f && git commit -q -m one && seq 200 > f && git commit -q -a -m two && git log --stat"
    same(k, "bash", "-c", script, env=env)


def test_killed_program(k):
    """
    Everything recorded before the kill is in the trace; the exit status is that of the signal.
    """
    done = k.run([CLI, "record", "--no-summary", "-o", k.top / "killed", "--with=libc,pthread", "--", "bash", "-c", "kill -9 $$"],
        status=None)
    check(done.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL), f"exit status {done.returncode}")
    check(len(read_trace(k.top / "killed")[0]) > 100, "few events")


def test_by_hand(k):
    """Without kymo record: with LD_PRELOAD, and a session created by hand."""
    k.start_daemon()
    trace = k.record("libc:malloc")
    program = build(k, "memory", "-pthread")
    k.run([program, 2, 20], env={"LD_PRELOAD": str(PRELOAD / "libkymo-libc.so")})
    k.kymo("stop", "s")
    found = count([(e.name, fields(e)) for e in read_trace(trace)[0]], "size")
    equal((found["libc:malloc", 80001], {name for name, *_ in found}), (40, {"libc:malloc"}), "calls that the rule wants")


main()
