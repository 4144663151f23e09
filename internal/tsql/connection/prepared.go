package connection

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// maxPrepared is how many statements a connection keeps prepared. Past it all are given back: a batch that loops soon has its own again.
const maxPrepared = 256

// preparedKey is where a connection of PostgreSQL keeps what is prepared on it: it may serve one session of T-SQL after another.
const preparedKey = "tsql.prepared"

// number is that of the statement which was prepared last, in this process.
var number atomic.Int64

// prepared has the statements of one connection. A statement is prepared when it succeeds for the second time: most of a script run
// once. A prepared one saves the server its parsing, and its planning once the plan is generic.
type prepared struct {
	isOff bool           // a pooler may hand each transaction another connection
	seen  map[string]int // how often a text succeeded
	names map[string]string
}

// preparedOf gives what is prepared on a connection.
func preparedOf(conn *pgx.Conn) *prepared {
	data := conn.PgConn().CustomData()
	if known, is := data[preparedKey].(*prepared); is {
		return known
	}
	mode := conn.Config().DefaultQueryExecMode
	p := &prepared{isOff: mode != pgx.QueryExecModeCacheStatement}
	p.reset()
	data[preparedKey] = p
	return p
}

func (p *prepared) reset() { p.seen, p.names = map[string]int{}, map[string]string{} }

// add puts a statement into a flush, by its name where it is prepared.
func (p *prepared) add(batch *pgconn.Batch, s Statement) {
	if name, known := p.names[s.SQL]; known {
		batch.ExecPrepared(name, s.Parameters, nil, nil)
		return
	}
	batch.ExecParams(s.SQL, s.Parameters, s.Types, nil, nil)
}

// succeeded notes that a statement ran, and prepares it the second time.
func (p *prepared) succeeded(ctx context.Context, conn *pgx.Conn, s Statement) error {
	if p.isOff || p.names[s.SQL] != "" {
		return nil
	}
	p.seen[s.SQL]++
	if p.seen[s.SQL] < 2 {
		if len(p.seen) > 4*maxPrepared {
			clear(p.seen)
		}
		return nil
	}
	if len(p.names) >= maxPrepared {
		if err := p.giveBack(ctx, conn); err != nil {
			return err
		}
	}
	name := fmt.Sprintf("tsql_%d", number.Add(1))
	if _, err := conn.PgConn().Prepare(ctx, name, s.SQL, s.Types); err != nil {
		return fmt.Errorf("preparing a statement: %w", err)
	}
	p.names[s.SQL] = name
	return nil
}

// waited notes that statements ran which waited. T-SQL's own savepoints have names that are used once.
func (p *prepared) waited(ctx context.Context, conn *pgx.Conn, waited []queued) error {
	for _, q := range waited {
		if q.fault == nil && !strings.HasSuffix(q.SQL, statementMark) && !strings.HasPrefix(q.SQL, "begin") {
			continue
		}
		if err := p.succeeded(ctx, conn, q.Statement); err != nil {
			return err
		}
	}
	return nil
}

// giveBack forgets all statements, here and in the server. Others that use the connection keep theirs.
func (p *prepared) giveBack(ctx context.Context, conn *pgx.Conn) error {
	var all strings.Builder
	for _, name := range p.names {
		all.WriteString("deallocate " + name + ";")
	}
	if _, err := conn.PgConn().Exec(ctx, all.String()).ReadAll(); err != nil {
		return fmt.Errorf("giving back prepared statements: %w", err)
	}
	p.reset()
	return nil
}

// isOutdated reports whether a prepared statement failed because a definition changed since. It is forgotten, to be sent as text.
func (p *prepared) isOutdated(s Statement, err error) bool {
	refused, is := errors.AsType[*pgconn.PgError](err)
	if !is || p.names[s.SQL] == "" {
		return false
	}
	// 0A000: the plan would give another type; 26000: somebody has deallocated it
	if refused.Code != "26000" && (refused.Code != "0A000" || refused.Routine != "RevalidateCachedQuery") {
		return false
	}
	delete(p.names, s.SQL)
	delete(p.seen, s.SQL)
	return true
}
