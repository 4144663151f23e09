package bench

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// ticksPerSecond is the unit in which Linux reports the time of processes.
const ticksPerSecond = 100

// processorOf is the processor time that the server has used since it was started, all of its processes together, ended ones too; 0 where
// it is not on this machine, or no Linux.
func (b *bench) processorOf(ctx context.Context) time.Duration {
	var pid int
	if err := b.cluster.admin.QueryRow(ctx, "select pg_backend_pid()").Scan(&pid); err != nil {
		return 0
	}
	of := statOf(strconv.Itoa(pid))
	if len(of) == 0 || !strings.HasPrefix(of[0], "postgres") {
		return 0
	}
	server := of[2]
	for range 20 {
		// The time of a process that ends during the sum would be counted not at all, or twice.
		ended, sum := ticksIn(statOf(server), endedColumns...), processorOfServer(server)
		if ended == ticksIn(statOf(server), endedColumns...) {
			return sum
		}
	}
	return 0
}

// endedColumns are the columns of proc(5) that have the time of the ended children of a process, as statOf gives them.
var endedColumns = []int{14, 15}

// processorOfServer adds up what a server has used itself, what its ended processes had, and what the running ones have.
func processorOfServer(server string) time.Duration {
	sum := ticksIn(statOf(server), append([]int{12, 13}, endedColumns...)...)
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, process := range processes {
		stat := statOf(filepath.Base(process))
		if len(stat) < 3 || stat[2] != server {
			continue
		}
		pid, _ := strconv.ParseUint(filepath.Base(process), 10, 32)
		if exact, err := processorTime(uint32(pid)); err == nil {
			sum += exact
		}
	}
	return sum
}

// statOf gives the name of a process, its state, its parent and further columns of proc(5), or nothing.
func statOf(process string) []string {
	text, err := os.ReadFile("/proc/" + process + "/stat")
	_, rest, found := strings.Cut(string(text), " (")
	name, columns, ends := strings.Cut(rest, ") ")
	if err != nil || !found || !ends {
		return nil
	}
	return append([]string{name}, strings.Fields(columns)...)
}

// ticksIn adds up columns of ticks.
func ticksIn(stat []string, columns ...int) time.Duration {
	sum := int64(0)
	for _, column := range columns {
		if column < len(stat) {
			ticks, _ := strconv.ParseInt(stat[column], 10, 64)
			sum += ticks
		}
	}
	return time.Duration(sum) * time.Second / ticksPerSecond
}

// costOf is the milliseconds of the processor for each job; nil where that is not known. Less than the unit of ended processes counts as 0.
func costOf(before, after time.Duration, jobs int64) *float64 {
	if before == 0 || after == 0 || jobs == 0 {
		return nil
	}
	return new(max(0, float64(after-before)/float64(time.Millisecond)/float64(jobs)))
}
