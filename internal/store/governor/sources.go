package governor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The resources that are measured here, by their names in the thresholds.
const (
	ProcessMemory   = "process memory"   // percent of what the process may have
	SystemMemory    = "system memory"    // percent in use, of the control group or of the machine
	MemoryStalls    = "memory stalls"    // percent of the last ten seconds in which something waited for memory (PSI)
	CommitLatency   = "commit latency"   // milliseconds, 95th percentile
	DataVolume      = "data volume"      // percent in use
	LogVolume       = "log volume"       // percent in use
	TemporaryVolume = "temporary volume" // percent in use
)

// Memory measures the memory of this process and of the system around it. In a control group with a limit, that is the system.
func Memory() Source {
	root := os.DirFS("/")
	return func(context.Context) (map[string]float64, error) { return measureMemory(root, int64(os.Getpagesize())) }
}

func measureMemory(root fs.FS, pageBytes int64) (map[string]float64, error) {
	machine, err := readMeminfo(root)
	if err != nil {
		return nil, err
	}
	total := machine["MemTotal"]
	values := map[string]float64{SystemMemory: percent(total-machine["MemAvailable"], total)}
	if limit, used, ok := readControlGroup(root); ok && limit < total {
		total = limit
		values[SystemMemory] = percent(used, limit)
	}
	if stalls, ok := readStalls(root); ok {
		values[MemoryStalls] = stalls
	}
	fields, err := readFields(root, "proc/self/statm")
	if err != nil || len(fields) < 2 {
		return values, fmt.Errorf("read the memory of this process: %w", errors.Join(err, errUnless(len(fields) > 1)))
	}
	values[ProcessMemory] = percent(fields[1]*pageBytes, total)
	return values, nil
}

// readControlGroup gives the limit of the control group and what it uses, without the pages of files that can be dropped.
func readControlGroup(root fs.FS) (limit, used int64, ok bool) {
	for _, v := range []struct{ limit, used, stat, inactive string }{
		{"sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory.current", "sys/fs/cgroup/memory.stat", "inactive_file"},
		{
			"sys/fs/cgroup/memory/memory.limit_in_bytes", "sys/fs/cgroup/memory/memory.usage_in_bytes",
			"sys/fs/cgroup/memory/memory.stat", "total_inactive_file",
		},
	} {
		limits, err := readFields(root, v.limit)
		uses, usedErr := readFields(root, v.used)
		if err != nil || usedErr != nil || len(limits) != 1 || len(uses) != 1 || limits[0] <= 0 {
			continue
		}
		used = uses[0]
		if stat, err := fs.ReadFile(root, v.stat); err == nil {
			used -= numberAfter(string(stat), v.inactive+" ")
		}
		return limits[0], max(used, 0), true
	}
	return 0, 0, false
}

// readStalls gives the share of the last ten seconds in which some task waited for memory; the control group's own where it has one.
func readStalls(root fs.FS) (percent float64, ok bool) {
	for _, name := range []string{"sys/fs/cgroup/memory.pressure", "proc/pressure/memory"} {
		text, err := fs.ReadFile(root, name)
		if err != nil {
			continue
		}
		if _, rest, found := strings.Cut(string(text), "some avg10="); found {
			number, _, _ := strings.Cut(rest, " ")
			if percent, err = strconv.ParseFloat(number, 64); err == nil {
				return percent, true
			}
		}
	}
	return 0, false
}

func readMeminfo(root fs.FS) (map[string]int64, error) {
	text, err := fs.ReadFile(root, "proc/meminfo")
	if err != nil {
		return nil, fmt.Errorf("read the memory of the machine: %w", err)
	}
	values := map[string]int64{}
	for _, name := range []string{"MemTotal", "MemAvailable"} {
		values[name] = numberAfter(string(text), name+":") * 1024
	}
	if values["MemTotal"] == 0 {
		return nil, errors.New("read the memory of the machine: /proc/meminfo has no MemTotal")
	}
	return values, nil
}

// numberAfter gives the number behind the beginning of a line, 0 when there is none.
func numberAfter(text, beginning string) int64 {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, beginning); ok {
			if fields := strings.Fields(rest); len(fields) > 0 {
				n, _ := strconv.ParseInt(fields[0], 10, 64)
				return n
			}
		}
	}
	return 0
}

// readFields reads the numbers of a file; "max", which stands for no limit, is an error.
func readFields(root fs.FS, name string) ([]int64, error) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return nil, err
	}
	var numbers []int64
	for field := range strings.FieldsSeq(string(text)) {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}

func errUnless(ok bool) error {
	if ok {
		return nil
	}
	return errors.New("the file is too short")
}

func percent(part, whole int64) float64 { return 100 * float64(part) / float64(max(whole, 1)) }

// Latency gathers how long commits take.
type Latency struct {
	mu      sync.Mutex
	samples []time.Duration // a ring
	next    int
}

const latencySamples = 512

// Observe adds how long a commit took.
func (l *Latency) Observe(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.samples) < latencySamples {
		l.samples = append(l.samples, d)
		return
	}
	l.samples[l.next] = d
	l.next = (l.next + 1) % latencySamples
}

// Source measures the 95th percentile of what was observed since the poll before; nothing when that is nothing.
func (l *Latency) Source() Source {
	return func(context.Context) (map[string]float64, error) {
		l.mu.Lock()
		samples := l.samples
		l.samples, l.next = nil, 0
		l.mu.Unlock()
		if len(samples) == 0 {
			return nil, nil
		}
		slices.Sort(samples)
		p95 := samples[(len(samples)*95+99)/100-1]
		return map[string]float64{CommitLatency: float64(p95) / float64(time.Millisecond)}, nil
	}
}

// Gauge measures a number of the system's own, such as units that are not committed yet.
func Gauge(resource string, read func() float64) Source {
	return func(context.Context) (map[string]float64, error) { return map[string]float64{resource: read()}, nil }
}
