package transmitter

import (
	"bytes"
	"slices"

	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

const (
	// A run of this size is what the receiving database puts into one row of its message store.
	mergedBytesMax    = 7800
	mergedMessagesMax = 1000
	// bodyOverhead is the size of a body besides its bytes, in a row and on the wire; runOverhead that of a run.
	bodyOverhead = 8
	runOverhead  = 200
)

// merge makes one run of the first of some runs of a conversation: as many as the receiving database puts into one row. The first one
// goes alone when it is larger.
func merge(runs []transportstore.Run) (merged transportstore.Run, count int) {
	merged = runs[0]
	size := bodyBytes(merged)
	messages := len(merged.Bodies)
	for count = 1; count < len(runs); count++ {
		run := runs[count]
		if !belongTogether(runs[count-1], run) {
			break
		}
		size += bodyBytes(run)
		messages += len(run.Bodies)
		if size > mergedBytesMax || messages > mergedMessagesMax {
			break
		}
	}
	if count > 1 {
		merged.Bodies = slices.Clone(merged.Bodies)
		for _, run := range runs[1:count] {
			merged.Bodies = append(merged.Bodies, run.Bodies...)
		}
	}
	return merged, count
}

// belongTogether reports whether b follows a, and could have been sent with it.
func belongTogether(a, b transportstore.Run) bool {
	return next(a) == b.FirstSequence &&
		a.MessageType == b.MessageType &&
		len(a.Bodies) > 0 && len(b.Bodies) > 0 &&
		a.Size == 0 && b.Size == 0 &&
		a.TraceContext == "" && b.TraceContext == "" &&
		a.ToBroker == b.ToBroker &&
		bytes.Equal(a.Security, b.Security)
}

// next is the number behind the last message of a run.
func next(run transportstore.Run) int64 {
	switch {
	case run.FirstSequence == transportstore.Unsequenced:
		return transportstore.Unsequenced
	case isLarge(run):
		return run.FirstSequence + 1
	}
	return run.FirstSequence + int64(len(run.Bodies))
}

// isLarge reports whether the fragments of a message have to go before it.
func isLarge(run transportstore.Run) bool { return run.Size > 0 }

// bodyBytes is the size of the bodies of a run.
func bodyBytes(run transportstore.Run) (size int) {
	for _, body := range run.Bodies {
		size += len(body) + bodyOverhead
	}
	return size
}

// weight is the size of a run in memory and on the wire, about.
func weight(run transportstore.Run) int64 { return int64(bodyBytes(run)) + runOverhead }
