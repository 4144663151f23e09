package governor

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// recorded is a policy with what was recorded under it.
type recorded struct {
	thresholds []Threshold
	actions    []Action
	events     []Event
}

func (n *recorded) Policy(context.Context) ([]Threshold, []Action, error) {
	return n.thresholds, n.actions, nil
}

func (n *recorded) Record(_ context.Context, e Event) error {
	n.events = append(n.events, e)
	return nil
}

// Each event says of every resource its value, level and thresholds, and which actions are taken, in the history as in the log.
func TestEventsSayEverythingOfEveryResource(t *testing.T) {
	t.Parallel()
	store := &recorded{
		thresholds: []Threshold{
			{Resource: "uncommitted", MediumAt: 120, HighAt: 200, MediumBelow: 150, NormalBelow: 80},
			{Resource: "data volume", Unit: "%", MediumAt: 96, HighAt: 99, MediumBelow: 97, NormalBelow: 94, FloorAt: 99.9},
			{Resource: "process memory", Unit: "%", MediumAt: 72, HighAt: 75, MediumBelow: 73, NormalBelow: 71},
			{Resource: "retained log", Unit: "MB", MediumAt: 1e6, HighAt: 2e7, MediumBelow: 1.5e7, NormalBelow: 5e5},
		},
		actions: []Action{
			{Resource: "uncommitted", Name: "tarpit", From: Medium},
			{Resource: "uncommitted", Name: "stop sending", From: High},
			{Resource: "data volume", Name: "refuse anonymous senders", From: Medium},
			{Resource: "process memory", Name: "refuse own nodes", From: High},
		},
	}
	var log bytes.Buffer
	values := map[string]float64{"uncommitted": 10, "data volume": 50, "process memory": 12.345}
	g := New(Config{
		Store: store, System: "mail", Node: "n1", Sources: []Source{func(context.Context) (map[string]float64, error) { return maps.Clone(values), nil }},
		Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}})),
	})
	g.Poll(t.Context())
	// The state of a resource in an event, in the order of their names.
	const (
		data   = "data volume = %s [%s] [Normal=94 Medium=96 High=99]; "
		memory = "process memory = %s [%s] [Normal=71 Medium=72 High=75]; "
		wal    = "retained log = not measured [Normal] [Normal=500000 Medium=1000000 High=20000000]; "
		units  = "uncommitted = %s [%s] [Normal=80 Medium=120 High=200]. Actions: %s"
	)
	for _, c := range []struct {
		resource string
		value    float64
		want     []string // ID, from and to of the event, level of the log record; text; values in it
	}{
		{"uncommitted", 121, []string{
			"15004 Normal Medium WARN pressure of uncommitted rose from Normal to Medium: " + fmt.Sprintf(data+memory+wal+units, "50 %", "Normal", "12.35 %", "Normal", "121", "Medium", "tarpit"),
		}},
		{"uncommitted", 1234567, []string{
			"15004 Medium High WARN pressure of uncommitted rose from Medium to High: " + fmt.Sprintf(data+memory+wal+units, "50 %", "Normal", "12.35 %", "Normal", "1234567", "High", "stop sending, tarpit"),
		}},
		{"uncommitted", 149, []string{
			"15005 High Medium INFO pressure of uncommitted fell from High to Medium: " + fmt.Sprintf(data+memory+wal+units, "50 %", "Normal", "12.35 %", "Normal", "149", "Medium", "tarpit"),
		}},
		{"uncommitted", 79, []string{
			"15005 Medium Normal INFO pressure of uncommitted fell from Medium to Normal: " + fmt.Sprintf(data+memory+wal+units, "50 %", "Normal", "12.35 %", "Normal", "79", "Normal", "nothing"),
		}},
		{"data volume", 99.95, []string{
			"15004 Normal Floor WARN pressure of data volume rose from Normal to Floor: " + fmt.Sprintf(data+memory+wal+units, "99.95 %", "Floor", "12.35 %", "Normal", "79", "Normal", "refuse anonymous senders"),
			"15006 Floor Floor ERROR work is refused because data volume has too little space: free some, or make it larger: " + fmt.Sprintf(data+memory+wal+units, "99.95 %", "Floor", "12.35 %", "Normal", "79", "Normal", "refuse anonymous senders"),
		}},
		{"process memory", 80, []string{
			"15004 Normal High WARN pressure of process memory rose from Normal to High: " + fmt.Sprintf(data+memory+wal+units, "99.95 %", "Floor", "80 %", "High", "79", "Normal", "refuse anonymous senders, refuse own nodes"),
			"15007 High High ERROR work is refused because this process uses too much memory: give it more, or restart it: " + fmt.Sprintf(data+memory+wal+units, "99.95 %", "Floor", "80 %", "High", "79", "Normal", "refuse anonymous senders, refuse own nodes"),
		}},
		{"data volume", 10, []string{
			"15005 Floor Normal INFO pressure of data volume fell from Floor to Normal: " + fmt.Sprintf(data+memory+wal+units, "10 %", "Normal", "80 %", "High", "79", "Normal", "refuse own nodes"),
		}},
	} {
		store.events = nil
		log.Reset()
		values[c.resource] = c.value
		g.Poll(t.Context())
		var records []string
		for i, e := range store.events {
			level := map[int]string{EventRose: "WARN", EventFell: "INFO"}[e.ID]
			level = cmp.Or(level, "ERROR")
			if got := fmt.Sprint(e.ID, " ", e.From, " ", e.To, " ", level, " ", e.Message); i >= len(c.want) || got != c.want[i] {
				t.Errorf("%s at %g: event %d is\n%s", c.resource, c.value, i, got)
			}
			_, actions, _ := strings.Cut(e.Message, "Actions: ")
			if e.Node != "n1" || e.Resource != c.resource || e.Value != c.value || cmp.Or(strings.Join(e.Actions, ", "), "nothing") != actions {
				t.Errorf("%s at %g: event %d has %+v", c.resource, c.value, i, e)
			}
			fact := map[int]string{
				EventRose: "pressure of a resource rose", EventFell: "pressure of a resource fell",
				EventVolumeRefused: "work is refused because a volume has too little space",
				EventMemoryRefused: "work is refused because this process uses too much memory",
			}[e.ID]
			state := regexp.MustCompile(c.resource + ` = (.*?) \[\w+\] \[(.*?)\]`).FindStringSubmatch(e.Message)
			remedy := ""
			if e.ID != EventFell {
				remedy = fmt.Sprintf(" remedy=%q", remedies[c.resource])
			}
			record := fmt.Sprintf("level=%s msg=%q resource=%s from=%s to=%s value=%s thresholds=%q actions=%s%s event_id=%d system=mail node=n1\n",
				level, fact, quotedIf(c.resource), e.From, e.To, quotedIf(state[1]), state[2], quotedIf(actions), remedy, e.ID)
			if len(record) > 500 {
				t.Errorf("%s at %g: the record has %d characters", c.resource, c.value, len(record))
			}
			records = append(records, record)
		}
		if len(store.events) != len(c.want) || log.String() != strings.Join(records, "") {
			t.Errorf("%s at %g: %d events, and the log\n%s", c.resource, c.value, len(store.events), log.String())
		}
	}
}

// quotedIf writes a value as the log does.
func quotedIf(text string) string {
	if strings.Contains(text, " ") {
		return strconv.Quote(text)
	}
	return text
}
