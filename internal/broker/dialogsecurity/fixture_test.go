package dialogsecurity_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/broker/dialogsecurity"
	activationstore "github.com/parley-broker/parley/internal/store/activation"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
	truststore "github.com/parley-broker/parley/internal/store/trust"
	"github.com/parley-broker/parley/parleytest"
)

// side is a server with its database and its daemon; the test carries messages between two sides, and changes them as a forwarder could.
type side struct {
	*testing.T
	name string
	pool *pgxpool.Pool
	term int64

	guard   *dialogsecurity.Dialogs
	keys    *dialogsecurity.MasterKeys
	keyPath string

	owner string // role that owns the service here
	far   string // role that stands for the other side here
}

const (
	asking    = "//test/Asker"
	answering = "//test/Answerer"
)

// newSides gives an asker and an answerer on two servers that know the way to each other, and have exchanged certificates. Only the
// role that stands for the asker may send to the answerer.
func newSides(t *testing.T) (asker, answerer *side) {
	t.Helper()
	asker, answerer = newSide(t, "asker", asking), newSide(t, "answerer", answering)
	asker.exec("select parley.create_route('there', address => 'tcp://there.test:4022', service_name => $1)", answering)
	answerer.exec("select parley.create_route('there', address => 'tcp://there.test:4022', service_name => $1)", asking)
	answerer.exec("select parley.grant('SEND', 'service', $1, $2)", answering, answerer.far)
	asker.introduce(answerer, "first")
	answerer.introduce(asker, "first")
	return asker, answerer
}

func newSide(t *testing.T, name, service string) *side {
	t.Helper()
	s := &side{T: t, name: name, pool: parleytest.Database(t)}
	s.keyPath = filepath.Join(t.TempDir(), "master.key")
	s.noError(dialogsecurity.CreateMasterKey(s.keyPath))
	s.restart()
	s.owner, s.far = s.role("owner"), s.role("far side")
	s.exec("select parley.create_queue('messages')")
	s.exec("select parley.create_service($1, 'messages', array['DEFAULT'], $2)", service, s.owner)
	s.Cleanup(func() { s.dropOwned() })
	var leads bool
	var err error
	s.term, leads, err = activationstore.Lead(t.Context(), s.pool, name, 0, time.Minute, 0)
	if err != nil || !leads {
		t.Fatalf("lead %s: %v, %v", name, leads, err)
	}
	return s
}

// restart begins a new daemon, which remembers nothing.
func (s *side) restart() {
	s.Helper()
	var err error
	s.keys, err = dialogsecurity.OpenMasterKeys(s.keyPath)
	s.noError(err)
	s.guard = dialogsecurity.New(dialogsecurity.Config{Keys: s.keys})
}

func (s *side) role(name string) string {
	s.Helper()
	name = fmt.Sprintf("%s of %s", name, one[string](s, "select current_database()"))
	s.exec("create role " + pgx.Identifier{name}.Sanitize())
	return name
}

// dropOwned lets go of the roles, which are the server's.
func (s *side) dropOwned() {
	for _, role := range []string{s.owner, s.far} {
		name := pgx.Identifier{role}.Sanitize()
		_, _ = s.pool.Exec(background, "select parley.alter_authorization('service', name, current_user) from parley.services where service_id >= 65536")
		_, _ = s.pool.Exec(background, "drop owned by "+name)
		_, _ = s.pool.Exec(background, "drop role "+name)
	}
}

// introduce makes a certificate for the owner here and imports it at the other side.
func (s *side) introduce(other *side, name string) {
	s.Helper()
	s.certify(other, name, time.Hour)
}

func (s *side) certify(other *side, name string, validFor time.Duration) {
	s.Helper()
	certificate, sealed, err := dialogsecurity.NewCertificate(s.keys, name, time.Now().Add(-time.Hour), time.Now().Add(validFor))
	s.noError(err)
	s.noError(truststore.CreateCertificate(s.Context(), s.pool, truststore.NewCertificate{
		Name: "own " + name, Owner: s.owner, Bytes: certificate.Bytes, PrivateKey: sealed, IsActive: true,
	}))
	imported, err := dialogsecurity.Import(dialogsecurity.Exported{Certificate: certificate}.Text())
	other.noError(err)
	other.noError(truststore.CreateCertificate(other.Context(), other.pool, truststore.NewCertificate{
		Name: "far " + name, Owner: other.far, Bytes: imported.Bytes, IsActive: true,
	}))
}

