package activation_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/broker/activation"
	"github.com/parley-broker/parley/internal/daemon"
	"github.com/parley-broker/parley/internal/daemon/timers"
	"github.com/parley-broker/parley/internal/logtest"
	"github.com/parley-broker/parley/parleytest"
)

// patience is for what comes at once on an idle machine.
const patience = 60 * time.Second

const pollEvery = 10 * time.Millisecond

// The fixture: a queue with a service, a sender, and a table of what readers did. A body holds the number of its message.
const furniture = `
	create schema app;
	create table app.done (number int, reader int default pg_backend_pid(), role text default current_user, at timestamptz default clock_timestamp());
	create table app.gate (is_open boolean);
	insert into app.gate values (true);
	create procedure app.reader() language plpgsql as $$
	declare
		m record;
	begin
		loop
			select * into m from parley.receive('target', top => 1);
			exit when not found;
			if m.message_type_name <> 'DEFAULT' then
				perform parley.end_conversation(m.conversation_handle) where m.message_type_name like '%EndDialog';
				insert into app.done (number) values (-1);
			else
				insert into app.done (number) values (convert_from(m.message_body, 'UTF8')::int);
			end if;
			commit;
		end loop;
	end $$;
	select parley.create_queue('target');
	select parley.create_queue('source');
	select parley.create_service('target', queue => 'target', contracts => array['DEFAULT']);
	select parley.create_service('source', queue => 'source');
`

type fixture struct {
	t    *testing.T
	pool *pgxpool.Pool
	log  *logtest.Log
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	b := &fixture{t: t, pool: parleytest.Database(t), log: &logtest.Log{}}
	b.exec(furniture)
	return b
}

func (b *fixture) exec(statement string, args ...any) {
	b.t.Helper()
	if len(args) == 0 {
		args = []any{pgx.QueryExecModeSimpleProtocol}
	}
	if _, err := b.pool.Exec(b.t.Context(), statement, args...); err != nil {
		b.t.Fatalf("%s: %v", statement, err)
	}
}

// activate switches activation of the queue on.
func (b *fixture) activate(readersMax int) {
	b.t.Helper()
	b.exec("select parley.alter_queue('target', activation_procedure => 'app.reader', max_queue_readers => $1, execute_as => 'SELF', activation => true)",
		readersMax)
}

// procedure replaces the body of the reader.
func (b *fixture) procedure(body string) {
	b.t.Helper()
	b.exec("create or replace procedure app.reader() language plpgsql as $x$ " + body + " $x$")
}

// restore gives the reader its own body back.
func (b *fixture) restore() {
	b.t.Helper()
	from := strings.Index(furniture, "create procedure")
	to := from + strings.Index(furniture[from:], "end $$;")
	b.exec("create or replace" + strings.TrimPrefix(furniture[from:to], "create") + "end $$;")
}

// send sends numbered messages, each on a conversation and in a transaction of its own.
func (b *fixture) send(from, to int) {
	b.t.Helper()
	for n := from; n <= to; n++ {
		b.exec("select parley.send(parley.begin_dialog('source', 'target'), 'DEFAULT', $1::text)", fmt.Sprint(n))
	}
}

func value[T any](b *fixture, query string, args ...any) T {
	b.t.Helper()
	var v T
	if err := b.pool.QueryRow(b.t.Context(), query, args...).Scan(&v); err != nil {
		b.t.Fatalf("%s: %v\n%s", query, err, b.log)
	}
	return v
}

// await waits until a query gives true.
func (b *fixture) await(query string, args ...any) {
	b.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		var is *bool
		err := b.pool.QueryRow(b.t.Context(), query, args...).Scan(&is)
		if err == nil && is != nil && *is {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("it never became true: %s (%v)\nthe log:\n%s", query, err, b.log)
		}
		<-time.After(pollEvery)
	}
}

// awaitDone waits until each message from 1 to n was worked on, and finds none that was worked on twice.
func (b *fixture) awaitDone(n int) {
	b.t.Helper()
	b.await("select count(distinct number) >= $1 from app.done where number > 0", n)
	if twice := value[int](b, "select count(*) - count(distinct number) from app.done where number > 0"); twice != 0 {
		b.t.Errorf("%d messages were worked on twice", twice)
	}
}

// awaitReaders waits until so many readers run, as the view has it.
func (b *fixture) awaitReaders(n int) {
	b.t.Helper()
	b.await("select running_readers = $1 from parley.dm_broker_queue_monitors where queue_name = 'target'", n)
}

// running is a daemon that runs.
type running struct {
	t      *testing.T
	cancel context.CancelFunc
	ended  chan error
}

// start runs a daemon to the end of the test.
func (b *fixture) start(config activation.Config) *running {
	b.t.Helper()
	return b.startLeader(config, daemon.LeaderConfig{})
}

// startLeader runs a daemon of which more is said than how it activates.
func (b *fixture) startLeader(config activation.Config, leading daemon.LeaderConfig) *running {
	b.t.Helper()
	if config.Pool == nil {
		config.Pool = b.pool
	}
	config.Logger = b.log.Logger(slog.LevelDebug)
	engine, err := activation.New(config)
	if err != nil {
		b.t.Fatal(err)
	}
	leading.Pool, leading.Logger = config.Pool, config.Logger
	leading.Parts = []daemon.LedPart{timers.New(config.Pool, config.Logger), engine}
	leader, err := daemon.NewLeader(leading)
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{t: b.t, cancel: cancel, ended: make(chan error, 1)}
	go func() { r.ended <- leader.Run(ctx) }()
	b.t.Cleanup(r.stop)
	return r
}

// stop ends a daemon and waits for it.
func (r *running) stop() {
	r.t.Helper()
	r.cancel()
	select {
	case err := <-r.ended:
		if err != nil {
			r.t.Errorf("daemon: %v", err)
		}
		r.ended <- nil
	case <-time.After(patience):
		buf := make([]byte, 1<<20)
		r.t.Fatalf("the daemon does not end:\n%s", buf[:runtime.Stack(buf, true)])
	}
}

// role creates a role that may receive from the queue and write down what it did.
func (b *fixture) role() string {
	b.t.Helper()
	role := value[string](b, "select current_database() || '_reader'")
	b.exec("create role " + role)
	b.t.Cleanup(func() {
		if _, err := b.pool.Exec(context.Background(), "drop owned by "+role+"; drop role "+role, pgx.QueryExecModeSimpleProtocol); err != nil {
			b.t.Error(err)
		}
	})
	b.exec("grant usage on schema app to " + role + "; grant all on all tables in schema app to " + role)
	b.exec("select parley.grant('RECEIVE', 'queue', 'target', '" + role + "')")
	return role
}
