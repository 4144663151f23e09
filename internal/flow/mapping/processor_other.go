//go:build !linux

package mapping

// processorTime is not known elsewhere than on Linux.
func processorTime(int) (ticks uint64, isKnown bool) { return 0, false }
