package wire

import (
	"math"

	"github.com/parley-broker/parley/internal/broker/transport/wire/pb"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

// RunLength is at least as long as the run is in a payload, in bytes.
func RunLength(run *transportstore.Run) int64 {
	n := int64(256 + len(run.FromService) + len(run.ToService) + len(run.Contract) + len(run.MessageType) +
		len(run.TraceContext) + len(run.Security))
	for _, body := range run.Bodies {
		n += int64(len(body)) + 5
	}
	return n
}

// checkRun checks the rules for a run, on its way out and on its way in.
func checkRun(run *transportstore.Run) error {
	names := []struct{ what, text string }{
		{"the message type", run.MessageType},
		{"the sending service", run.FromService},
		{"the service", run.ToService},
		{"the contract", run.Contract},
	}
	for _, name := range names {
		if err := checkText(name.what, name.text, MaxName); err != nil {
			return err
		}
	}
	if err := checkText("the trace context", run.TraceContext, MaxTraceContext); err != nil {
		return err
	}
	switch {
	case run.ConversationID.IsZero():
		return malformed("no conversation")
	case run.Priority < 0 || run.Priority > MaxPriority:
		return malformed("priority %d", run.Priority)
	}
	if err := checkSecurity(run.Security); err != nil {
		return err
	}
	return checkNumbers(run)
}

// checkNumbers checks the numbers of the messages, and how many there are.
func checkNumbers(run *transportstore.Run) error {
	n := int64(len(run.Bodies))
	switch {
	case run.Probe != nil:
		return checkProbe(run)
	case run.Size < 0 || run.Size > MaxBody:
		return malformed("a message of %d bytes, at most %d are taken", run.Size, MaxBody)
	case run.Size > 0 && n != 0:
		return malformed("bodies beside a message that went before in fragments")
	case run.Size == 0 && n == 0:
		return malformed("a run without messages")
	case run.FirstSequence < 0:
		return malformed("message number %d", run.FirstSequence)
	case run.FirstSequence == transportstore.Unsequenced && n != 1:
		return malformed("%d messages outside the order of a conversation, in place of one", n)
	case run.FirstSequence != transportstore.Unsequenced && run.FirstSequence > math.MaxInt64-1-max(n, 1):
		return malformed("message number %d", run.FirstSequence)
	}
	return nil
}

// checkProbe checks a run that asks where the other side is.
func checkProbe(run *transportstore.Run) error {
	if len(run.Bodies) > 0 || run.Size != 0 {
		return malformed("messages in a probe")
	}
	if run.FirstSequence < 0 || run.Probe.Given < 0 || run.Probe.Expected < 0 {
		return malformed("message numbers %d, %d, %d", run.FirstSequence, run.Probe.Given, run.Probe.Expected)
	}
	return nil
}

// encodeRun writes a run that was checked.
func encodeRun(m *pb.Run, run *transportstore.Run, names *table) {
	m.Conversation = run.ConversationID[:]
	m.FromInitiator = run.FromInitiator
	m.FirstSequence = run.FirstSequence
	m.MessageType = names.add(run.MessageType)
	m.Size = run.Size
	m.FromService = names.add(run.FromService)
	m.ToService = names.add(run.ToService)
	m.Contract = names.add(run.Contract)
	m.ToBroker = uuidBytes(run.ToBroker)
	m.Priority = int32(run.Priority)
	m.EnqueuedAt = encodeTime(run.EnqueuedAt)
	m.EndsAt = encodeTime(run.EndsAt)
	m.TraceContext = run.TraceContext
	m.IsEncrypted = run.IsEncrypted
	m.Security = run.Security
	if run.Probe != nil {
		m.Probe = &pb.Probe{Given: run.Probe.Given, Expected: run.Probe.Expected}
	}
	if len(run.Bodies) == 0 {
		return
	}
	m.Lengths = make([]uint32, len(run.Bodies))
	if len(run.Bodies) == 1 {
		m.Bodies = run.Bodies[0]
	}
	for i, body := range run.Bodies {
		if body == nil {
			continue
		}
		m.Lengths[i] = uint32(min(len(body), math.MaxUint32-1)) + 1
		if len(run.Bodies) > 1 {
			m.Bodies = append(m.Bodies, body...)
		}
	}
}

// decodeRun reads a run; checkRun is still to come.
func decodeRun(run *transportstore.Run, m *pb.Run, names []string) (err error) {
	if run.ConversationID, err = decodeUUID("the conversation", m.GetConversation(), false); err != nil {
		return err
	}
	if run.ToBroker, err = decodeUUID("the broker", m.GetToBroker(), true); err != nil {
		return err
	}
	references := []struct {
		place uint32
		text  *string
	}{
		{m.GetMessageType(), &run.MessageType},
		{m.GetFromService(), &run.FromService},
		{m.GetToService(), &run.ToService},
		{m.GetContract(), &run.Contract},
	}
	for _, r := range references {
		if *r.text, err = lookUp(names, r.place); err != nil {
			return err
		}
	}
	if run.EnqueuedAt, err = decodeTime(m.GetEnqueuedAt()); err != nil {
		return err
	}
	if run.EndsAt, err = decodeTime(m.GetEndsAt()); err != nil {
		return err
	}
	if m.GetPriority() < 0 || m.GetPriority() > MaxPriority {
		return malformed("priority %d", m.GetPriority())
	}
	run.Priority = int16(m.GetPriority())
	run.FromInitiator = m.GetFromInitiator()
	run.FirstSequence = m.GetFirstSequence()
	run.Size = m.GetSize()
	run.TraceContext = m.GetTraceContext()
	run.IsEncrypted = m.GetIsEncrypted()
	run.Security = m.GetSecurity()
	if p := m.GetProbe(); p != nil {
		run.Probe = &transportstore.Probe{Given: p.GetGiven(), Expected: p.GetExpected()}
	}
	run.Bodies, err = cut(m.GetBodies(), m.GetLengths())
	return err
}

// cut parts the bodies of a run, which stay in the memory they came in.
func cut(bodies []byte, lengths []uint32) ([][]byte, error) {
	var parts [][]byte
	if len(lengths) > 0 {
		parts = make([][]byte, len(lengths))
	}
	for i, length := range lengths {
		if length == 0 {
			continue
		}
		n := uint64(length) - 1
		if n > uint64(len(bodies)) {
			return nil, malformed("a body is cut off")
		}
		parts[i], bodies = bodies[:n:n], bodies[n:]
		if parts[i] == nil {
			parts[i] = []byte{}
		}
	}
	if len(bodies) > 0 {
		return nil, malformed("%d bytes after the last body", len(bodies))
	}
	return parts, nil
}
