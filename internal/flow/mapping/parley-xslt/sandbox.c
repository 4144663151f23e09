/* The walls around the process: no files, no network, no other programs, so much memory and time. */
#define _GNU_SOURCE
#include "parley-xslt.h"

#include <locale.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#ifdef __linux__
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif
#endif

static void limit(int resource, rlim_t soft, rlim_t hard)
{
	struct rlimit r = {soft, hard};
	setrlimit(resource, &r);
}

#ifdef ARCHITECTURE
/* The calls of the kernel that the process makes once it works. All others are refused with EPERM. */
static const int allowed[] = {
	SYS_read, SYS_write, SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_madvise, SYS_brk, SYS_futex, SYS_exit, SYS_exit_group,
	SYS_rt_sigreturn, SYS_rt_sigprocmask, SYS_rt_sigaction, SYS_prlimit64, SYS_getrusage, SYS_clock_gettime, SYS_gettimeofday,
	SYS_getrandom, SYS_restart_syscall, SYS_setrlimit, SYS_getrlimit,
#ifdef SYS_time
	SYS_time,
#endif
};

static void refuse_calls(void)
{
	enum { CALLS = sizeof allowed / sizeof allowed[0] };
	struct sock_filter filter[CALLS + 7];
	unsigned n = 0;
	filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
	filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
	filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (unsigned i = 0; i < CALLS; i++)
		filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)allowed[i], (unsigned char)(CALLS - i), 0);
	filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = {(unsigned short)n, filter};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}
#endif

/* sandbox_enter closes the walls. The zone and the locale are read before, because they are files. */
void sandbox_enter(void)
{
	setlocale(LC_CTYPE, "C.UTF-8");
	tzset();
	limit(RLIMIT_CORE, 0, 0);
	limit(RLIMIT_FSIZE, 0, 0);
	limit(RLIMIT_NOFILE, 3, 3);
#ifdef __linux__
	prctl(PR_SET_PDEATHSIG, 9);
	limit(RLIMIT_NPROC, 0, 0);
#endif
#ifdef ARCHITECTURE
	refuse_calls();
#endif
}

/* limits_use bounds what follows: memory, and the time of the processor from now on. */
void limits_use(const struct limits *limits)
{
	static uint64_t memory;
	struct rusage used;
	if (limits->memory != memory) {
		limit(RLIMIT_AS, (rlim_t)limits->memory, RLIM_INFINITY);
		memory = limits->memory;
	}
	if (limits->seconds > 0 && getrusage(RUSAGE_SELF, &used) == 0)
		limit(RLIMIT_CPU, (rlim_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) + limits->seconds + 1, RLIM_INFINITY);
}

/* limits_lift lets a request that was refused be read to its end. */
void limits_lift(void)
{
	limit(RLIMIT_CPU, RLIM_INFINITY, RLIM_INFINITY);
}
