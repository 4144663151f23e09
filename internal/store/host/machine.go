package host

import (
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// sectorBytes is the unit of /proc/diskstats, whatever the disk has.
	sectorBytes = 512
	// ticks are those of a second in /proc.
	ticks = 100
)

// Counter is a figure of the machine, and of which of several it is. IsTotal is whether it only grows.
type Counter struct {
	Name, Instance string
	Value          float64
	IsTotal        bool
}

// Machine reads counters of this machine.
type Machine struct {
	// Volumes are folders whose disks are counted, by the names under which they are.
	Volumes map[string]string
	// Root is that of the machine's files; nil means those that there are.
	Root fs.FS

	recent Recent
}

// Read gives the counters as they are. Those over time are of the last minute.
func (m *Machine) Read(now time.Time) []Counter {
	r := reading{root: m.Root, values: make(map[string]float64)}
	if r.root == nil {
		r.root = os.DirFS("/")
	}
	r.processor()
	r.memory()
	r.network()
	disks := r.disks(m.Volumes)
	grown, over := m.recent.Add(now, r.values)
	if over > 0 {
		r.gauge("% Processor Time", "", 100*Ratio(grown["busy"], grown["time"]))
		r.gauge("Process % Processor Time", "", 100*grown["process"]/over.Seconds())
	}
	for _, volume := range disks {
		r.gauge("Disk Seconds/Read", volume, Ratio(grown["read seconds "+volume], grown["reads "+volume]))
		r.gauge("Disk Seconds/Write", volume, Ratio(grown["write seconds "+volume], grown["writes "+volume]))
	}
	return r.counters
}

// reading holds the values that are read at one time. values are those that ratios are made of.
type reading struct {
	root     fs.FS
	counters []Counter
	values   map[string]float64
}

func (r *reading) gauge(name, instance string, value float64) {
	r.counters = append(r.counters, Counter{Name: name, Instance: instance, Value: value})
}

func (r *reading) total(name, instance string, value float64) {
	r.counters = append(r.counters, Counter{Name: name, Instance: instance, Value: value, IsTotal: true})
}

// text reads a file; one that is not there is empty.
func (r *reading) text(name string) string {
	content, _ := fs.ReadFile(r.root, name)
	return string(content)
}

// numbers reads fields that are numbers; what is none is 0.
func numbers(fields []string) []float64 {
	read := make([]float64, len(fields))
	for i, field := range fields {
		read[i], _ = strconv.ParseFloat(field, 64)
	}
	return read
}

func (r *reading) processor() {
	for line := range strings.Lines(r.text("proc/stat")) {
		fields := strings.Fields(line)
		if len(fields) < 9 || fields[0] != "cpu" {
			continue
		}
		times := numbers(fields[1:9]) // of guests is in that of users
		whole, idle := 0.0, times[3]+times[4]
		for _, time := range times {
			whole += time
		}
		r.values["time"], r.values["busy"] = whole/ticks, (whole-idle)/ticks
		r.total("Processor Seconds Total", "", (whole-idle)/ticks)
	}
	// The name of the process may have blanks.
	own := r.text("proc/self/stat")
	if fields := strings.Fields(own[strings.LastIndex(own, ")")+1:]); len(fields) > 12 {
		times := numbers(fields[11:13])
		r.values["process"] = (times[0] + times[1]) / ticks
		r.total("Process Processor Seconds Total", "", r.values["process"])
	}
}

func (r *reading) memory() {
	for _, of := range []struct{ file, field, name string }{
		{"proc/meminfo", "MemTotal:", "Memory Bytes"},
		{"proc/meminfo", "MemAvailable:", "Available Memory Bytes"},
		{"proc/self/status", "RssAnon:", "Process Private Bytes"},
	} {
		for line := range strings.Lines(r.text(of.file)) {
			if fields := strings.Fields(line); len(fields) > 1 && fields[0] == of.field {
				r.gauge(of.name, "", numbers(fields[1:2])[0]*1024)
			}
		}
	}
}

// network counts the interfaces, without those that stay on this machine.
func (r *reading) network() {
	for line := range strings.Lines(r.text("proc/net/dev")) {
		name, rest, isInterface := strings.Cut(strings.TrimSpace(line), ":")
		fields := numbers(strings.Fields(rest))
		if !isInterface || len(fields) < 9 || name == "lo" || strings.HasPrefix(name, "veth") {
			continue
		}
		r.total("Network Bytes Received Total", name, fields[0])
		r.total("Network Bytes Sent Total", name, fields[8])
	}
}

// disks counts the disks of volumes, and gives the volumes whose disks are known.
func (r *reading) disks(volumes map[string]string) (known []string) {
	lines := make(map[string][]float64) // by device, as major:minor and as a file
	for line := range strings.Lines(r.text("proc/diskstats")) {
		if fields := strings.Fields(line); len(fields) >= 14 {
			counted := numbers(fields[3:14])
			lines[fields[0]+":"+fields[1]], lines["/dev/"+fields[2]] = counted, counted
		}
	}
	for volume, folder := range volumes {
		device, source := r.mount(folder)
		counted := lines[device]
		if counted == nil { // of a file system that has no device of its own, as Btrfs
			counted = lines[source]
		}
		if counted == nil {
			continue
		}
		known = append(known, volume)
		r.gauge("Disk Queue Length", volume, counted[8])
		r.total("Disk Reads Total", volume, counted[0])
		r.total("Disk Bytes Read Total", volume, counted[2]*sectorBytes)
		r.total("Disk Read Seconds Total", volume, counted[3]/1000)
		r.total("Disk Writes Total", volume, counted[4])
		r.total("Disk Bytes Written Total", volume, counted[6]*sectorBytes)
		r.total("Disk Write Seconds Total", volume, counted[7]/1000)
		r.values["reads "+volume], r.values["read seconds "+volume] = counted[0], counted[3]/1000
		r.values["writes "+volume], r.values["write seconds "+volume] = counted[4], counted[7]/1000
	}
	slices.Sort(known)
	return known
}

// mount is on which device a folder is, as major:minor and as its file system has it: that of the longest mount point above it.
func (r *reading) mount(folder string) (device, source string) {
	longest := -1
	for line := range strings.Lines(r.text("proc/self/mountinfo")) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		// Of two mounts at one point the later one is seen.
		if point := unescaped(fields[4]); len(point) >= longest && isAbove(point, folder) {
			longest, device, source = len(point), fields[2], ""
			if end := slices.Index(fields, "-"); end > 0 && end+2 < len(fields) {
				source = fields[end+2]
			}
		}
	}
	return device, source
}

// unescaped is a path of mountinfo, in which blanks are octal.
func unescaped(path string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\134`, `\`).Replace(path)
}

func isAbove(point, folder string) bool {
	return folder == point || strings.HasPrefix(folder, strings.TrimSuffix(point, "/")+"/")
}
