package bench

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/pgdb"
	"github.com/parley-broker/parley/schema"
)

// ours is the SQL that the benchmark keeps beside the broker.
//
//go:embed bench.sql
var ours string

// messageType is the one type of our messages; the contract has the same name.
const messageType = "bench"

// stage is a database that runs get copies of, and what a client has to know of it.
type stage struct {
	database
	dialogs map[string][]parley.UUID // initiators' handles, by the queue they send to
}

// builder fills the database of a new stage.
type builder func(ctx context.Context, conn *pgx.Conn, s *stage) error

// stage gives a stage by its name, and builds it when it is first asked for.
func (b *bench) stage(ctx context.Context, name string, build builder) (stage, error) {
	if built, ok := b.stages[name]; ok {
		return built, nil
	}
	b.progress("preparing: %s", name)
	furnished, err := b.cluster.furnish(ctx)
	if err != nil {
		return stage{}, err
	}
	s := stage{dialogs: map[string][]parley.UUID{}}
	s.database, err = b.cluster.prepare(ctx, furnished, func(ctx context.Context, conn *pgx.Conn) error { return build(ctx, conn, &s) })
	if err != nil {
		return stage{}, err
	}
	b.stages[name] = s
	return s, nil
}

// furnish gives a database with the broker, of which others are copies: a copy takes less time than installing.
func (c *cluster) furnish(ctx context.Context) (d database, err error) {
	if c.furnished.name == "" {
		c.furnished, err = c.prepare(ctx, database{}, furnish)
	}
	return c.furnished, err
}

// prepare makes a database, as a copy of another where that is named, and fills it.
func (c *cluster) prepare(ctx context.Context, template database, fill func(context.Context, *pgx.Conn) error) (database, error) {
	d, err := c.create(ctx, template)
	if err != nil {
		return database{}, err
	}
	err = d.withConnection(ctx, func(conn *pgx.Conn) error {
		if err := fill(ctx, conn); err != nil {
			return err
		}
		return vacuum(ctx, conn, template.name == "")
	})
	if err != nil {
		return database{}, fmt.Errorf("prepare the database: %w", err)
	}
	return d, nil
}

// vacuum does the work that autovacuum would do sooner or later: so all copies of a database begin alike. A copy of one that was vacuumed
// needs it for the tables that have rows alone: catalogs are most of the work.
func vacuum(ctx context.Context, conn *pgx.Conn, withCatalogs bool) error {
	statement := "vacuum (analyze)"
	if !withCatalogs {
		var tables *string
		err := conn.QueryRow(ctx, `
			select string_agg(format('%I.%I', n.nspname, c.relname), ', ')
			from pg_class as c
			join pg_namespace as n on n.oid = c.relnamespace
			where c.relkind = 'r' and not starts_with(n.nspname, 'pg_') and n.nspname <> 'information_schema' and pg_relation_size(c.oid) > 0`).
			Scan(&tables)
		if err != nil {
			return fmt.Errorf("find the tables that have rows: %w", err)
		}
		if tables == nil {
			return nil
		}
		statement += " " + *tables
	}
	if _, err := conn.Exec(ctx, statement); err != nil {
		return fmt.Errorf("vacuum the database: %w", err)
	}
	return nil
}

// furnish installs the broker, with our message type and contract, and what we keep beside it.
func furnish(ctx context.Context, conn *pgx.Conn) error {
	if err := schema.Install(ctx, conn); err != nil {
		return err
	}
	if err := furnishOurs(ctx, conn); err != nil {
		return err
	}
	_, err := conn.Exec(ctx, `
		select parley.create_message_type('`+messageType+`', 'NONE');
		select parley.create_contract('`+messageType+`', array['`+messageType+`'])`)
	return err
}

func furnishOurs(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, ours); err != nil {
		return fmt.Errorf("install the benchmark's own functions: %w", err)
	}
	return nil
}

// initiator is the name of the queue and the service that send to a queue.
func initiator(queue string) string { return queue + "_initiator" }

// addQueue creates a queue with a service of its name, and another pair to send from.
func (s *stage) addQueue(ctx context.Context, conn *pgx.Conn, queue string, conversations int) error {
	for _, name := range []string{queue, initiator(queue)} {
		if _, err := conn.Exec(ctx, "select parley.create_queue($1)", name); err != nil {
			return err
		}
		if _, err := conn.Exec(ctx, `
			select parley.create_service(
				name => $1, queue => $1, contracts => array[$2]
			)`, name, messageType); err != nil {
			return err
		}
	}
	handles, err := beginDialogs(ctx, conn, queue, conversations)
	s.dialogs[queue] = handles
	return err
}

// beginDialogs begins dialogs to a queue whose first message has been sent and received.
func beginDialogs(ctx context.Context, conn *pgx.Conn, queue string, n int) ([]parley.UUID, error) {
	rows, err := conn.Query(ctx, "select parley.begin_dialog($1, $2, contract => $3) from generate_series(1, $4)",
		initiator(queue), queue, messageType, n)
	if err != nil {
		return nil, fmt.Errorf("begin dialogs: %w", err)
	}
	handles, err := pgx.CollectRows(rows, pgx.RowTo[parley.UUID])
	if err != nil {
		return nil, fmt.Errorf("begin dialogs: %w", err)
	}
	_, err = conn.Exec(ctx, `select parley.send(conversation_handle => h.handle, message_type => $2, body => '\x00'::bytea)
		from unnest($1::uuid[]) as h (handle)`, pgdb.UUIDTexts(handles), messageType)
	if err != nil {
		return nil, fmt.Errorf("send first messages: %w", err)
	}
	return handles, drain(ctx, conn, queue, 1000, n)
}

// sendSingles lets messages wait that were sent one by one.
func sendSingles(ctx context.Context, conn *pgx.Conn, handles []parley.UUID, size, messages int) error {
	if _, err := conn.Exec(ctx, "call bench.send_singles($1::uuid[], $2, $3)", pgdb.UUIDTexts(handles), size, messages); err != nil {
		return fmt.Errorf("send %d messages one by one: %w", messages, err)
	}
	return nil
}

// sendBatches lets messages wait that were sent in batches, each conversation in its turn.
func sendBatches(ctx context.Context, conn *pgx.Conn, handles []parley.UUID, size, messages int) error {
	bodies := randomBodies(1000, size)
	for turn, left := 0, messages; left > 0; turn++ {
		n := min(left, len(bodies))
		if err := parley.SendBatch(ctx, conn, handles[turn%len(handles)], messageType, bodies[:n]); err != nil {
			return err
		}
		left -= n
	}
	return nil
}

// drain receives so many messages, or what there is.
func drain(ctx context.Context, conn *pgx.Conn, queue string, top, messages int) error {
	if _, err := conn.Exec(ctx, "call bench.drain($1, $2, $3)", queue, top, messages); err != nil {
		return fmt.Errorf("drain queue %s: %w", queue, err)
	}
	return nil
}
