package wire

import (
	"fmt"
	"math"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/parley-broker/parley/internal/broker/transport"
	"github.com/parley-broker/parley/internal/broker/transport/wire/pb"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

// lastTime is the end of the year 9999, in microseconds since 1970.
const lastTime = 253402300799999999

// maxTimeToLive bounds what a forwarder may keep in memory.
const maxTimeToLive = 24 * time.Hour

// EncodeBatch is the reverse of DecodeBatch. Fields that do not travel (EndpointID, Owner, Identity) are left out.
func EncodeBatch(batch transport.Batch) ([]byte, error) {
	names := table{}
	message := &pb.Batch{
		Speaker: encodeSpeaker(batch.Speaker),
		Passage: encodePassage(batch.Passage),
		Runs:    make([]*pb.Run, len(batch.Runs)),
	}
	if err := checkBatch(batch); err != nil {
		return nil, err
	}
	runs := make([]pb.Run, len(batch.Runs))
	for i := range batch.Runs {
		encodeRun(&runs[i], &batch.Runs[i], &names)
		message.Runs[i] = &runs[i]
	}
	message.Names = names.texts
	return proto.Marshal(message)
}

// DecodeBatch reads a batch. Its Identity is empty.
func DecodeBatch(payload []byte) (transport.Batch, error) {
	message := &pb.Batch{}
	if err := decode(payload, message, map[protowire.Number]int{3: MaxNames, 4: min(MaxRuns, len(payload)/smallestRun)}); err != nil {
		return transport.Batch{}, fmt.Errorf("batch: %w", err)
	}
	speaker, err := decodeSpeaker(message.GetSpeaker())
	if err != nil {
		return transport.Batch{}, fmt.Errorf("batch: %w", err)
	}
	names := message.GetNames()
	batch := transport.Batch{
		Speaker: speaker,
		Passage: decodePassage(message.GetPassage()),
		Runs:    make([]transportstore.Run, len(message.GetRuns())),
	}
	messages := 0
	for i, m := range message.GetRuns() {
		if messages += len(m.GetLengths()); messages > MaxMessages {
			return transport.Batch{}, malformed("more than %d messages in a batch", MaxMessages)
		}
		if err := decodeRun(&batch.Runs[i], m, names); err != nil {
			return transport.Batch{}, fmt.Errorf("run %d: %w", i, err)
		}
	}
	return batch, checkBatch(batch)
}

// checkBatch checks the rules for a batch, on its way out and on its way in.
func checkBatch(batch transport.Batch) error {
	if len(batch.Runs) > MaxRuns {
		return malformed("%d runs in a batch, at most %d are taken", len(batch.Runs), MaxRuns)
	}
	if batch.Speaker.Instance.IsZero() {
		return malformed("nobody speaks")
	}
	messages := 0
	for i := range batch.Runs {
		if err := checkRun(&batch.Runs[i]); err != nil {
			return fmt.Errorf("run %d: %w", i, err)
		}
		messages += len(batch.Runs[i].Bodies)
	}
	if messages > MaxMessages {
		return malformed("%d messages in a batch, at most %d are taken", messages, MaxMessages)
	}
	return nil
}

func encodeSpeaker(s transportstore.Speaker) *pb.Speaker {
	return &pb.Speaker{Instance: uuidBytes(s.Instance), Epoch: s.Epoch, Term: s.Term, Token: uuidBytes(s.Token)}
}

func decodeSpeaker(m *pb.Speaker) (s transportstore.Speaker, err error) {
	if s.Instance, err = decodeUUID("the speaker", m.GetInstance(), false); err != nil {
		return s, err
	}
	if s.Token, err = decodeUUID("the token", m.GetToken(), true); err != nil {
		return s, err
	}
	if s.Epoch, s.Term = m.GetEpoch(), m.GetTerm(); s.Epoch < 0 || s.Term < 0 {
		return s, malformed("epoch %d, term %d", s.Epoch, s.Term)
	}
	return s, nil
}

func encodePassage(p transport.Passage) *pb.Passage {
	return &pb.Passage{
		HopsRemaining:  uint32(min(max(p.HopsRemaining, 0), MaxHops)),
		TimeToLiveMs:   clamp(p.TimeToLive.Milliseconds()),
		TimeConsumedMs: clamp(p.TimeConsumed.Milliseconds()),
	}
}

// decodePassage bounds what a peer asks of forwarders, and believes that no time was consumed rather than a negative one.
func decodePassage(m *pb.Passage) transport.Passage {
	milliseconds := func(n uint64) time.Duration {
		return time.Duration(min(n, uint64(maxTimeToLive.Milliseconds()))) * time.Millisecond
	}
	return transport.Passage{
		HopsRemaining: int(min(m.GetHopsRemaining(), MaxHops)),
		TimeToLive:    milliseconds(m.GetTimeToLiveMs()),
		TimeConsumed:  milliseconds(m.GetTimeConsumedMs()),
	}
}

// encodeTime clips to what the protocol can express.
func encodeTime(t time.Time) int64 {
	switch {
	case t.IsZero():
		return 0
	case t.Year() > 9999:
		return lastTime
	default:
		return max(t.UnixMicro(), 1)
	}
}

func decodeTime(n int64) (time.Time, error) {
	switch {
	case n < 0 || n > lastTime:
		return time.Time{}, malformed("time %d", n)
	case n == 0:
		return time.Time{}, nil
	default:
		return time.UnixMicro(n).UTC(), nil
	}
}

// A table collects texts that are referred to by their place: 1 is the first, 0 the empty text.
type table struct {
	texts []string
	place map[string]uint32
}

func (t *table) add(text string) uint32 {
	if text == "" {
		return 0
	}
	if place, ok := t.place[text]; ok {
		return place
	}
	if t.place == nil {
		t.place = map[string]uint32{}
	}
	t.texts = append(t.texts, text)
	place := uint32(min(len(t.texts), math.MaxUint32))
	t.place[text] = place
	return place
}

func lookUp(texts []string, place uint32) (string, error) {
	switch {
	case place == 0:
		return "", nil
	case uint64(place) > uint64(len(texts)):
		return "", malformed("text %d of %d", place, len(texts))
	default:
		return texts[place-1], nil
	}
}
