package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/parley-broker/parley/internal/flow/process"
	"github.com/parley-broker/parley/internal/pgdb"
	flowstore "github.com/parley-broker/parley/internal/store/flow"
)

// step has the columns of parley_flow._p_step: the changes that a step makes of an instance.
type step struct {
	Instance       *int64          `json:"instance"`
	Version        int             `json:"version"`
	ConvoyKey      *string         `json:"convoy_key"`
	Parent         *int64          `json:"parent"`
	Status         string          `json:"status"`
	Waits          []process.Wait  `json:"waits"`
	Timers         []process.Timer `json:"timers"`
	Activities     []activity      `json:"activities"`
	Cancelled      []string        `json:"cancelled"`
	Holds          []int64         `json:"holds"`
	Taken          []int64         `json:"taken"`
	DoneActivities []string        `json:"done_activities"`
	Parked         []parked        `json:"parked"`
	Unread         []parked        `json:"unread"`
	Passed         map[string]int  `json:"passed"`
	StandsAt       []string        `json:"stands_at"`
	Fault          *process.Fault  `json:"fault"`
	IsWoken        bool            `json:"is_woken"`
}

type activity struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Queue     string          `json:"queue"`
	Input     json.RawMessage `json:"input"`
	TimeOutMS int64           `json:"time_out_ms"`
	Attempt   int             `json:"attempt"`
	Attempts  int             `json:"attempts"`
	PauseMS   int64           `json:"pause_ms"`
	Error     string          `json:"error,omitempty"`
}

type parked struct {
	Kind    string `json:"kind"`
	Message int64  `json:"message"`
	Receive string `json:"receive,omitempty"`
	CameBy  string `json:"came_by,omitempty"`
}

// commit records what all instances have brought.
func (c *call) commit(ctx context.Context) error {
	a := &flowstore.Advance{}
	for _, item := range c.done {
		a.Leases, a.Items = append(a.Leases, item.Lease), append(a.Items, item.Item)
	}
	for _, i := range c.instances {
		if err := c.addInstance(a, i); err != nil {
			return err
		}
	}
	for _, u := range c.unread {
		written, err := json.Marshal(u)
		if err != nil {
			return err
		}
		a.Unread = append(a.Unread, written)
	}
	if a.Bodies != nil && a.PublishingSteps != nil {
		c.match(a)
	}
	if c.tx != c.base {
		return errOpenScope
	}
	if c.tx == nil && !c.asks() {
		_, err := a.Commit(ctx, c.runner.config.Pool, c.runner.config.Host, c.of.Name)
		return lost(err)
	}
	if err := c.begin(ctx); err != nil {
		return err
	}
	if _, err := a.Commit(ctx, c.tx, c.runner.config.Host, c.of.Name); err != nil {
		return lost(err)
	}
	if err := c.putActivities(ctx); err != nil {
		return err
	}
	if err := c.base.Commit(ctx); err != nil {
		return fmt.Errorf("commit: %w", errors.Join(errOf(c.base.Conn().IsClosed()), err))
	}
	c.base, c.tx = nil, nil
	return nil
}

// errOpenScope says that a program has not ended its atomic scope.
var errOpenScope = errors.New("the program has left a savepoint open")

// errOf gives the error of a connection that is lost.
func errOf(isClosed bool) error {
	if isClosed {
		return errConnection
	}
	return nil
}

func lost(err error) error {
	if pgdb.SQLState(err) == "PF007" {
		return errors.Join(ErrLost, err)
	}
	return err
}

// asks reports whether any instance asks for work.
func (c *call) asks() bool {
	for _, i := range c.instances {
		if i.failure == nil && len(i.activities) > 0 {
			return true
		}
	}
	return false
}

