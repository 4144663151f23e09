package wire

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/transport/wire/pb"
)

// The versions of the protocol that this program speaks.
const (
	LowestVersion  = 1
	HighestVersion = 1
)

// FeatureDeflate names frames compressed with deflate.
const FeatureDeflate = "deflate"

// ErrVersion is in the error about a peer with which there is no common version.
var ErrVersion = errors.New("no common version of the protocol")

// Broker is a broker instance and the epoch of its database.
type Broker struct {
	Instance parley.UUID
	Epoch    int64
}

// Hello is the first frame of each end.
type Hello struct {
	// Lowest and Highest are the versions that the end speaks.
	Lowest, Highest uint32
	// Features are its further abilities.
	Features []string
	// Brokers are those served there.
	Brokers []Broker
	// Window is how many bytes of unanswered batches and fragments it takes, LargestPayload the length of the longest, in bytes.
	Window, LargestPayload int64
	// Software is a program and its version, for people.
	Software string
}

// Agreement holds the abilities that two ends have in common.
type Agreement struct {
	Version  uint32
	Features []string
}

// Has reports whether both ends have a feature.
func (a Agreement) Has(feature string) bool { return slices.Contains(a.Features, feature) }

// Agree finds the highest version and the features that both ends have. The error is [ErrVersion].
func Agree(ours, theirs Hello) (Agreement, error) {
	version := min(ours.Highest, theirs.Highest)
	if version < ours.Lowest || version < theirs.Lowest {
		return Agreement{}, fmt.Errorf("%w: this end speaks %d to %d, the peer (%s) %d to %d",
			ErrVersion, ours.Lowest, ours.Highest, theirs.Software, theirs.Lowest, theirs.Highest)
	}
	agreement := Agreement{Version: version}
	for _, feature := range ours.Features {
		if slices.Contains(theirs.Features, feature) {
			agreement.Features = append(agreement.Features, feature)
		}
	}
	return agreement, nil
}

// EncodeHello is the reverse of DecodeHello.
func EncodeHello(h Hello) ([]byte, error) {
	message := &pb.Hello{
		LowestVersion:  h.Lowest,
		HighestVersion: h.Highest,
		Features:       h.Features,
		Window:         clamp(h.Window),
		LargestPayload: clamp(h.LargestPayload),
		Software:       shortened(h.Software, MaxName),
	}
	for _, b := range h.Brokers {
		message.Brokers = append(message.Brokers, &pb.BrokerEpoch{Instance: uuidBytes(b.Instance), Epoch: b.Epoch})
	}
	return proto.Marshal(message)
}

// DecodeHello reads a Hello; a LargestPayload that was not stated is [LargestPayload].
func DecodeHello(payload []byte) (Hello, error) {
	message := &pb.Hello{}
	if err := decode(payload, message, map[protowire.Number]int{3: MaxFeatures, 4: MaxBrokers}); err != nil {
		return Hello{}, fmt.Errorf("hello: %w", err)
	}
	h := Hello{
		Lowest:         message.GetLowestVersion(),
		Highest:        message.GetHighestVersion(),
		Features:       message.GetFeatures(),
		Window:         unclamp(message.GetWindow()),
		LargestPayload: unclamp(message.GetLargestPayload()),
		Software:       message.GetSoftware(),
	}
	if h.Lowest == 0 || h.Lowest > h.Highest {
		return Hello{}, malformed("hello: versions %d to %d", h.Lowest, h.Highest)
	}
	if h.LargestPayload == 0 {
		h.LargestPayload = LargestPayload
	}
	if h.LargestPayload < SmallestPayload {
		return Hello{}, malformed("hello: a largest payload of %d bytes, at least %d must be taken", h.LargestPayload, SmallestPayload)
	}
	if err := checkText("hello: the software", h.Software, MaxName); err != nil {
		return Hello{}, err
	}
	for _, feature := range h.Features {
		if err := checkText("hello: a feature", feature, MaxName); err != nil {
			return Hello{}, err
		}
	}
	brokers, err := decodeBrokers(message.GetBrokers())
	if err != nil {
		return Hello{}, fmt.Errorf("hello: %w", err)
	}
	h.Brokers = brokers
	return h, nil
}

func decodeBrokers(messages []*pb.BrokerEpoch) ([]Broker, error) {
	brokers := make([]Broker, 0, len(messages))
	for _, b := range messages {
		instance, err := decodeUUID("a broker", b.GetInstance(), false)
		if err != nil {
			return nil, err
		}
		if b.GetEpoch() < 0 {
			return nil, malformed("epoch %d", b.GetEpoch())
		}
		brokers = append(brokers, Broker{Instance: instance, Epoch: b.GetEpoch()})
	}
	return brokers, nil
}

// clamp and unclamp carry a count of bytes, which is never negative.
func clamp(n int64) uint64 { return uint64(max(n, 0)) }

func unclamp(n uint64) int64 {
	return int64(min(n, math.MaxInt64))
}

// uuidBytes is empty for none.
func uuidBytes(u parley.UUID) []byte {
	if u.IsZero() {
		return nil
	}
	return u[:]
}

// decodeUUID reads 16 bytes, or none where that is allowed.
func decodeUUID(what string, text []byte, mayBeNone bool) (u parley.UUID, err error) {
	if len(text) == 0 && mayBeNone {
		return u, nil
	}
	if len(text) != len(u) {
		return u, malformed("%s has %d bytes in place of %d", what, len(text), len(u))
	}
	return parley.UUID(text), nil
}
