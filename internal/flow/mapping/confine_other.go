//go:build !linux

package mapping

import "runtime/debug"

// maxrssBytes is the unit of the memory that a process has used.
const maxrssBytes = 1

// confine, confineMemory and confineTime do what they can elsewhere than on Linux: the clock of the caller bounds the rest.
func confine() {}

func confineMemory(bytes uint64) { debug.SetMemoryLimit(int64(bytes)) }

func confineTime(uint64) {}
