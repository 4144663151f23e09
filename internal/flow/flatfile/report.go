package flatfile

import (
	"bytes"

	"github.com/parley-broker/parley/internal/flow/interchange"
)

// report gives a bad part to the sink.
func (r *reading) report(bad interchange.Bad) error {
	r.summary.Bad++
	return r.give(bad)
}

func (r *reading) give(bad interchange.Bad) error {
	bad.Fault.Number = r.summary.Messages + 1
	return r.sink.Bad(bad)
}

// reportRecord keeps a bad record until its message has ended. More bytes than a message has that is reported whole are not kept.
func (r *reading) reportRecord(bad interchange.Bad) error {
	r.summary.Bad++
	r.pendingBytes += len(bad.Raw)
	bad.Raw = bytes.Clone(bad.Raw)
	r.pending = append(r.pending, bad)
	if r.pendingBytes > longBad || len(r.pending) >= mostPending {
		return r.reportPending()
	}
	return nil
}

// mostPending is how many bad records of a message are kept until it has ended.
const mostPending = 10_000

// reportPending gives the bad records of a message to the sink.
func (r *reading) reportPending() error {
	pending := r.pending
	r.pending, r.pendingBytes = nil, 0
	for _, bad := range pending {
		if err := r.give(bad); err != nil {
			return err
		}
	}
	return nil
}

// reportMessage gives a message that is bad to the sink, in place of its bad records where it has their bytes.
func (r *reading) reportMessage(bad interchange.Bad) error {
	if bad.Raw != nil {
		r.summary.Bad -= int64(len(r.pending))
		r.pending, r.pendingBytes = nil, 0
	}
	if err := r.reportPending(); err != nil {
		return err
	}
	return r.report(bad)
}
