package wire

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/parley-broker/parley/internal/broker/transport/wire/pb"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

var outcomes = map[transportstore.Outcome]pb.Outcome{
	transportstore.Accepted:   pb.Outcome_OUTCOME_ACCEPTED,
	transportstore.Expected:   pb.Outcome_OUTCOME_EXPECTED,
	transportstore.Held:       pb.Outcome_OUTCOME_HELD,
	transportstore.Refused:    pb.Outcome_OUTCOME_REFUSED,
	transportstore.Gone:       pb.Outcome_OUTCOME_GONE,
	transportstore.Unroutable: pb.Outcome_OUTCOME_UNROUTABLE,
	transportstore.Superseded: pb.Outcome_OUTCOME_SUPERSEDED,
}

var outcomesByNumber = func() map[pb.Outcome]transportstore.Outcome {
	m := make(map[pb.Outcome]transportstore.Outcome, len(outcomes))
	for outcome, number := range outcomes {
		m[number] = outcome
	}
	return m
}()

// EncodeResults writes results in at most LargestAnswer bytes: long descriptions are shortened as far as that needs.
func EncodeResults(results []transportstore.Result) ([]byte, error) {
	for _, most := range []int{MaxText, MaxName, 0} {
		payload, err := encodeResults(results, most)
		if err != nil || len(payload) <= LargestAnswer {
			return payload, err
		}
	}
	return nil, malformed("%d results are longer than %d bytes", len(results), LargestAnswer)
}

func encodeResults(results []transportstore.Result, textMost int) ([]byte, error) {
	if len(results) > MaxRuns {
		return nil, malformed("%d results, at most %d are taken", len(results), MaxRuns)
	}
	texts := table{}
	brokers := map[Broker]uint32{}
	message := &pb.Results{Results: make([]*pb.Result, len(results))}
	for i, result := range results {
		outcome, known := outcomes[result.Outcome]
		if !known {
			return nil, malformed("outcome %q", result.Outcome)
		}
		m := &pb.Result{
			Outcome:     outcome,
			Next:        result.Next,
			ErrorNumber: result.ErrorNumber,
			Description: texts.add(shortened(result.Description, textMost)),
			Security:    result.Security,
		}
		if err := checkSecurity(result.Security); err != nil {
			return nil, err
		}
		if !result.Broker.IsZero() {
			broker := Broker{Instance: result.Broker, Epoch: result.Epoch}
			if _, ok := brokers[broker]; !ok {
				message.Brokers = append(message.Brokers, &pb.BrokerEpoch{Instance: uuidBytes(broker.Instance), Epoch: broker.Epoch})
				brokers[broker] = uint32(len(message.GetBrokers()))
			}
			m.Broker = brokers[broker]
		}
		message.Results[i] = m
	}
	message.Texts = texts.texts
	return proto.Marshal(message)
}

// DecodeResults reads the answer to a batch of n runs. An outcome that only a newer peer knows is an error: unknown.
func DecodeResults(payload []byte, n int) ([]transportstore.Result, error) {
	message := &pb.Results{}
	if err := decode(payload, message, map[protowire.Number]int{1: MaxRuns, 2: MaxBrokers, 3: n}); err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	if len(message.GetResults()) != n {
		return nil, malformed("%d results for %d runs", len(message.GetResults()), n)
	}
	brokers, err := decodeBrokers(message.GetBrokers())
	if err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	results := make([]transportstore.Result, n)
	for i, m := range message.GetResults() {
		if results[i], err = decodeResult(m, message.GetTexts(), brokers); err != nil {
			return nil, fmt.Errorf("result %d: %w", i, err)
		}
	}
	return results, nil
}

func decodeResult(m *pb.Result, texts []string, brokers []Broker) (result transportstore.Result, err error) {
	outcome, known := outcomesByNumber[m.GetOutcome()]
	if !known {
		return result, malformed("outcome %d", m.GetOutcome())
	}
	if m.GetNext() < 0 {
		return result, malformed("next is message number %d", m.GetNext())
	}
	result = transportstore.Result{Outcome: outcome, Next: m.GetNext(), ErrorNumber: m.GetErrorNumber(), Security: m.GetSecurity()}
	if err := checkSecurity(result.Security); err != nil {
		return result, err
	}
	if result.Description, err = lookUp(texts, m.GetDescription()); err != nil {
		return result, err
	}
	if err := checkText("the description", result.Description, MaxText); err != nil {
		return result, err
	}
	if place := m.GetBroker(); place > 0 {
		if uint64(place) > uint64(len(brokers)) {
			return result, malformed("broker %d of %d", place, len(brokers))
		}
		result.Broker, result.Epoch = brokers[place-1].Instance, brokers[place-1].Epoch
	}
	return result, nil
}
