package host

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/match"
	"github.com/parley-broker/parley/internal/pgdb"
	flowstore "github.com/parley-broker/parley/internal/store/flow"
)

// longValue is the length from which on a promoted value is written instead, in bytes.
const longValue = 8192

// store stores the drafts of inputs by one statement in db, and gives each input its result.
func (in *intake) store(ctx context.Context, db pgdb.DB, inputs []*processed) error {
	received, of, err := in.received(inputs)
	if err != nil {
		return err
	}
	outcomes, err := flowstore.Receive(ctx, db, in.host.name, in.name, received)
	if err != nil {
		return err
	}
	if len(outcomes) != len(of) {
		return errNotEverything
	}
	for _, o := range outcomes {
		if o.N < 1 || int(o.N) > len(of) {
			return errNotEverything
		}
		p := inputs[of[o.N-1]]
		p.observe(o, received.FailureErrors, received.FailureCodes)
	}
	for _, p := range inputs {
		p.drafts = nil
		if p.result.Outcome == "" {
			p.result.Outcome = adapter.Consumed
		}
	}
	return nil
}

// observe takes the outcome of a message of the input.
func (p *processed) observe(o flowstore.Outcome, failures, codes []*string) {
	r := &p.result
	if outcome := adapter.Outcome(o.Outcome); outcome == adapter.Repeated || outcome == adapter.Joined {
		*r = adapter.Result{Outcome: outcome, Message: o.Message}
		return
	}
	r.Messages++
	if r.Message == 0 || o.Message < r.Message {
		r.Message = o.Message
	}
	if p.interchange == 0 {
		p.interchange = r.Message
	}
	rank := map[adapter.Outcome]int{"": 0, adapter.Consumed: 0, adapter.Published: 1, adapter.FailedRouted: 2, adapter.Suspended: 3}
	if outcome := adapter.Outcome(o.Outcome); rank[outcome] > rank[r.Outcome] {
		r.Outcome = outcome
	}
	if r.Failure == nil && failures != nil && codes[o.N-1] != nil {
		r.Failure = &adapter.Failure{Code: *codes[o.N-1], Err: textError(*failures[o.N-1]), Permanent: true}
	}
}

// textError is an error of which only the text is known.
type textError string

func (e textError) Error() string { return string(e) }

// received makes the batch of the drafts of inputs; of says of which input each message is.
func (in *intake) received(inputs []*processed) (r flowstore.Received, of []int, err error) {
	hasKeys, hasEntries, hasContents, hasParts, hasFailures := false, false, false, false, false
	for number, p := range inputs {
		isContinued := p.interchange != 0
		if isContinued {
			r.Interchange = p.interchange
		} else if p.item != 0 {
			r.ResubmittedLease, r.Resubmitted = p.lease, p.item
		}
		hasKeys = hasKeys || p.input.Key != "" && !isContinued
		hasEntries = hasEntries || len(p.input.Entry) > 0
		r.Keys, r.Entries = append(r.Keys, textOr(p.input.Key)), append(r.Entries, entryText(p.input.Entry))
		if isContinued {
			r.Keys[number] = nil
		}
		for i := range p.drafts {
			d := &p.drafts[i]
			if err := d.addTo(&r); err != nil {
				return r, nil, err
			}
			of, r.Inputs = append(of, number), append(r.Inputs, int32(number+1))
			hasContents, hasFailures = hasContents || d.content != 0, hasFailures || d.failureCode != ""
			hasParts = hasParts || d.contentType != "" || d.charset != ""
		}
	}
	if r.Bodies == nil {
		r.Bodies = [][]byte{}
	}
	if !hasKeys {
		r.Keys, r.Entries = nil, nil
	} else if !hasEntries {
		r.Entries = nil
	}
	if len(of) == len(inputs) && !hasKeys {
		r.Inputs = nil // each is one of its own
	}
	if !hasContents {
		r.Contents = nil
	}
	if !hasParts {
		r.Parts = nil
	}
	if !hasFailures {
		r.FailureCodes, r.FailureErrors = nil, nil
	}
	if in.response != nil && r.Resubmitted == 0 {
		r.Node = in.host.server.config.Node
	}
	in.match(&r, inputs)
	return r, of, nil
}

