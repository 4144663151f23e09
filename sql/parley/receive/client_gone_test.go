package receive_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/sqltest"
	"github.com/parley-broker/parley/parleytest"
)

// A mortal is a session whose client can die: its connection is closed by the system, and nothing is sent to the server.
type mortal struct {
	sqltest.Session
	conn    *pgx.Conn
	wire    net.Conn
	backend int
	done    chan error
}

var errDead = errors.New("the client is dead")

// newMortal connects. A client that is dead cannot connect once more to cancel its statement either, which pgx would do.
func newMortal(b *sqltest.Broker, dsn string) *mortal {
	b.Helper()
	m := &mortal{done: make(chan error, 1)}
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		b.Fatal(err)
	}
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if m.wire != nil {
			return nil, errDead
		}
		wire, err := new(net.Dialer).DialContext(ctx, network, address)
		m.wire = wire
		return wire, err
	}
	if m.conn, err = pgx.ConnectConfig(b.Context(), config); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = m.wire.Close() })
	m.Session = sqltest.Session{T: b.T, DB: m.conn}
	return m
}

// receives waits for a message in autocommit and returns when the backend sleeps.
func (m *mortal) receives(b *sqltest.Broker) {
	b.Helper()
	const statement = "select count(*) from parley.receive('Answering', timeout => 600000)"
	go func() {
		var n int
		err := m.conn.QueryRow(context.WithoutCancel(b.Context()), statement).Scan(&n)
		if err == nil && n != 1 {
			err = errors.New("received nothing")
		}
		m.done <- err
	}()
	// It sleeps for a few milliseconds at a time, and is awake in between.
	const active = "from pg_stat_activity where datname = current_database() and state = 'active' and query = '" +
		"select count(*) from parley.receive(''Answering'', timeout => 600000)'"
	b.WaitUntil("select exists (select " + active + " and wait_event = 'PgSleep')")
	m.backend = sqltest.Value[int](b.Session, "select pid "+active)
}

// dies closes the connection and waits until the server knows.
func (m *mortal) dies(b *sqltest.Broker) {
	b.Helper()
	if err := m.wire.Close(); err != nil {
		b.Fatal(err)
	}
	if err := parleytest.Receive(b, m.done, "the end of the client"); err == nil {
		b.Error("a client that is dead has received something")
	}
	b.WaitUntil("select not exists (select from pg_stat_activity where pid = $1)", m.backend)
}

// A waiting client is one way to come to a server. In the last two, a pooler closes its own connection when the client's is gone.
var ways = map[string]func(*sqltest.Broker) string{
	"directly":                              func(b *sqltest.Broker) string { return parleytest.DSN(b, b.Pool) },
	"through PgBouncer in transaction mode": func(b *sqltest.Broker) string { return parleytest.PgBouncer(b, b.Pool) },
	"through PgBouncer in session mode":     func(b *sqltest.Broker) string { return parleytest.PgBouncer(b, b.Pool, "pool_mode = session") },
}

// Test databases are copies of one in which the schema was installed; what is set for that one was not copied.
func newWatchedWorld(t *testing.T) *sqltest.Broker {
	t.Helper()
	b := sqltest.NewWorld(t)
	b.Exec("do $$ begin execute format('alter database %I set client_connection_check_interval = ''100ms''', current_database()); end $$")
	return b
}

func TestReceiveTakesNothingForAClientThatIsGone(t *testing.T) {
	t.Parallel()
	for way, dsn := range ways {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			b := newWatchedWorld(t)
			m := newMortal(b, dsn(b))
			m.receives(b)
			m.dies(b)
			b.Exec("select parley.send(parley.begin_dialog('//test/Asker', '//test/Answerer', encryption => false), 'DEFAULT', 'kept'::bytea)")
			sqltest.Equal(b.Session, "kept", "select convert_from(message_body, 'UTF8') from parley.receive('Answering')")
		})
	}
}

// Some checks of the connection later the client is still there, and it is given its message.
func TestReceiveDoesNotTakeALivingClientForOneThatIsGone(t *testing.T) {
	t.Parallel()
	for way, dsn := range ways {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			b := newWatchedWorld(t)
			m := newMortal(b, dsn(b))
			m.receives(b)
			b.Exec("select pg_sleep(1)")
			b.WaitUntil("select exists (select from pg_stat_activity where pid = $1 and wait_event = 'PgSleep')", m.backend)
			b.Exec("select parley.send(parley.begin_dialog('//test/Asker', '//test/Answerer', encryption => false), 'DEFAULT', 'got'::bytea)")
			if err := parleytest.Receive(b, m.done, "the message"); err != nil {
				b.Errorf("a client that is alive was not given its message: %v", err)
			}
		})
	}
}