// bind creates a remote service binding, so that dialogs with the answerer are secured.
func (s *side) bind(anonymous bool) {
	s.Helper()
	s.exec("select parley.create_remote_service_binding('answerer', $1, $2, $3)", answering, s.far, anonymous)
}

// begin begins a dialog with the answerer.
func (s *side) begin(encryption bool) string {
	s.Helper()
	return one[string](s, "select parley.begin_dialog($1, $2, encryption => $3)::text", asking, answering, encryption)
}

func (s *side) send(handle string, texts ...string) {
	s.Helper()
	for _, text := range texts {
		s.exec("select parley.send($1::uuid, 'DEFAULT', $2::text)", handle, text)
	}
}

// received is a message that has come to a side, and where to answer.
type received struct {
	handle string
	texts  []string
}

func (s *side) receive() (r received) {
	s.Helper()
	rows, err := s.pool.Query(s.Context(), `
		select conversation_handle::text, case message_type_name when 'DEFAULT' then convert_from(message_body, 'UTF8')
			else regexp_replace(message_type_name, '.*/', '') || coalesce(' ' || parley.body_text(message_body), '') end
		from parley.receive('messages', top => 1000)`)
	s.noError(err)
	var text string
	_, err = pgx.ForEachRow(rows, []any{&r.handle, &text}, func() error {
		r.texts = append(r.texts, text)
		return nil
	})
	s.noError(err)
	return r
}

// expect receives, requires these texts, and gives the handle to answer on.
func (s *side) expect(texts ...string) string {
	s.Helper()
	got := s.receive()
	if fmt.Sprint(got.texts) != fmt.Sprint(texts) {
		s.Fatalf("%s received %q, want %q", s.name, got.texts, texts)
	}
	return got.handle
}

func (s *side) speaker() transportstore.Speaker {
	s.Helper()
	speaker, leads, err := transportstore.ReadSpeaker(s.Context(), s.pool, s.term)
	if err != nil || !leads {
		s.Fatalf("speak for %s: %v, %v", s.name, leads, err)
	}
	return speaker
}

// take gives the runs to be transmitted: those that were parked, as if their time had come, and new ones.
func (s *side) take() []transportstore.Run {
	s.Helper()
	s.exec("update parley._p_parked set due_at = now() where due_at < 'infinity'")
	destinations, err := transportstore.ReadDestinations(s.Context(), s.pool)
	s.noError(err)
	var runs []transportstore.Run
	for _, d := range destinations {
		taken, err := transportstore.TakeRuns(s.Context(), s.pool, s.term, d.ID, 1000, 1<<20)
		s.noError(err)
		runs = append(runs, taken...)
	}
	return runs
}

// unacknowledged gives the runs in transit, as to a daemon that has just begun.
func (s *side) unacknowledged() []transportstore.Run {
	s.Helper()
	destinations, err := transportstore.ReadDestinations(s.Context(), s.pool)
	s.noError(err)
	var runs []transportstore.Run
	for _, d := range destinations {
		some, err := transportstore.UnacknowledgedRuns(s.Context(), s.pool, d.ID, 0, -1, 1000, 1<<20)
		s.noError(err)
		runs = append(runs, some...)
	}
	return runs
}

func (s *side) acknowledge(run transportstore.Run, result transportstore.Result) {
	s.Helper()
	leads, err := transportstore.AcknowledgeRuns(s.Context(), s.pool, s.term, []transportstore.Acknowledgement{
		{EndpointID: run.EndpointID, FirstSequence: run.FirstSequence, IsAlone: true, Result: result},
	})
	s.noError(err)
	if !leads {
		s.Fatalf("%s leads no more", s.name)
	}
}

// accept gives runs to this side as they came from the network.
func (s *side) accept(speaker transportstore.Speaker, runs ...transportstore.Run) []transportstore.Result {
	s.Helper()
	results, err := s.guard.Accept(s.Context(), s.pool, transportstore.Arrival{Speaker: speaker, Runs: runs, Identities: make([]string, len(runs))})
	s.noError(err)
	if len(results) != len(runs) {
		s.Fatalf("%d results for %d runs", len(results), len(runs))
	}
	return results
}

