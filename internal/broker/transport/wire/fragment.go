package wire

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/parley-broker/parley/internal/broker/transport"
	"github.com/parley-broker/parley/internal/broker/transport/wire/pb"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

// EncodeFragment is the reverse of DecodeFragment. The Identity of the passage does not travel.
func EncodeFragment(fragment transportstore.Fragment, passage transport.Passage) ([]byte, error) {
	if err := checkFragment(&fragment); err != nil {
		return nil, err
	}
	return proto.Marshal(&pb.Fragment{
		Speaker:       encodeSpeaker(fragment.Speaker),
		Passage:       encodePassage(passage),
		Conversation:  uuidBytes(fragment.ConversationID),
		FromInitiator: fragment.FromInitiator,
		Sequence:      fragment.Sequence,
		Offset:        fragment.Offset,
		Size:          fragment.Size,
		Data:          fragment.Data,
		ToService:     fragment.ToService,
		ToBroker:      uuidBytes(fragment.ToBroker),
		Security:      fragment.Security,
	})
}

// DecodeFragment reads a fragment and its passage, without Identity.
func DecodeFragment(payload []byte) (fragment transportstore.Fragment, passage transport.Passage, err error) {
	message := &pb.Fragment{}
	if err := decode(payload, message, nil); err != nil {
		return fragment, passage, fmt.Errorf("fragment: %w", err)
	}
	if fragment.Speaker, err = decodeSpeaker(message.GetSpeaker()); err != nil {
		return fragment, passage, fmt.Errorf("fragment: %w", err)
	}
	if fragment.ConversationID, err = decodeUUID("the conversation", message.GetConversation(), false); err != nil {
		return fragment, passage, fmt.Errorf("fragment: %w", err)
	}
	if fragment.ToBroker, err = decodeUUID("the broker", message.GetToBroker(), true); err != nil {
		return fragment, passage, fmt.Errorf("fragment: %w", err)
	}
	fragment.FromInitiator = message.GetFromInitiator()
	fragment.Sequence = message.GetSequence()
	fragment.Offset = message.GetOffset()
	fragment.Size = message.GetSize()
	fragment.Data = message.GetData()
	fragment.ToService = message.GetToService()
	fragment.Security = message.GetSecurity()
	return fragment, decodePassage(message.GetPassage()), checkFragment(&fragment)
}

// checkFragment checks the rules for a fragment, on its way out and on its way in. One without data asks how much is stored.
func checkFragment(f *transportstore.Fragment) error {
	length := int64(len(f.Data))
	if f.Security != nil {
		length = max(length-transportstore.SealSize, 0)
	}
	switch {
	case f.Speaker.Instance.IsZero():
		return malformed("fragment: nobody speaks")
	case f.ConversationID.IsZero():
		return malformed("fragment: no conversation")
	case f.Sequence < 0 || f.Sequence == transportstore.Unsequenced:
		return malformed("fragment: message number %d", f.Sequence)
	case f.Size <= 0 || f.Size > MaxBody:
		return malformed("fragment: a message of %d bytes, at most %d are taken", f.Size, MaxBody)
	case length > MaxFragment:
		return malformed("fragment: %d bytes, at most %d are taken", length, MaxFragment)
	case f.Offset < 0 || f.Offset > f.Size-length:
		return malformed("fragment: %d bytes at %d of %d", length, f.Offset, f.Size)
	}
	if err := checkSecurity(f.Security); err != nil {
		return fmt.Errorf("fragment: %w", err)
	}
	return checkText("fragment: the service", f.ToService, MaxName)
}

// EncodeStored writes the answer to a fragment.
func EncodeStored(stored int64) ([]byte, error) {
	return proto.Marshal(&pb.Stored{Stored: stored})
}

// notWanted is the stored length of a fragment that the far side will not have.
const notWanted = -1

// DecodeStored reads the answer to a fragment of a message of size bytes; -1 when it is not wanted.
func DecodeStored(payload []byte, size int64) (int64, error) {
	message := &pb.Stored{}
	if err := decode(payload, message, nil); err != nil {
		return 0, fmt.Errorf("stored: %w", err)
	}
	if n := message.GetStored(); n < notWanted || n > size {
		return 0, malformed("stored: %d bytes of %d", n, size)
	}
	return message.GetStored(), nil
}
