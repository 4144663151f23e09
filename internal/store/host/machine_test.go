package host_test

import (
	"testing"
	"testing/fstest"
	"time"

	hoststore "github.com/parley-broker/parley/internal/store/host"
)

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

func TestCountersOfTheMachineAreThoseOfItsFiles(t *testing.T) {
	t.Parallel()
	machine := fstest.MapFS{
		"proc/stat":        file("cpu  100 0 100 700 100 0 0 0 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n"),
		"proc/self/stat":   file("7 (a b) c) S 1 1 1 0 -1 4 1 0 0 0 150 50 0 0 20 0\n"),
		"proc/self/status": file("VmRSS:\t 900 kB\nRssAnon:\t     300 kB\n"),
		"proc/meminfo":     file("MemTotal:  8000 kB\nMemFree: 10 kB\nMemAvailable:  2000 kB\n"),
		"proc/net/dev": file("Inter-| Receive | Transmit\n face |bytes packets\n    lo: 9 1 0 0 0 0 0 0 9 1 0 0 0 0 0 0\n" +
			"  eth0: 5000 1 0 0 0 0 0 0 6000 1 0 0 0 0 0 0\nveth12: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n"),
		"proc/diskstats": file(" 259 0 nvme0n1 1 0 1 1 1 0 1 1 0 1 1\n 259 2 nvme0n1p2 1000 5 8000 2000 500 5 4000 5000 3 9 9 0 0 0 0\n"),
		"proc/self/mountinfo": file("20 1 0:26 / / rw - overlay overlay rw\n21 20 259:2 / /var/lib rw - ext4 /dev/nvme0n1p2 rw\n" +
			"22 20 0:30 / /var/lib/my\\040spool rw - tmpfs tmpfs rw\n" +
			"23 20 0:31 / /srv rw shared:1 - btrfs /dev/nvme0n1 rw\n"),
	}
	m := &hoststore.Machine{Root: machine, Volumes: map[string]string{"data": "/var/lib/pg", "other": "/var/library", "spool": "/var/lib/my spool", "log": "/srv/wal"}}
	read := func(at int64) map[string]float64 {
		found := make(map[string]float64)
		for _, c := range m.Read(time.Unix(at, 0)) {
			found[c.Name+" "+c.Instance] = c.Value
		}
		return found
	}
	first := read(100)
	for name, want := range map[string]float64{
		"Processor Seconds Total ": 2, "Process Processor Seconds Total ": 2, "Process Private Bytes ": 300 << 10, "Memory Bytes ": 8000 << 10,
		"Available Memory Bytes ": 2000 << 10, "Network Bytes Received Total eth0": 5000, "Network Bytes Sent Total eth0": 6000,
		"Disk Queue Length data": 3, "Disk Reads Total data": 1000, "Disk Bytes Read Total data": 8000 * 512, "Disk Read Seconds Total data": 2,
		"Disk Writes Total data": 500, "Disk Bytes Written Total data": 4000 * 512, "Disk Write Seconds Total data": 5,
		"Disk Writes Total log": 1, "Disk Seconds/Read data": 0, "Disk Seconds/Write data": 0,
	} {
		if got, is := first[name]; !is || got != want {
			t.Errorf("%s is %v (there: %v), want %v", name, got, is, want)
		}
	}
	if len(first) != 16+9 {
		t.Errorf("there are %d counters: %v", len(first), first)
	}
	machine["proc/stat"] = file("cpu  400 0 100 800 100 0 0 0 0 0\n")
	machine["proc/self/stat"] = file("7 (a b) c) S 1 1 1 0 -1 4 1 0 0 0 350 50 0 0 20 0\n")
	machine["proc/diskstats"] = file(" 259 2 nvme0n1p2 1010 5 8000 2050 504 5 4000 5400 0 9 9 0 0 0 0\n")
	later := read(104)
	for name, want := range map[string]float64{
		"% Processor Time ": 75, "Process % Processor Time ": 50, "Disk Seconds/Read data": 0.005, "Disk Seconds/Write data": 0.1,
	} {
		if got := later[name]; got < want*0.999 || got > want*1.001 {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	read(200)
	if got := read(204)["% Processor Time "]; got != 0 {
		t.Errorf("what was more than a minute ago still counts: %v", got)
	}
	if none := (&hoststore.Machine{Root: fstest.MapFS{}}).Read(time.Unix(1, 0)); len(none) != 0 {
		t.Errorf("a machine without such files has %v", none)
	}
}