// forwarder stands between two sides, sees everything, and may do as it likes.
type forwarder struct {
	seen   []transportstore.Run // as they travelled
	bytes  bytes.Buffer
	change func(run *transportstore.Run)
	// answer, when it is set, is given instead of delivering.
	answer *transportstore.Result
}

// carry transmits what a side has for another, once, and gives the results as its database has learned them.
func (s *side) carry(other *side, way *forwarder) []transportstore.Result {
	s.Helper()
	return s.transmit(other, way, s.take())
}

func (s *side) transmit(other *side, way *forwarder, runs []transportstore.Run) []transportstore.Result {
	s.Helper()
	speaker := s.speaker()
	sealed, held, err := s.guard.Seal(s.Context(), s.pool, speaker, runs)
	s.noError(err)
	var all []transportstore.Result
	for _, h := range held {
		s.acknowledge(transportstore.Run{EndpointID: h.EndpointID, FirstSequence: h.FirstSequence}, h.Result)
		all = append(all, h.Result)
	}
	for _, run := range sealed {
		if run.Size > 0 {
			s.carryFragments(other, way, speaker, run)
		}
		travelling := run
		travelling.Bodies = nil
		for _, body := range run.Bodies {
			travelling.Bodies = append(travelling.Bodies, bytes.Clone(body))
		}
		travelling.Security = bytes.Clone(run.Security)
		way.record(travelling)
		if way.change != nil {
			way.change(&travelling)
		}
		var results []transportstore.Result
		if way.answer != nil {
			results = []transportstore.Result{*way.answer}
		} else {
			results = other.accept(speaker, travelling)
		}
		verified, _ := s.guard.Verify(speaker, []transportstore.Run{run}, results)
		s.acknowledge(run, verified[0])
		all = append(all, verified[0])
	}
	return all
}

func (s *side) carryFragments(other *side, way *forwarder, speaker transportstore.Speaker, run transportstore.Run) {
	s.Helper()
	for offset := int64(0); offset < run.Size; {
		part, err := transportstore.ReadBodyPart(s.Context(), s.pool, run.EndpointID, run.FirstSequence, offset, 100_000)
		s.noError(err)
		fragment, err := s.guard.SealFragment(run, transportstore.Fragment{
			Speaker: speaker, ConversationID: run.ConversationID, FromInitiator: run.FromInitiator, Sequence: run.FirstSequence,
			Offset: offset, Size: run.Size, Data: part, ToService: run.ToService, ToBroker: run.ToBroker,
		})
		s.noError(err)
		way.bytes.Write(fragment.Data)
		stored, err := other.guard.AcceptFragment(s.Context(), other.pool, fragment)
		s.noError(err)
		if stored <= offset {
			return
		}
		offset = stored
	}
}

func (f *forwarder) record(run transportstore.Run) {
	f.seen = append(f.seen, run)
	for _, body := range run.Bodies {
		f.bytes.Write(body)
	}
	f.bytes.Write(run.Security)
}

// requireOutcomes requires that each result has an outcome and its reason, as far as that is given.
func (s *side) requireOutcomes(results []transportstore.Result, outcome transportstore.Outcome, why string) {
	s.Helper()
	if len(results) == 0 {
		s.Fatalf("nothing was transmitted, want %s %s", outcome, why)
	}
	for _, result := range results {
		if result.Outcome != outcome || !strings.Contains(result.Description, why) {
			s.Fatalf("the result is %s %q, want %s %q", result.Outcome, result.Description, outcome, why)
		}
		if outcome == transportstore.Held && why != "" && result.ErrorNumber == 0 {
			s.Fatalf("the result %q passes for a short wait", result.Description)
		}
	}
}

func (s *side) noError(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *side) exec(statement string, arguments ...any) {
	s.Helper()
	if _, err := s.pool.Exec(s.Context(), statement, arguments...); err != nil {
		s.Fatalf("%s: %s: %v", s.name, statement, err)
	}
}

func one[T any](s *side, query string, arguments ...any) (v T) {
	s.Helper()
	if err := s.pool.QueryRow(s.Context(), query, arguments...).Scan(&v); err != nil {
		s.Fatalf("%s: %s: %v", s.name, query, err)
	}
	return v
}
