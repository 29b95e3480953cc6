/* SPDX-License-Identifier: MIT */
/*
 * machines KEPT CPUS PASSING [ANYTHING...]: creates virtual machines with KVM. PASSING machines are
 * closed at once, in another thread. KEPT machines stay; each has CPUS virtual CPUs, and as many
 * threads with the names that QEMU gives to them. Prints "ready", and exits when a line arrives.
 * Exits with 77 if KVM is not available. Has no event.
 */
#include <fcntl.h>
#include <linux/kvm.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

static int kvm;
static pthread_barrier_t named;

static int make(void)
{
	int fd = ioctl(kvm, KVM_CREATE_VM, 0);

	if (fd < 0) {
		perror("KVM_CREATE_VM");
		exit(3);
	}
	return fd;
}

static void *pass(void *n)
{
	for (long i = 0; i < (long)n; i++)
		close(make());
	return NULL;
}

static void *be_cpu(void *n)
{
	char name[16];

	snprintf(name, sizeof(name), "CPU %ld/KVM", (long)n);
	prctl(PR_SET_NAME, name);
	pthread_barrier_wait(&named);
	pause();
	return NULL;
}

int main(int argc, char **argv)
{
	long kept = atol(argv[1]), cpus = atol(argv[2]);
	pthread_t thread;
	char line[16];

	kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	if (kvm < 0)
		return 77;
	pthread_create(&thread, NULL, pass, (void *)atol(argv[3]));
	pthread_join(thread, NULL);
	pthread_barrier_init(&named, NULL, (unsigned)(kept * cpus + 1));
	for (long i = 0; i < kept; i++) {
		int vm = make();

		for (long c = 0; c < cpus; c++) {
			if (ioctl(vm, KVM_CREATE_VCPU, c) < 0)
				return 3;
			pthread_create(&thread, NULL, be_cpu, (void *)c);
		}
	}
	pthread_barrier_wait(&named);
	puts("ready");
	fflush(stdout);
	return fgets(line, sizeof(line), stdin) ? 0 : 1;
}
