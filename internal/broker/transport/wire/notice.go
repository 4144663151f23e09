package wire

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/parley-broker/parley/internal/broker/transport/wire/pb"
)

// Notice is a number of Service Broker with a text: in the answer to a batch whose outcome is unknown, and in a goodbye.
type Notice struct {
	Number int
	Text   string
}

// EncodeFailure writes the answer to a batch or fragment whose outcome is unknown.
func EncodeFailure(n Notice) ([]byte, error) {
	return proto.Marshal(&pb.Failure{Number: int32(n.Number), Text: shortened(n.Text, MaxText)})
}

// DecodeFailure reads what EncodeFailure wrote.
func DecodeFailure(payload []byte) (Notice, error) {
	message := &pb.Failure{}
	if err := decode(payload, message, nil); err != nil {
		return Notice{}, fmt.Errorf("failure: %w", err)
	}
	n := Notice{Number: int(message.GetNumber()), Text: message.GetText()}
	return n, checkText("failure: the text", n.Text, MaxText)
}

// EncodeGoodbye writes that this end takes nothing new.
func EncodeGoodbye(n Notice) ([]byte, error) {
	return proto.Marshal(&pb.Goodbye{Number: int32(n.Number), Text: shortened(n.Text, MaxText)})
}

// EncodeGrant writes a new window, in bytes.
func EncodeGrant(window int64) ([]byte, error) {
	return proto.Marshal(&pb.Grant{Window: clamp(window)})
}

// DecodeGrant reads what EncodeGrant wrote.
func DecodeGrant(payload []byte) (int64, error) {
	message := &pb.Grant{}
	if err := decode(payload, message, nil); err != nil {
		return 0, fmt.Errorf("grant: %w", err)
	}
	return unclamp(message.GetWindow()), nil
}
