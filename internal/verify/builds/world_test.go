package builds_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/postgres"
	"github.com/parley-broker/parley/internal/postgres/postgrestest"
	"github.com/parley-broker/parley/internal/sqltest"
	"github.com/parley-broker/parley/parleytest"
	"github.com/parley-broker/parley/schema"
)

// world is a database with a build of Parley, and two sessions.
type world struct {
	t        *testing.T
	name     string
	pool     *pgxpool.Pool
	sessions [2]*pgx.Conn
	// server is one of the world alone, which may be stopped. In a world without one a crash is a rollback.
	server      *postgres.Server
	isStumbling bool

	names [2]string // of the services of the script, and of their queues
	// Handles and identities differ from build to build, so that sides have labels: 003a began the third conversation of the script, 003b is
	// its target.
	labels        map[string]string // of sides, by handle
	handles       map[string]string // by label
	conversations map[string]int    // numbers, by identity
}

// settings of sessions. Where a session waits for the other it waits for ever, because that one has no turn: so each wait is ended.
const settings = "set lock_timeout = '100ms'; set statement_timeout = '60s'"

// newWorld is a world of this build in which nothing crashes.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, name: "rolled back", pool: parleytest.Database(t)}
	w.furnish()
	return w
}

// newCrashingWorld is a world with a server of its own, into which a build is installed.
func newCrashingWorld(t *testing.T, name string, install func(dsn string) error) *world {
	t.Helper()
	server := postgrestest.Supervised(t, map[string]string{"max_connections": "20", "jit": "off"})
	if err := server.EnsureDatabase(t.Context(), "broker"); err != nil {
		t.Fatal(err)
	}
	dsn := server.DSN("broker")
	if err := install(dsn); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	pool, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	w := &world{t: t, name: name, pool: pool, server: server}
	w.furnish()
	return w
}

// installNow installs the schema of this build.
func installNow(t *testing.T) func(dsn string) error {
	return func(dsn string) error {
		conn, err := pgx.Connect(t.Context(), dsn)
		if err != nil {
			return err
		}
		defer conn.Close(context.WithoutCancel(t.Context()))
		return schema.Install(t.Context(), conn)
	}
}

// installBefore installs the schema of another build by its own command.
func installBefore(t *testing.T, command string) func(dsn string) error {
	return func(dsn string) error {
		output, err := exec.CommandContext(t.Context(), command, "install", "--dsn", dsn).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w\n%s", err, output)
		}
		return nil
	}
}

func (w *world) furnish() {
	w.t.Helper()
	w.admin(sqltest.World)
	w.admin(stumblingBlocks)
	for i := range w.sessions {
		w.connect(i)
	}
}

// admin runs a statement outside of the script.
func (w *world) admin(statement string, arguments ...any) {
	w.t.Helper()
	if _, err := w.pool.Exec(w.t.Context(), statement, arguments...); err != nil {
		w.t.Fatalf("%s: %s: %v", w.name, sqltest.Clip(statement), sqltest.Describe(err))
	}
}

func (w *world) connect(i int) {
	w.t.Helper()
	conn, err := pgx.ConnectConfig(w.t.Context(), w.pool.Config().ConnConfig.Copy())
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(w.t.Context())) })
	if _, err := conn.Exec(w.t.Context(), settings); err != nil {
		w.t.Fatal(err)
	}
	w.sessions[i] = conn
}

// forget begins a script: its services and labels are its own.
func (w *world) forget(names [2]string) {
	w.names = names
	w.labels, w.handles, w.conversations = map[string]string{}, map[string]string{}, map[string]int{}
}

// run makes a statement and gives its rows as text, or its SQLSTATE.
func (w *world) run(i int, statement string, arguments ...any) string {
	rows, err := w.sessions[i].Query(w.t.Context(), statement, arguments...)
	if err != nil {
		return w.failure(err)
	}
	texts, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
		values, err := row.Values()
		return fmt.Sprint(values...), err
	})
	if err != nil {
		return w.failure(err)
	}
	return strings.Join(texts, "\n")
}

func (w *world) failure(err error) string {
	w.t.Helper()
	refusal, isRefusal := errors.AsType[*pgconn.PgError](err)
	if w.isStumbling {
		return "stumbled"
	}
	if !isRefusal {
		w.t.Fatalf("%s: %v", w.name, err)
	}
	return "SQLSTATE " + refusal.Code
}

