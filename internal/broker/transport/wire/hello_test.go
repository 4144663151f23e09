package wire

import (
	"errors"
	"reflect"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/transport/wire/pb"
)

func TestTheHighestCommonVersionIsSpoken(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ourLowest, ourHighest, theirLowest, theirHighest, want uint32
	}{
		{1, 1, 1, 1, 1},
		{1, 1, 1, 9, 1},
		{1, 3, 1, 2, 2},
		{2, 5, 4, 9, 5},
		{1, 1, 2, 9, 0},
		{3, 4, 1, 2, 0},
	} {
		ours := Hello{Lowest: c.ourLowest, Highest: c.ourHighest}
		theirs := Hello{Lowest: c.theirLowest, Highest: c.theirHighest}
		got, err := Agree(ours, theirs)
		if got.Version != c.want || (c.want == 0) != errors.Is(err, ErrVersion) {
			t.Errorf("%+v: version %d, %v", c, got.Version, err)
		}
		back, err := Agree(theirs, ours)
		if back.Version != c.want || (c.want == 0) != errors.Is(err, ErrVersion) {
			t.Errorf("%+v, seen from there: version %d, %v", c, back.Version, err)
		}
	}
}

func TestOnlyFeaturesOfBothAreUsed(t *testing.T) {
	t.Parallel()
	ours := Hello{Lowest: 1, Highest: 1, Features: []string{"deflate", "ours"}}
	theirs := Hello{Lowest: 1, Highest: 2, Features: []string{"theirs", "deflate"}}
	agreed, err := Agree(ours, theirs)
	if err != nil || !agreed.Has("deflate") || agreed.Has("ours") || agreed.Has("theirs") {
		t.Errorf("agreed on %+v, %v", agreed, err)
	}
}

func TestHelloIsDecodedAsItWasEncoded(t *testing.T) {
	t.Parallel()
	encoded := Hello{
		Lowest: 1, Highest: 3, Features: []string{"deflate"}, Brokers: []Broker{{Instance: parley.UUID{1}, Epoch: 4}, {Instance: parley.UUID{2}}},
		Window: 1 << 23, LargestPayload: 1 << 22, Software: "parley 1.0",
	}
	payload, err := EncodeHello(encoded)
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := DecodeHello(payload)
	if err != nil || !reflect.DeepEqual(decoded, encoded) {
		t.Errorf("decoded %+v, %v", decoded, err)
	}
}

func TestAHelloThatMakesNoSenseIsRefused(t *testing.T) {
	t.Parallel()
	for name, message := range map[string]*pb.Hello{
		"nothing":              {},
		"versions turned over": {LowestVersion: 3, HighestVersion: 2},
		"no room for fragment": {LowestVersion: 1, HighestVersion: 1, LargestPayload: 1000},
		"a short broker":       {LowestVersion: 1, HighestVersion: 1, Brokers: []*pb.BrokerEpoch{{Instance: []byte{1}}}},
		"too many features":    {LowestVersion: 1, HighestVersion: 1, Features: make([]string, MaxFeatures+1)},
		"too many brokers":     {LowestVersion: 1, HighestVersion: 1, Brokers: make([]*pb.BrokerEpoch, MaxBrokers+1)},
		"a NUL":                {LowestVersion: 1, HighestVersion: 1, Software: "\x00"},
	} {
		payload, err := proto.Marshal(message)
		if err != nil {
			t.Fatal(err)
		}
		if decoded, err := DecodeHello(payload); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %+v, %v", name, decoded, err)
		}
	}
}
