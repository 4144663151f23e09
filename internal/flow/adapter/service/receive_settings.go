package service

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

// receiveSettings are those of a location.
type receiveSettings struct {
	MessageTypes   map[string]string `json:"message_types"`
	ContentType    string            `json:"content_type"`
	Promoted       map[string]string `json:"promoted"`
	SystemMessages string            `json:"system_messages"`
	BatchSize      int               `json:"batch_size"`
	Groups         int               `json:"groups"`
	Readers        int               `json:"readers"`
	PollInterval   adapter.Duration  `json:"poll_interval"`
}

func defaultReceive() receiveSettings {
	return receiveSettings{SystemMessages: "end", BatchSize: 100, Groups: 10, Readers: 1, PollInterval: adapter.Duration(time.Second)}
}

// facts are the names, in the namespace of the adapter, of properties that messages have; true is for those of simple queues.
var facts = map[bool][]string{
	false: {"ContractName", "ConversationGroupID", "ConversationHandle", "MessageTypeName", "SequenceNumber", "ServiceName"},
	true:  {"Key", "MessageID", "Priority"},
}

func readReceive(address string, raw json.RawMessage) (place, receiveSettings, []adapter.Problem) {
	s := defaultReceive()
	problems := adapter.CheckSettings(raw, &s)
	at, found := parseAddress(address)
	problems = append(problems, found...)
	problems = append(problems, adapter.OneOf("system_messages", s.SystemMessages, "end", "publish")...)
	problems = append(problems, adapter.Between("batch_size", int64(s.BatchSize), 1, 10000)...)
	problems = append(problems, adapter.Between("groups", int64(s.Groups), 1, 10000)...)
	problems = append(problems, adapter.Between("readers", int64(s.Readers), 1, 100)...)
	problems = append(problems, adapter.NotBelow("poll_interval", s.PollInterval, adapter.Duration(10*time.Millisecond))...)
	if at.isSimple && len(s.MessageTypes) > 0 {
		problems = append(problems, wrong("messages of simple queues have no types", "Leave it out.", "message_types"))
	}
	for _, fact := range slices.Sorted(maps.Keys(s.Promoted)) {
		if !slices.Contains(facts[at.isSimple], fact) {
			problems = append(problems, wrong(fmt.Sprintf("a message says no %s", fact),
				"Write one of "+strings.Join(facts[at.isSimple], ", ")+".", "promoted", fact))
		}
		if !strings.Contains(s.Promoted[fact], "#") {
			problems = append(problems, wrong(fmt.Sprintf("%q is no property", s.Promoted[fact]), "Write namespace#Name.", "promoted", fact))
		}
	}
	return at, s, problems
}
