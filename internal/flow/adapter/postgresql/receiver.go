package postgresql

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/backoff"
	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/pgdb"
)

// keyBytesMax bounds a key of the ledger; a longer value is hashed.
const keyBytesMax = 500

// receiver takes in the rows that a statement gives.
type receiver struct {
	adapter.Endpoint

	at       place
	settings receiveSettings
	session  session
	hasLimit bool
}

func newReceiver(e adapter.Endpoint) (adapter.Receiver, error) {
	at, settings, problems := readReceive(e.Address, e.Settings, anySecret)
	if err := firstProblem(problems); err != nil {
		return nil, err
	}
	parameters, err := checkStatement(settings.Statement)
	if err != nil {
		return nil, err
	}
	return &receiver{
		Endpoint: e, at: at, settings: settings, hasLimit: parameters > 0,
		session: newSession(e, at, settings.SearchPath, settings.StatementTimeout),
	}, nil
}

// begin gives a transaction in the database of the rows.
type begin func(ctx context.Context) (pgx.Tx, error)

// Run takes in until ctx ends.
func (r *receiver) Run(ctx context.Context, in adapter.Intake) error {
	beginTx, connect := r.local, r.listenLocally
	if !r.at.isLocal {
		config, err := r.at.config(ctx, r.Endpoint, r.settings.TLS)
		if err != nil {
			return err
		}
		conn, err := pgx.ConnectConfig(ctx, config)
		if err != nil {
			return ended(ctx, fmt.Errorf("connect to the database of location %q: %w", r.Name, err))
		}
		defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
		beginTx = func(ctx context.Context) (pgx.Tx, error) {
			return conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
		}
		connect = func(ctx context.Context) (*pgx.Conn, func(), error) {
			conn, err := pgx.ConnectConfig(ctx, config)
			return conn, func() { _ = conn.Close(context.WithoutCancel(ctx)) }, err
		}
	}
	wake := make(chan struct{}, 1)
	if r.settings.Channel != "" {
		listening, stop := context.WithCancel(ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			r.listen(listening, connect, wake)
		}()
		defer func() { stop(); <-done }()
	}
	return ended(ctx, r.remedied(r.poll(ctx, in, beginTx, wake)))
}

// ended gives no error when ctx has ended: then the error says that.
func ended(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return nil
}

func (r *receiver) local(ctx context.Context) (pgx.Tx, error) {
	return r.Pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
}

// poll takes rows for as long as there are any, then waits.
func (r *receiver) poll(ctx context.Context, in adapter.Intake, beginTx begin, wake <-chan struct{}) error {
	conflicts := 0
	for {
		if err := in.Await(ctx); err != nil {
			return err
		}
		found, err := r.once(ctx, in, beginTx)
		pause := time.Duration(r.settings.PollInterval)
		switch {
		case err == nil && found:
			conflicts = 0
			continue
		case err == nil:
			conflicts = 0
		case strings.HasPrefix(pgdb.SQLState(err), "40") && conflicts < conflictsMax:
			conflicts++
			pause = backoff.Serialization.Pause(conflicts)
		default:
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// conflictsMax is how often in a row a transaction yields to others before that is an error of the location.
const conflictsMax = 10

// once takes the rows that one statement gives, in one transaction; found says that it gave new ones.
func (r *receiver) once(ctx context.Context, in adapter.Intake, beginTx begin) (found bool, err error) {
	tx, err := beginTx(ctx)
	if err != nil {
		return false, fmt.Errorf("begin a transaction: %w", err)
	}
	defer func() {
		rolledBack := tx.Rollback(context.WithoutCancel(ctx))
		if err == nil && rolledBack != nil && !errors.Is(rolledBack, pgx.ErrTxClosed) {
			err = fmt.Errorf("roll back: %w", rolledBack)
		}
	}()
	inputs, err := r.read(ctx, tx)
	if err != nil {
		return false, err
	}
	if len(inputs) > 0 {
		take := in.Take
		if r.at.isLocal {
			take = func(ctx context.Context, inputs []adapter.Input) ([]adapter.Result, error) {
				return in.TakeIn(ctx, tx, inputs)
			}
		}
		results, err := take(ctx, inputs)
		if err != nil {
			return false, err
		}
		for _, result := range results {
			found = found || result.Outcome != adapter.Repeated
		}
	}
	if err := tx.Commit(ctx); err != nil {
		return false, fmt.Errorf("commit what was taken: %w", err)
	}
	// Rows that are taken away come no more, also those that were there before.
	return found || len(inputs) > 0 && (r.settings.AfterStatement != "" || r.settings.Takes || changes(r.settings.Statement)), nil
}

// read runs the statement, and the one behind it, and gives the rows as inputs.
func (r *receiver) read(ctx context.Context, tx pgx.Tx) ([]adapter.Input, error) {
	leave, err := r.session.enter(ctx, tx)
	if err != nil {
		return nil, err
	}
	var parameters [][]byte
	if r.hasLimit {
		parameters = [][]byte{[]byte(strconv.Itoa(r.settings.BatchSize))}
	}
	set, err := query(ctx, tx, r.settings.Statement, parameters)
	if err != nil {
		return nil, fmt.Errorf("run the statement: %w", err)
	}
	inputs, keys, err := r.inputs(set)
	if err != nil {
		return nil, err
	}
	if r.settings.AfterStatement != "" && len(keys) > 0 {
		if _, err := query(ctx, tx, r.settings.AfterStatement, [][]byte{arrayOf(keys)}); err != nil {
			return nil, fmt.Errorf("run the statement behind it: %w", err)
		}
	}
	return inputs, leave(ctx)
}

// inputs makes an input of each row; keys are the values of the key column.
func (r *receiver) inputs(set *rowSet) (inputs []adapter.Input, keys [][]byte, err error) {
	if len(set.rows) == 0 {
		return nil, nil, nil
	}
	m, err := newMapping(&r.settings, set)
	if err != nil {
		return nil, nil, err
	}
	for _, values := range set.rows {
		input, key, err := m.input(values)
		if err != nil {
			return nil, nil, err
		}
		if m.key >= 0 && key == nil {
			return nil, nil, fmt.Errorf("a row has no value in the key column %s", r.settings.KeyColumn)
		}
		inputs, keys = append(inputs, input), append(keys, key)
	}
	return inputs, keys, nil
}

// ledgerKey is the key under which the ledger keeps a row.
func ledgerKey(value []byte) string {
	if len(value) > keyBytesMax || len(value) == 0 {
		sum := sha256.Sum256(value)
		return "sha256:" + hex.EncodeToString(sum[:])
	}
	return "row:" + string(value)
}

// arrayOf writes values as PostgreSQL reads an array.
func arrayOf(values [][]byte) []byte {
	var b strings.Builder
	b.WriteByte('{')
	for i, value := range values {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(string(value)) + `"`)
	}
	b.WriteByte('}')
	return []byte(b.String())
}