// begun gives the conversation that a statement begins its number.
func (w *world) begun(i, number int, statement string, arguments ...any) string {
	var handle string
	if err := w.sessions[i].QueryRow(w.t.Context(), statement, arguments...).Scan(&handle); err != nil {
		return w.failure(err)
	}
	var id string
	err := w.sessions[i].QueryRow(
		w.t.Context(), "select conversation_id::text from parley.conversation_endpoints where conversation_handle = $1", handle,
	).Scan(&id)
	if err != nil {
		return w.failure(err)
	}
	w.conversations[id] = number
	w.know(fmt.Sprintf("%03da", number), handle)
	return "begun"
}

func (w *world) know(label, handle string) {
	w.labels[handle], w.handles[label] = label, handle
}

// received makes a statement that receives and gives its messages.
func (w *world) received(i int, statement string, arguments ...any) string {
	rows, err := w.sessions[i].Query(w.t.Context(), statement, arguments...)
	if err != nil {
		return w.failure(err)
	}
	messages, err := pgx.CollectRows(rows, pgx.RowToStructByPos[sqltest.Message])
	if err != nil {
		return w.failure(err)
	}
	if w.isStumbling {
		return ""
	}
	w.learn(i)
	var lines []string
	for _, m := range messages {
		lines = append(lines, w.describe(m))
	}
	return strings.Join(lines, "\n")
}

// describe writes a message without what differs from build to build.
func (w *world) describe(m sqltest.Message) string {
	return fmt.Sprintf(
		"%s status %d priority %d number %d at %s, %s, %s %s: %s", cmp.Or(w.labels[m.ConversationHandle], "?"), m.Status, m.Priority,
		m.MessageSequenceNumber, m.ServiceName, m.ServiceContractName, m.MessageTypeName, m.Validation, m.MessageBody,
	)
}

// endpoint is a side as the view of conversations shows it.
type endpoint struct {
	Handle, ID                string
	IsInitiator               int16
	State, Group              string
	SendSequence, ReceiveNext int64
	Priority                  int16
	Service, FarService       string
	Contract                  string
}

// learn reads the sides of the script and their labels.
func (w *world) learn(i int) []endpoint {
	w.t.Helper()
	rows, err := w.sessions[i].Query(w.t.Context(), `
		select e.conversation_handle::text, e.conversation_id::text, e.is_initiator, e.state, e.conversation_group_id::text, e.send_sequence,
			e.receive_sequence, e.priority, e.service_name, e.far_service, e.service_contract_name
		from parley.conversation_endpoints as e
		where e.service_name = any ($1)`, w.names[:])
	if err != nil {
		w.t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[endpoint])
	if err != nil {
		w.t.Fatalf("%s: %v", w.name, sqltest.Describe(err))
	}
	for _, e := range list {
		w.know(w.labelOf(e), e.Handle)
	}
	return list
}

func (w *world) labelOf(e endpoint) string {
	if e.IsInitiator == 1 {
		return fmt.Sprintf("%03da", w.conversations[e.ID])
	}
	return fmt.Sprintf("%03db", w.conversations[e.ID])
}

// shown writes what a session sees of conversations and of both queues, and gives the labels of the sides that it sees.
func (w *world) shown(i int) (text string, labels []string) {
	w.t.Helper()
	list := w.learn(i)
	slices.SortFunc(list, func(a, b endpoint) int { return strings.Compare(w.labelOf(a), w.labelOf(b)) })
	members := map[string][]string{}
	for _, e := range list {
		members[e.Group] = append(members[e.Group], w.labelOf(e))
	}
	var lines []string
	for _, e := range list {
		if e.State == "CD" {
			continue
		}
		labels = append(labels, w.labelOf(e))
		lines = append(lines, fmt.Sprintf(
			"%s %s group %v sent %d received %d priority %d %s to %s by %s", w.labelOf(e), e.State, members[e.Group], e.SendSequence,
			e.ReceiveNext, e.Priority, e.Service, e.FarService, e.Contract,
		))
	}
	for _, name := range w.names {
		rows, err := w.sessions[i].Query(w.t.Context(), "select * from parley_queue."+sqltest.Quote(name)+" as q order by q.queuing_order")
		if err != nil {
			w.t.Fatal(err)
		}
		messages, err := pgx.CollectRows(rows, pgx.RowToStructByPos[sqltest.Message])
		if err != nil {
			w.t.Fatalf("%s: %v", w.name, sqltest.Describe(err))
		}
		for _, m := range messages {
			lines = append(lines, "waits: "+w.describe(m))
		}
	}
	return strings.Join(lines, "\n"), labels
}