// addInstance adds what an instance has brought.
func (c *call) addInstance(a *flowstore.Advance, i *instance) error {
	number := int32(0)
	if i.hasRow() {
		written, err := json.Marshal(c.step(i))
		if err != nil {
			return fmt.Errorf("write a step: %w", err)
		}
		a.Steps = append(a.Steps, written)
		number = int32(len(a.Steps))
		var state *string
		if i.failure == nil && i.runs > 0 && len(i.state) > 0 && !i.isOver() {
			text := string(i.state)
			state = &text
		}
		a.States = append(a.States, state)
	}
	if i.failure == nil {
		return addResults(c, a, i, number)
	}
	return nil
}

// addResults adds what an instance whose step has not failed has taken and given.
func addResults(c *call, a *flowstore.Advance, i *instance, number int32) error {
	details := i.details()
	held := map[int64]bool{}
	if !i.isOver() {
		for _, id := range i.holds {
			held[id] = true
		}
	}
	for _, id := range i.ended {
		if !held[id] {
			a.Ended, a.EndedSteps, a.Details = append(a.Ended, id), append(a.EndedSteps, number), append(a.Details, details)
		}
	}
	for _, s := range i.starts {
		written, err := json.Marshal(map[string]any{"orchestration": s.Orchestration, "parameters": s.Parameters})
		if err != nil {
			return err
		}
		a.Starts = append(a.Starts, written)
	}
	for n := range i.publications {
		if err := c.addPublication(a, &i.publications[n], number); err != nil {
			return err
		}
	}
	return nil
}

// step gives what the database takes of an instance.
func (c *call) step(i *instance) *step {
	s := &step{
		Version: i.version, Status: string(i.last), Taken: i.taken, Passed: i.passed, StandsAt: i.at, Fault: i.fault, IsWoken: i.isWoken,
		DoneActivities: i.takenWorks, Cancelled: i.cancelled, Waits: i.waits, Timers: i.timers, Holds: i.holds,
	}
	if i.row != 0 {
		s.Instance = &i.row
	}
	if i.convoyKey != "" {
		s.ConvoyKey = &i.convoyKey
	}
	if i.parent != 0 {
		s.Parent = &i.parent
	}
	if i.failure != nil {
		s.Status, s.Fault, s.Taken, s.Passed, s.Cancelled, s.DoneActivities = "FAILED", asFault(i.failure), nil, nil, nil, nil
	} else if i.runs == 0 {
		s.Status = "PARKED" // nothing of it has changed but what it has not taken
	}
	for _, p := range i.rest {
		if p.isNew {
			s.Parked = append(s.Parked, parked{string(p.kind), p.message.ID, p.receive, p.cameBy})
		}
	}
	if i.failure != nil {
		return s
	}
	for _, p := range i.unread {
		s.Unread = append(s.Unread, parked{Message: p.message.ID, CameBy: p.cameBy})
	}
	for _, asked := range i.activities {
		s.Activities = append(s.Activities, activity{
			ID: asked.ID, Name: asked.Name, Queue: asked.Queue, Input: asked.Input, TimeOutMS: asked.TimeOut.Milliseconds(),
			Attempt: asked.attempt, Attempts: max(asked.Attempts, 1), PauseMS: asked.pause.Milliseconds(), Error: asked.err,
		})
	}
	return s
}

// ofTransport are the properties that a message has because of how it came, and that one which is sent on has no more.
var ofTransport = []string{
	"ReceivePortName", "ReceiveLocationName", "InboundTransportType", "InboundTransportLocation", "SourceFileName", "MessageType",
	"MessageID", "InterchangeID", "ParentMessageID", "ReceivedTime",
}

