package service

import (
	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/flow/adapter"
)

// receivedInputs makes an input of each message of a service. Timers of conversations are none.
func (r *receiver) receivedInputs(messages []parley.Message) []adapter.Input {
	var inputs []adapter.Input
	for _, m := range messages {
		if m.IsDialogTimer() {
			continue
		}
		input := r.input(m.MessageBody, map[string]any{
			"ConversationHandle": m.ConversationHandle.String(), "ConversationGroupID": m.ConversationGroupID.String(),
			"ServiceName": m.ServiceName, "ContractName": m.ServiceContractName, "MessageTypeName": m.MessageTypeName,
			"SequenceNumber": m.MessageSequenceNumber,
		})
		input.MessageType = r.settings.MessageTypes[m.MessageTypeName]
		inputs = append(inputs, input)
	}
	return inputs
}

// takenInputs makes an input of each message of a simple queue.
func (r *receiver) takenInputs(messages []parley.TakenMessage) []adapter.Input {
	inputs := make([]adapter.Input, len(messages))
	for i, m := range messages {
		said := map[string]any{"MessageID": m.MessageID, "Priority": m.Priority}
		if m.Key != nil {
			said["Key"] = *m.Key
		}
		inputs[i] = r.input(m.Body, said)
	}
	return inputs
}

// input makes an input of a body and what its message says; that becomes written properties, and promoted ones as the settings say.
func (r *receiver) input(body []byte, said map[string]any) adapter.Input {
	input := adapter.Input{
		Body: append([]byte{}, body...), Size: int64(len(body)), ContentType: r.settings.ContentType,
		Written: map[string]any{}, Promoted: map[string]any{},
	}
	for fact, value := range said {
		input.Written[namespace+fact] = value
		if property := r.settings.Promoted[fact]; property != "" {
			input.Promoted[property] = value
		}
	}
	return input
}
