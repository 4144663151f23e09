package bottleneck

import (
	"bufio"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// ticks holds counters of Linux; all are zero elsewhere.
type ticks struct {
	at                                 time.Time
	user, kernel, idle, ioWait, stolen float64
	client, servers                    float64
	disks                              map[string]diskTicks
	isRead                             bool
}

type diskTicks struct{ reads, readMS, writes, writeMS, busyMS float64 }

// usage adds up differences of ticks.
type usage struct {
	all, kernel, busy, ioWait, stolen, client, servers, seconds float64
	disks                                                       map[string]diskTicks
	isSeen                                                      bool
}

// readTicks reads the counters of the processors, of this process and of the servers' processes, and of the disks.
func readTicks() ticks {
	t := ticks{at: time.Now(), disks: map[string]diskTicks{}}
	first, _, _ := strings.Cut(readFile("/proc/stat"), "\n")
	values := numbers(strings.Fields(first))
	if len(values) < 9 {
		return t
	}
	t.isRead = true
	t.user, t.kernel, t.idle, t.ioWait, t.stolen = values[1]+values[2], values[3]+values[6]+values[7], values[4], values[5], values[8]
	t.client = processTicks("/proc/self/stat")
	for _, path := range glob("/proc/[0-9]*/stat") {
		if text := readFile(path); strings.Contains(text, "(postgres") {
			t.servers += ticksOf(text)
		}
	}
	lines := bufio.NewScanner(strings.NewReader(readFile("/proc/diskstats")))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		v := numbers(fields)
		if len(v) < 13 || strings.HasPrefix(fields[2], "loop") || strings.HasPrefix(fields[2], "ram") {
			continue
		}
		t.disks[fields[2]] = diskTicks{reads: v[3], readMS: v[6], writes: v[7], writeMS: v[10], busyMS: v[12]}
	}
	return t
}

func (u *usage) add(before, after ticks) {
	if !before.isRead || !after.isRead {
		return
	}
	u.isSeen = true
	busy := after.user - before.user + after.kernel - before.kernel
	u.busy += busy
	u.kernel += after.kernel - before.kernel
	u.ioWait += after.ioWait - before.ioWait
	u.stolen += after.stolen - before.stolen
	u.all += busy + after.idle - before.idle + after.ioWait - before.ioWait + after.stolen - before.stolen
	u.client += after.client - before.client
	u.servers += max(0, after.servers-before.servers)
	u.seconds += after.at.Sub(before.at).Seconds()
	if u.disks == nil {
		u.disks = map[string]diskTicks{}
	}
	for name, a := range after.disks {
		b, sum := before.disks[name], u.disks[name]
		u.disks[name] = diskTicks{
			sum.reads + a.reads - b.reads, sum.readMS + a.readMS - b.readMS, sum.writes + a.writes - b.writes,
			sum.writeMS + a.writeMS - b.writeMS,
			sum.busyMS + a.busyMS - b.busyMS,
		}
	}
}

// system gives the parts.
func (u *usage) system(isLocal bool) System {
	s := System{IsSeen: u.isSeen && isLocal && u.all > 0, Cores: runtime.NumCPU(), Disks: []Disk{}}
	if !s.IsSeen {
		return s
	}
	s.Busy, s.Kernel, s.IOWait, s.Stolen = u.busy/u.all, u.kernel/u.all, u.ioWait/u.all, u.stolen/u.all
	s.Client, s.Servers = u.client/u.all, min(1, u.servers/u.all)
	for name, d := range u.disks {
		if d.reads+d.writes == 0 {
			continue
		}
		s.Disks = append(s.Disks, Disk{
			Name: name, Busy: min(1, d.busyMS/1000/max(u.seconds, 1e-3)), ReadMS: d.readMS / max(1, d.reads),
			WriteMS: d.writeMS / max(1, d.writes),
		})
	}
	s.FreeBytes = availableMemory()
	return s
}

// BusyPart gives the part of the processors that were busy, and of that what a hypervisor took away, between two moments of this machine.
func BusyPart(pause func()) (busy, stolen float64, isSeen bool) {
	var u usage
	before := readTicks()
	pause()
	u.add(before, readTicks())
	if u.all == 0 {
		return 0, 0, false
	}
	return u.busy / u.all, u.stolen / u.all, true
}

func availableMemory() float64 {
	for line := range strings.Lines(readFile("/proc/meminfo")) {
		if rest, is := strings.CutPrefix(line, "MemAvailable:"); is {
			kilobytes, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kilobytes * 1024
		}
	}
	return 0
}

func processTicks(path string) float64 { return ticksOf(readFile(path)) }

// ticksOf reads the time of a process, its own and that of children it has waited for, of a line of Linux's. The name is in parentheses.
func ticksOf(line string) float64 {
	_, rest, found := strings.Cut(line, ") ")
	v := numbers(strings.Fields(rest))
	if !found || len(v) < 13 {
		return 0
	}
	return v[11] + v[12]
}

func numbers(fields []string) []float64 {
	values := make([]float64, len(fields))
	for i, f := range fields {
		values[i], _ = strconv.ParseFloat(f, 64)
	}
	return values
}

func readFile(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(text)
}

func glob(pattern string) []string {
	paths, _ := filepath.Glob(pattern)
	return paths
}
