package mapping

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// processorTime gives how long a process has had a processor so far, in ticks of the kernel, of which a second has a hundred.
func processorTime(pid int) (ticks uint64, isKnown bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	// The name of the program stands in brackets, and may have blanks and brackets. Behind it the times are fields 12 and 13.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return 0, false
	}
	for _, field := range fields[11:13] {
		n, err := strconv.ParseUint(string(field), 10, 64)
		if err != nil {
			return 0, false
		}
		ticks += n
	}
	return ticks, true
}
