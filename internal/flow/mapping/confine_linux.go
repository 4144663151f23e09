package mapping

import (
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

// maxrssBytes is the unit of the memory that a process has used.
const maxrssBytes = 1024

// confine takes from the process what programs do not need: files, and memory that is dumped.
func confine() {
	limit(syscall.RLIMIT_CORE, 0)
	limit(syscall.RLIMIT_FSIZE, 0)
	over := make(chan os.Signal, 1)
	signal.Notify(over, syscall.SIGXCPU)
	go func() {
		<-over
		exitFor(exitTime)
	}()
}

func limit(resource int, soft uint64) {
	var now syscall.Rlimit
	if syscall.Getrlimit(resource, &now) == nil {
		now.Cur = min(soft, now.Max)
		_ = syscall.Setrlimit(resource, &now) // the clock bounds it still
	}
}

// runtimeBytes are for the program itself.
const runtimeBytes = 128 << 20

// confineMemory bounds the memory of the process. The garbage collector works harder before it is reached. Address space that the runtime
// reserves and does not use is none of it.
func confineMemory(bytes uint64) {
	debug.SetMemoryLimit(int64(bytes))
	limit(syscall.RLIMIT_DATA, bytes+runtimeBytes)
}

// confineTime bounds the time of the processor from now on.
func confineTime(seconds uint64) {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) == nil {
		limit(syscall.RLIMIT_CPU, uint64(used.Utime.Sec+used.Stime.Sec)+seconds+1)
	}
}