// addPublication adds a message that is published.
func (c *call) addPublication(a *flowstore.Advance, p *publication, number int32) error {
	promoted := map[string]any{}
	maps.Copy(promoted, p.Promoted)
	for _, name := range ofTransport {
		delete(promoted, name)
	}
	promoted["InboundTransportType"], promoted["InboundTransportLocation"] = "Orchestration", c.of.Name
	written, err := object(p.Written)
	if err != nil {
		return err
	}
	text, err := object(promoted)
	if err != nil {
		return err
	}
	var copied *int64
	body := p.Body
	if body == nil && p.ID != 0 {
		id := p.ID
		copied = &id
	} else if body == nil {
		body = []byte{}
	}
	var parent *int64
	if p.parent != 0 {
		id := p.parent
		parent = &id
	}
	a.CopiedIDs, a.Bodies, a.Types = append(a.CopiedIDs, copied), append(a.Bodies, body), append(a.Types, textOr(p.Type))
	a.Promoted, a.Written, a.Parents = append(a.Promoted, text), append(a.Written, written), append(a.Parents, parent)
	a.Ports, a.PublishingSteps = append(a.Ports, textOr(p.SendPort)), append(a.PublishingSteps, number)
	a.ContentTypes = append(a.ContentTypes, textOr(pgdb.Storable(p.Content)))
	a.Charsets = append(a.Charsets, textOr(pgdb.Storable(p.Charset)))
	return nil
}

// match matches what is published, unless the database has to.
func (c *call) match(a *flowstore.Advance) {
	if c.runner.config.Matcher == nil {
		return
	}
	m := c.runner.config.Matcher()
	if m == nil || m.Epoch() == 0 {
		return
	}
	messages, ports := []int32{}, []int64{}
	for n, promoted := range a.Promoted {
		if a.Ports[n] != nil {
			return // the numbers of the others would be different ones
		}
		facts, isPlain := facts(*promoted)
		if !isPlain {
			return
		}
		if a.Types[n] != nil {
			facts["MessageType"] = *a.Types[n]
		}
		for _, port := range m.Match(facts) {
			messages, ports = append(messages, int32(n+1)), append(ports, port)
		}
	}
	a.Epoch, a.MatchedMessages, a.MatchedPorts = m.Epoch(), messages, ports
}

// longValue is the length from which on a promoted value is written instead, in bytes.
const longValue = 8192

// facts gives promoted properties as the database compares them; isPlain is false where it might see others.
func facts(written string) (found map[string]string, isPlain bool) {
	read, err := properties(json.RawMessage(written))
	if err != nil {
		return nil, false
	}
	found = texts(read)
	for _, value := range found {
		if len(value) > longValue || strings.ContainsRune(value, 0) {
			return nil, false
		}
	}
	for _, value := range read {
		if number, is := value.(json.Number); is && (strings.ContainsAny(number.String(), "eE") || strings.HasPrefix(number.String(), "-0")) {
			return nil, false
		}
	}
	return found, true
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
	text := pgdb.Storable(string(written))
	return &text, nil
}

func textOr(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// putActivities puts the messages for workers into their queues, with the rights of the role of the host.
func (c *call) putActivities(ctx context.Context) error {
	if !c.asks() {
		return nil
	}
	back, err := c.asRole(ctx, c.tx)
	if err != nil {
		return err
	}
	for _, i := range c.instances {
		if i.failure != nil {
			continue
		}
		for _, asked := range i.activities {
			body, err := json.Marshal(map[string]any{
				"activity": fmt.Sprintf("%s.%d", asked.ID, asked.attempt), "name": asked.Name, "input": asked.Input, "attempt": asked.attempt,
				"time_out_ms": asked.TimeOut.Milliseconds(),
			})
			if err != nil {
				return fmt.Errorf("write the message of an activity: %w", err)
			}
			var at *time.Time
			if asked.pause > 0 {
				due := time.Now().Add(asked.pause)
				at = &due
			}
			if err = flowstore.AskWorker(ctx, c.tx, asked.Queue, string(body), at); err != nil {
				return &process.Fault{
					Code: "process.step", Message: fmt.Sprintf("activity %s cannot be asked for by queue %q: %v", asked.Name, asked.Queue, err),
					Remedy: fmt.Sprintf("Make the queue: parley queue create %q --kind simple. Grant the role of the host SEND on it by "+
						"parley.grant. Then resume the instance: parley flow instances resume.", asked.Queue),
				}
			}
		}
	}
	return back(ctx)
}
