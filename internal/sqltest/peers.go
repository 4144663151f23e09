package sqltest

import (
	"encoding/binary"
	"strings"
	"testing"
	"time"
)

// Arriving is a run, or a part of a large message, as a daemon gives it to the database. Fields that are not stated are those of a first
// message to //test/Answerer that is taken.
type Arriving struct {
	Broker, Conversation string
	Epoch                int64
	FromTarget           bool
	First                int64
	MessageType          string
	Body                 string
	To, Contract         string
	ToBroker             *string
	EndsAt               *time.Time
	Identity             string
}

// Brokers and a dialog of elsewhere.
const (
	farBroker     = "00000000-0000-0000-0000-0000000000f1"
	AnotherBroker = "00000000-0000-0000-0000-0000000000f2"
	newDialog     = "00000000-0000-0000-0000-0000000000c1"
)

// Completed fills in what is not stated.
func (a Arriving) Completed() Arriving {
	for field, standard := range map[*string]string{
		&a.Broker: farBroker, &a.Conversation: newDialog, &a.MessageType: Request, &a.Body: "body", &a.To: "//test/Answerer",
		&a.Contract: "//test/Work", &a.Identity: "peer:" + OneKey,
	} {
		if *field == "" {
			*field = standard
		}
	}
	if a.Epoch == 0 {
		a.Epoch = 5
	}
	return a
}

// Accept gives the answer to a run: the outcome, and the number of the refusal.
func (s Session) Accept(a Arriving) string {
	s.Helper()
	a = a.Completed()
	return Value[string](s, `
		select outcome || coalesce(' ' || error_number, '')
		from parley._p_accept_runs(
			$1::text::uuid, $2, 1, '00000000-0000-0000-0000-00000000000a', array[$3::text::uuid], array[$4::boolean], array[$5::bigint], array[$6::text],
			array[1], array[0], array[convert_to($7::text, 'UTF8')], array['//far/Asker'], array[$8::text], array[$9::text], array[$10::text::uuid],
			array[$11::timestamptz], array[''], array[$12::text], array[false], array[null::bigint], array[null::bigint], array[null::timestamptz]
		)`,
		a.Broker, a.Epoch, a.Conversation, !a.FromTarget, a.First, a.MessageType, a.Body, a.To, a.Contract, a.ToBroker, a.EndsAt, a.Identity)
}

// NewTarget returns a fixture in which peer one may send to //test/Answerer.
func NewTarget(t *testing.T) *Broker {
	t.Helper()
	b := NewWorld(t)
	role := b.Role("peer")
	b.Exec("select parley.trust_peer($1, 'one', role => $2), parley.trust_peer($3, 'two')", OneKey, role, AnotherKey)
	b.Grant(Right{"SEND", "service", "//test/Answerer"}, role)
	b.Afterwards("select parley.drop_peer('one'), parley.revoke('SEND', 'service', '//test/Answerer', '" + role + "')")
	return b
}

// Day is the time in which most certificates of the tests are valid, before and after now.
const Day = 24 * time.Hour

// Certificate makes the bytes of a certificate with keys that open nothing: what the database judges is the rest.
func Certificate(subject string, from, until time.Duration) []byte {
	data := []byte("PARLEYC1")
	data = binary.BigEndian.AppendUint64(data, uint64(time.Now().Add(from).Unix()))
	data = binary.BigEndian.AppendUint64(data, uint64(time.Now().Add(until).Unix()))
	data = append(data, strings.Repeat("s", 32)...)
	data = append(data, strings.Repeat("x", 32)...)
	return append(data, subject...)
}

// sealedKey has the form of a private key that is sealed under a master key.
func sealedKey() []byte { return append([]byte{1}, make([]byte, 100)...) }

// Install gives a role a certificate that is valid now, ours when it has a private key.
func (s Session) Install(name, role string, isOwn bool) []byte {
	s.Helper()
	return s.InstallValid(name, role, isOwn, -Day, Day)
}

// InstallValid gives a role a certificate that is valid from one time to another, both from now.
func (s Session) InstallValid(name, role string, isOwn bool, from, until time.Duration) []byte {
	s.Helper()
	data := Certificate(name, from, until)
	var key []byte
	if isOwn {
		key = sealedKey()
	}
	s.Exec("select parley.create_certificate($1, $2, $3, $4)", name, data, role, key)
	return data
}

// Fingerprints of keys that nobody has.
var (
	OneKey     = strings.Repeat("a1", 32)
	AnotherKey = strings.Repeat("b2", 32)
	ThirdKey   = strings.Repeat("c3", 32)
)
