//go:build unix

package postgres

import (
	"os"
	"strconv"
	"strings"
)

// assumedMemoryBytes is the memory that we count on where the system does not report it: 2 GB.
const assumedMemoryBytes = 2 << 30

// memoryBytes is the memory of this machine, or of the container if that is less.
func memoryBytes() int64 {
	total := int64(assumedMemoryBytes)
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			fields := strings.Fields(line)
			if len(fields) >= 2 && fields[0] == "MemTotal:" {
				if kb, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
					total = kb << 10
				}
			}
		}
	}
	for _, limit := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		text, err := os.ReadFile(limit)
		if err != nil {
			continue
		}
		// Version 2 writes "max" for no limit, version 1 a number larger than any memory.
		if bytes, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && bytes > 0 {
			total = min(total, bytes)
		}
	}
	return total
}