// addTo adds the draft to a batch.
func (d *draft) addTo(r *flowstore.Received) error {
	promoted, err := object(d.promoted)
	if err != nil {
		return err
	}
	written, err := object(d.written)
	if err != nil {
		return err
	}
	r.Bodies, r.Types = append(r.Bodies, d.body), append(r.Types, textOr(d.messageType))
	r.Promoted, r.Written = append(r.Promoted, promoted), append(r.Written, written)
	var content *int64
	if d.content != 0 {
		content = &d.content
	}
	r.Contents, r.Parts = append(r.Contents, content), append(r.Parts, d.part())
	r.FailureCodes, r.FailureErrors = append(r.FailureCodes, textOr(d.failureCode)), append(r.FailureErrors, textOr(d.failureError))
	return nil
}

// part describes the body of a draft, where more than its bytes is known.
func (d *draft) part() *string {
	if d.contentType == "" && d.charset == "" {
		return nil
	}
	written, err := json.Marshal([]messagePart{{
		Name: "body", ContentType: pgdb.Storable(d.contentType), Charset: pgdb.Storable(d.charset), Bytes: d.size, IsBody: true,
	}})
	if err != nil { // texts and a number
		return nil
	}
	text := string(written)
	return &text
}

// messagePart is a part of a message, as the database has it.
type messagePart struct {
	Name        string `json:"name"`
	ContentType string `json:"content_type,omitempty"`
	Charset     string `json:"charset,omitempty"`
	Bytes       int64  `json:"bytes"`
	IsBody      bool   `json:"is_body"`
}

// match matches the messages of a batch, unless a value is one that the database might read otherwise: then it matches them itself.
func (in *intake) match(r *flowstore.Received, inputs []*processed) {
	c := in.host.settings.Load()
	if c == nil || c.Epoch == 0 {
		return
	}
	messages, ports, n := []int32{}, []int64{}, int32(0)
	for _, p := range inputs {
		for i := range p.drafts {
			n++
			d := &p.drafts[i]
			if d.failureCode != "" {
				continue
			}
			facts, isPlain := in.facts(d)
			if !isPlain {
				in.feeding.feed(nil)
				return
			}
			found := matched(c.matcher, facts)
			in.feeding.feed(found)
			for _, port := range found {
				messages, ports = append(messages, n), append(ports, port)
			}
		}
	}
	r.Epoch, r.MatchedMessages, r.MatchedPorts = c.Epoch, messages, ports
}

func matched(m *match.Matcher, facts map[string]string) []int64 { return m.Match(facts) }

// facts gives the promoted values of a message as texts.
func (in *intake) facts(d *draft) (facts map[string]string, isPlain bool) {
	facts = make(map[string]string, len(d.promoted)+len(in.common)+1)
	for name, value := range d.promoted {
		text, isThere, isPlain := textOf(value)
		if !isPlain || len(text) > longValue {
			return nil, false
		}
		if isThere {
			facts[name] = text
		}
	}
	maps.Copy(facts, in.common)
	if d.messageType != "" {
		facts["MessageType"] = d.messageType
	}
	return facts, true
}

// textOf gives a scalar of JSON as the database writes it as a text. isPlain is false where the two might differ.
func textOf(value any) (text string, isThere, isPlain bool) {
	switch v := value.(type) {
	case nil:
		return "", false, true
	case string:
		return v, true, utf8.ValidString(v)
	case bool:
		return strconv.FormatBool(v), true, true
	case int:
		return strconv.Itoa(v), true, true
	case int64:
		return strconv.FormatInt(v, 10), true, true
	case json.Number:
		return v.String(), true, !strings.ContainsAny(v.String(), "eE") && !strings.HasPrefix(v.String(), "-0")
	}
	return "", false, false
}

// object writes properties; nil for none.
func object(properties map[string]any) (*string, error) {
	if len(properties) == 0 {
		return nil, nil
	}
	written, err := json.Marshal(properties)
	if err != nil {
		return nil, fmt.Errorf("write the properties of a message: %w", err)
	}
	text := string(written)
	return &text, nil
}

func textOr(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
