package send_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/internal/sqltest"
)

var serializable = pgx.TxOptions{IsoLevel: pgx.Serializable}

// Transactions begin dialogs and send on them in turns: where each read pages to which the others add, all but one would fail.
func TestIndependentDialogsNeverConflictAtSerializable(t *testing.T) {
	t.Parallel()
	const dialog = "'//test/Asker', '//test/Answerer'"
	const begin = "select parley.begin_dialog(" + dialog + ", '//test/Work')::text"
	for name, work := range map[string]func(s sqltest.Session){
		"one by one": func(s sqltest.Session) {
			handle := sqltest.Value[string](s, begin)
			s.Send(handle, sqltest.Request, "first")
			s.Send(handle, sqltest.Request, "second")
		},
		"as a batch": func(s sqltest.Session) {
			s.Exec("select parley.send_batch($1, $2, array['first', 'second'])", sqltest.Value[string](s, begin), sqltest.Request)
		},
		"in one call": func(s sqltest.Session) {
			handle := sqltest.Value[string](s, "select parley.begin_and_send("+dialog+", $1, 'first', '//test/Work')::text", sqltest.Request)
			s.Send(handle, sqltest.Request, "second")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			sessions := []sqltest.Session{b.Begin(serializable), b.Begin(serializable), b.Begin(serializable)}
			for range 3 {
				for _, s := range sessions {
					work(s)
				}
			}
			for _, s := range sessions {
				s.Commit()
			}
			sqltest.Equal(b.Session, 18, "select count(*) from parley.queue_contents('Answering')")
			for range 9 {
				if got, want := fmt.Sprint(b.Bodies("Answering")), "[first second]"; got != want {
					t.Errorf("received %s, and not %s", got, want)
				}
			}
		})
	}
}

// Two transactions that read and write the same conversation cannot both commit, as SQL promises.
func TestConversationsThatAreSharedConflictAtSerializable(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := b.Dialog()
	b.Send(handle, sqltest.Request, "there is one")
	one, two := b.Begin(serializable), b.Begin(serializable)
	for _, s := range []sqltest.Session{one, two} {
		sqltest.Equal(s, 1, "select count(*) from parley.queue_contents('Answering')")
	}
	one.Send(handle, sqltest.Request, "there was one")
	_, err := two.DB.Exec(t.Context(), "select parley.send($1, $2, 'there was one')", handle, sqltest.Request)
	one.Commit()
	if err == nil {
		err = two.DB.(pgx.Tx).Commit(context.Background()) //nolint:forcetypeassert // as it began
	}
	if failed := new(pgconn.PgError); !errors.As(err, &failed) || failed.Code != "40001" {
		t.Errorf("both sent that there was one: %v", err)
	}
}

// The place at which a transaction has kept its dialog is a setting, which anybody may make up.
func TestPlaceOfABegunDialogIsOnlyAHint(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	victim := b.Dialog()
	place := sqltest.Value[string](b.Session, "select e.ctid::text from parley._p_endpoint as e where e.conversation_handle = $1", victim)
	mallory := b.As(b.Role("mallory"))
	for _, hint := range []string{victim + "=" + place, victim + "=(999999999,9999)", victim + "=(0,0)", victim + "=", "("} {
		mallory.Exec("begin isolation level serializable")
		mallory.Exec("select set_config('parley.begun', $1, true)", hint)
		mallory.Refuses(229, "select parley.send($1, $2, 'stolen')", victim, sqltest.Request)
		mallory.Exec("rollback")
	}
	// An owner's hint that leads to another row, or to none, changes nothing either.
	other := b.Dialog()
	s := b.Begin(serializable)
	s.Exec("select set_config('parley.begun', $1, true)", other+"="+place)
	s.Send(other, sqltest.Request, "mine")
	s.Exec("savepoint before")
	gone := s.Dialog()
	s.Exec("rollback to savepoint before")
	s.Refuses(8426, "select parley.send($1, $2, 'never begun')", gone, sqltest.Request)
	s.Exec("rollback to savepoint before")
	s.Commit()
	if got, want := fmt.Sprint(b.Bodies("Answering")), "[mine]"; got != want {
		t.Errorf("received %s, and not %s", got, want)
	}
}