// Where nothing is set for the database PostgreSQL does not check during the first wait of a session: RECEIVE asks when it has taken
// something. The messages that it took are given back, whatever way they were found. This is on a Unix socket; internal/examples does it
// over TCP.
func TestReceiveTakesNothingForAClientThatIsGoneInTheFirstWaitOfASession(t *testing.T) {
	t.Parallel()
	for queue, change := range map[string]string{
		"plain":                        "select 1",
		"of several priorities":        "select parley.create_broker_priority('high', local_service_name => '//test/Answerer', priority_level => 8)",
		"that keeps what was received": "select parley.alter_queue('Answering', retention => true)",
	} {
		t.Run("from a queue "+queue, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			b.Exec(change)
			givesBack(b, newMortal(b, parleytest.DSN(b, b.Pool)))
		})
	}
}

// givesBack lets a client die in its first wait, and expects a message that is sent then for the next reader.
func givesBack(b *sqltest.Broker, m *mortal) {
	b.Helper()
	sqltest.Equal(m.Session, "0", "show client_connection_check_interval")
	m.receives(b)
	if err := m.wire.Close(); err != nil {
		b.Fatal(err)
	}
	if err := parleytest.Receive(b, m.done, "the end of the client"); err == nil {
		b.Error("a client that is dead has received something")
	}
	b.Exec("select parley.send(parley.begin_dialog('//test/Asker', '//test/Answerer', encryption => false), 'DEFAULT', 'kept'::bytea)")
	b.WaitUntil("select not exists (select from pg_stat_activity where pid = $1)", m.backend)
	sqltest.Equal(b.Session, "kept", "select convert_from(message_body, 'UTF8') from parley.receive('Answering')")
}

// A client that is there gets its message and one notice, which states what to set. The wait after it is watched, and sends no notice.
func TestReceiveReportsOnceThatTheDatabaseHasNoCheckOfClients(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	s, reported := b.Noticing("")
	for range 2 {
		w := b.StartIn(s, "select parley.receive('Answering', timeout => 60000)")
		b.WaitUntil("select exists (select from pg_stat_activity where pid = $1 and wait_event = 'PgSleep')", w.Backend)
		b.Exec("select parley.send(parley.begin_dialog('//test/Asker', '//test/Answerer', encryption => false), 'DEFAULT', 'got'::bytea)")
		w.RequireSuccess()
	}
	if len(*reported) != 1 || !strings.HasPrefix((*reported)[0].Hint, "Set it: alter database ") {
		t.Errorf("receiving twice reported %v, want one notice that says how to set it", *reported)
	}
}

// Neither is there anything to ask when nothing was taken, nor in what follows in the same transaction.
func TestReceiveThatWaitedInVainAsksNothing(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	s, reported := b.Noticing("")
	s.Exec("begin; select from parley.receive('Answering', timeout => 1)")
	b.Exec("select parley.send(parley.begin_dialog('//test/Asker', '//test/Answerer', encryption => false), 'DEFAULT', 'got'::bytea)")
	s.Exec("select from parley.receive('Answering', timeout => 1); commit")
	if len(*reported) > 0 {
		t.Errorf("receiving reported %v", *reported)
	}
}

func TestReceiveNoticesInADatabaseWithoutTheSettingFromTheSecondWaitOn(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	m := newMortal(b, parleytest.DSN(b, b.Pool))
	sqltest.Equal(m.Session, "0", "show client_connection_check_interval")
	m.Exec("select from parley.receive('Answering', timeout => 1)")
	m.receives(b)
	m.dies(b)
	b.Exec("select parley.send(parley.begin_dialog('//test/Asker', '//test/Answerer', encryption => false), 'DEFAULT', 'kept'::bytea)")
	sqltest.Equal(b.Session, "kept", "select convert_from(message_body, 'UTF8') from parley.receive('Answering')")
}

func TestReceiveLeavesTheCheckOfClientsAsItWasSet(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	s := b.Connection()
	s.Exec("set client_connection_check_interval = '7s'")
	s.Exec("select from parley.receive('Answering', timeout => 1)")
	sqltest.Equal(s, "7s", "show client_connection_check_interval")
}
