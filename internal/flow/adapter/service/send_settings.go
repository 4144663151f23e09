package service

import (
	"encoding/json"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

// sendSettings are those of a port.
type sendSettings struct {
	FromService    string            `json:"from_service"`
	Contract       string            `json:"contract"`
	BrokerInstance string            `json:"broker_instance"`
	Conversation   string            `json:"conversation"`
	MessageType    string            `json:"message_type"`
	MessageTypes   map[string]string `json:"message_types"`
	Key            string            `json:"key"`
	Priority       int               `json:"priority"`
}

func defaultSend() sendSettings {
	return sendSettings{Contract: "DEFAULT", Conversation: perMessage, MessageType: "DEFAULT", Priority: 5}
}

// The conversations on which a port sends: one for each message, for each key, or one for all.
const (
	perMessage = "message"
	perKey     = "key"
	perPort    = "port"
)

func readSend(address string, raw json.RawMessage) (place, sendSettings, []adapter.Problem) {
	s := defaultSend()
	problems := adapter.CheckSettings(raw, &s)
	at, found := parseAddress(address)
	problems = append(problems, found...)
	problems = append(problems, adapter.OneOf("conversation", s.Conversation, perMessage, perKey, perPort)...)
	problems = append(problems, adapter.Between("priority", int64(s.Priority), 1, 10)...)
	if len(found) > 0 {
		return at, s, problems
	}
	if !at.isSimple && s.FromService == "" {
		problems = append(problems, wrong("nothing says which service sends",
			"Name a service of the role of the host, with a queue of its own.", "from_service"))
	}
	d := defaultSend()
	for name, isSet := range map[string]bool{
		"from_service": s.FromService != "", "contract": s.Contract != d.Contract, "broker_instance": s.BrokerInstance != "",
		"conversation": s.Conversation != d.Conversation, "message_type": s.MessageType != d.MessageType,
		"message_types": len(s.MessageTypes) > 0,
	} {
		if at.isSimple && isSet {
			problems = append(problems, wrong("a simple queue knows no conversations and types", "Leave it out.", name))
		}
	}
	if !at.isSimple && s.Priority != d.Priority {
		problems = append(problems, wrong("the priority of a conversation is that of the broker",
			"Leave it out; see parley.create_broker_priority.", "priority"))
	}
	return at, s, problems
}
