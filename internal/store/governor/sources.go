package governor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/parley-broker/parley/internal/pgdb"
)

// The resources that are measured here, by their names in the thresholds.
const (
	ProcessMemory     = "process memory"     // percent of what the process may have
	SystemMemory      = "system memory"      // percent in use, of the control group or of the machine
	CommitLatency     = "commit latency"     // milliseconds, 95th percentile
	OldestTransaction = "oldest transaction" // seconds; measured by the database
	Connections       = "connections"        // percent of those that there may be; measured by the database
	WorkWaiting       = "work waiting"       // items; measured by the database
	DataVolume        = "data volume"        // percent in use
	LogVolume         = "log volume"         // percent in use
	TemporaryVolume   = "temporary volume"   // percent in use
)

// Database measures what the database itself knows.
func Database(db pgdb.DB, system string) Source {
	return func(ctx context.Context) (map[string]float64, error) {
		rows, err := db.Query(ctx, "select m.resource, m.value from parley_store.measure($1::text) as m", system)
		if err != nil {
			return nil, pgdb.StatementError(err, "measure the database")
		}
		defer rows.Close()
		values := map[string]float64{}
		for rows.Next() {
			var resource string
			var value float64
			if err := rows.Scan(&resource, &value); err != nil {
				return nil, pgdb.StatementError(err, "measure the database")
			}
			values[resource] = value
		}
		if err := rows.Err(); err != nil {
			return nil, pgdb.StatementError(err, "measure the database")
		}
		return values, nil
	}
}

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

// Volumes measures how full the volumes are on which some folders of this machine stand, by the names of the resources.
func Volumes(folders map[string]string) Source {
	return func(context.Context) (map[string]float64, error) {
		values := map[string]float64{}
		var failures []error
		for resource, folder := range folders {
			var s syscall.Statfs_t
			if err := syscall.Statfs(folder, &s); err != nil {
				failures = append(failures, fmt.Errorf("measure the volume of %s: %w", folder, err))
				continue
			}
			// As df does: what is kept for root is neither used nor free.
			used := int64(s.Blocks - s.Bfree)
			values[resource] = percent(used, used+int64(s.Bavail))
		}
		return values, errors.Join(failures...)
	}
}

// VolumeThreshold gives the thresholds of a volume by its size: High where less than the reserve is free, 500 MB of data and the
// smaller of 5 GB and three times max_wal_size of a log (section 14.2).
func VolumeThreshold(resource string, sizeBytes, reserveBytes int64) Threshold {
	high := math.Floor(percent(sizeBytes-min(reserveBytes, sizeBytes), sizeBytes))
	return Threshold{
		Resource: resource, Unit: "%", HighAt: high, MediumAt: high - 2, MediumBelow: high - 2, NormalBelow: high - 4,
	}
}

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
