package postgresql

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

// receiveSettings are those of a location.
type receiveSettings struct {
	Statement        string            `json:"statement"`
	AfterStatement   string            `json:"after_statement"`
	Takes            bool              `json:"takes"`
	BatchSize        int               `json:"batch_size"`
	PollInterval     adapter.Duration  `json:"poll_interval"`
	Channel          string            `json:"channel"`
	KeyColumn        string            `json:"key_column"`
	BodyColumn       string            `json:"body_column"`
	ContentType      string            `json:"content_type"`
	MessageType      string            `json:"message_type"`
	TypeColumn       string            `json:"type_column"`
	Properties       map[string]string `json:"properties"`
	Promoted         map[string]string `json:"promoted"`
	SearchPath       string            `json:"search_path"`
	StatementTimeout adapter.Duration  `json:"statement_timeout"`
	TLS              string            `json:"tls"`
}

func defaultReceive() receiveSettings {
	return receiveSettings{
		BatchSize: 100, PollInterval: adapter.Duration(5 * time.Second), SearchPath: "pg_catalog, pg_temp",
		StatementTimeout: adapter.Duration(30 * time.Second), TLS: "verify-full",
	}
}

// readReceive reads the address and the settings of a location, and gives all that is wrong with them. has says which secrets there are.
func readReceive(address string, raw json.RawMessage, has func(secret string) bool) (place, receiveSettings, []adapter.Problem) {
	s := defaultReceive()
	problems := adapter.CheckSettings(raw, &s)
	at, found := checkAddress(address, s.TLS, has)
	problems = append(problems, found...)
	problems = append(problems, adapter.Between("batch_size", int64(s.BatchSize), 1, rowsMax)...)
	problems = append(problems, adapter.NotBelow("poll_interval", s.PollInterval, adapter.Duration(10*time.Millisecond))...)
	problems = append(problems, adapter.NotBelow("statement_timeout", s.StatementTimeout, adapter.Duration(time.Millisecond))...)
	parameters, err := checkStatement(s.Statement)
	switch {
	case err != nil:
		problems = append(problems, wrong(err.Error(), "Write one statement that gives rows, such as delete ... returning.", "statement"))
	case parameters > 1:
		problems = append(problems, wrong("it has more than one parameter", "Write $1 for the size of a batch, or none.", "statement"))
	case !s.Takes && s.AfterStatement == "" && s.KeyColumn == "" && !changes(s.Statement):
		problems = append(problems, wrong("it only reads, and would take the same rows again and again",
			"Delete or mark the rows (delete ... returning, or after_statement), give key_column, or write takes: true of a function that does.",
			"statement"))
	}
	if s.AfterStatement != "" {
		parameters, err := checkStatement(s.AfterStatement)
		if err != nil || parameters != 1 || s.KeyColumn == "" {
			problems = append(problems, wrong("it has to be one statement with $1, the values of key_column as an array",
				"Give key_column, and write a statement such as update t set taken = true where id = any($1).", "after_statement"))
		}
	}
	if !at.isLocal && s.KeyColumn == "" && err == nil && address != "" {
		problems = append(problems, wrong("another database cannot take part in the transaction that publishes",
			"Give the column by which a row is known when it comes twice.", "key_column"))
	}
	return at, s, append(problems, s.checkColumns()...)
}

func (s *receiveSettings) checkColumns() []adapter.Problem {
	var problems []adapter.Problem
	for name, columns := range map[string]map[string]string{"properties": s.Properties, "promoted": s.Promoted} {
		for column, property := range columns {
			if !isProperty(property) {
				problems = append(problems, wrong("it is no property", "Write namespace#Name.", name, column))
			}
		}
	}
	if s.MessageType != "" && s.TypeColumn != "" {
		problems = append(problems, wrong("the messages have a type already", "Leave one of message_type and type_column out.", "type_column"))
	}
	return problems
}

func isProperty(name string) bool { return slices.Contains([]byte(name), '#') }
