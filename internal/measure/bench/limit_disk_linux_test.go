package bench_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/measure/bench"
	"github.com/parley-broker/parley/internal/measure/bottleneck"
	"github.com/parley-broker/parley/internal/postgres"
	"github.com/parley-broker/parley/internal/postgres/postgrestest"
)

// slowStorage has the kernel let a server's processes write so often a second to the disk below a folder, by a control group.
func slowStorage(t *testing.T, folder string, writes int) {
	t.Helper()
	var info syscall.Stat_t
	if err := syscall.Stat(folder, &info); err != nil {
		t.Fatal(err)
	}
	major, minor := info.Dev>>8&0xfff, info.Dev&0xff|info.Dev>>12&0xfff00
	disk := fmt.Sprintf("%d:%d", major, minor)
	device, err := filepath.EvalSymlinks("/sys/dev/block/" + disk)
	if err != nil {
		t.Skipf("the folder is on no disk: %v", err)
	}
	if _, err := os.Stat(filepath.Join(device, "partition")); err == nil { // the limit is one of the whole disk
		whole, err := os.ReadFile(filepath.Join(filepath.Dir(device), "dev"))
		if err != nil {
			t.Fatal(err)
		}
		disk = strings.TrimSpace(string(whole))
	}
	group, limit := filepath.Join("/sys/fs/cgroup/blkio", fmt.Sprintf("parley-test-%d", os.Getpid())), "blkio.throttle.write_iops_device"
	value := fmt.Sprintf("%s %d", disk, writes)
	if _, err := os.Stat(filepath.Dir(group)); err != nil { // version 2
		group, limit = filepath.Join("/sys/fs/cgroup", filepath.Base(group)), "io.max"
		value = fmt.Sprintf("%s wiops=%d", disk, writes)
	}
	if err := os.Mkdir(group, 0o700); err != nil {
		t.Skipf("no control group can be made: %v", err)
	}
	t.Cleanup(func() { removeGroup(t, group) })
	if err := os.WriteFile(filepath.Join(group, limit), []byte(value), 0); err != nil {
		t.Skipf("the control group takes no limit: %v", err)
	}
	for _, pid := range processesOf(t, folder) {
		if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0); err != nil &&
			!errors.Is(err, syscall.ESRCH) {
			t.Fatal(err)
		}
	}
}

// processesOf gives the server of a data folder and its children: those that it starts later are in its group.
func processesOf(t *testing.T, folder string) []int {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(folder, "*", "postmaster.pid"))
	more, _ := filepath.Glob(filepath.Join(folder, "postmaster.pid"))
	files = append(files, more...)
	if len(files) == 0 {
		t.Fatalf("no server is in %s", folder)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	server, err := strconv.Atoi(first)
	if err != nil {
		t.Fatal(err)
	}
	all := []int{server}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == first {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			all = append(all, pid)
		}
	}
	return all
}

// removeGroup gives the processes back to the group above, and removes theirs.
func removeGroup(t *testing.T, group string) {
	t.Helper()
	text, _ := os.ReadFile(filepath.Join(group, "cgroup.procs"))
	for pid := range strings.FieldsSeq(string(text)) {
		_ = os.WriteFile(filepath.Join(filepath.Dir(group), "cgroup.procs"), []byte(pid), 0)
	}
	var err error
	for range 50 {
		if err = os.Remove(group); err == nil {
			return
		}
		<-time.After(100 * time.Millisecond)
	}
	t.Errorf("remove the control group: %v", err)
}

// A disk that takes 100 writes a second makes each durable commit wait: the flush of the log is what limits, as on a slow disk.
func TestSlowDiskIsNamed(t *testing.T) {
	if os.Getenv("PARLEY_TEST_LONG") == "" || os.Getuid() != 0 {
		t.Skip("it holds up a disk by a control group, which takes root: PARLEY_TEST_LONG=1 has it measured")
	}
	server := postgrestest.Start(t, postgres.Config{Settings: map[string]string{"fsync": "on", "shared_buffers": "128MB"}})
	a := limited(t, server.DSN("postgres"), func(c *bench.Config) {
		c.Duration = 3 * time.Second
		held := false
		c.Progress = func(text string) { // the stages are prepared at full speed
			if !held && strings.HasPrefix(text, "run 1 of 1: business, writes_and_send") {
				held = true
				slowStorage(t, server.Folder(), 100)
			}
		}
	})
	t.Log(a.Limit.Sentence)
	flush := 0.0
	for _, w := range a.Waits {
		if strings.Contains(strings.ToUpper(w.Event), ":WAL") {
			flush += w.Share
		}
	}
	if flush < 0.6 || a.Limit.Kind != bottleneck.WAL || !strings.HasPrefix(a.Limit.Sentence, "WAL flush: ") ||
		a.Limit.Change.Setting != bottleneck.SettingBatch {
		t.Errorf("found %+v of %+v", a.Limit, a.Waits)
	}
}
