package demo

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/parleytest"
)

// log passes what a run tells on to the test's log.
type logObserver struct{ t *testing.T }

func (o logObserver) Progress(p Progress) { o.t.Logf("%+v", p) }
func (o logObserver) Note(text string)    { o.t.Log(text) }

// administrator connects to a server where a run may make its database, and names one that nobody else uses.
func administrator(t *testing.T) (*pgx.Conn, string) {
	t.Helper()
	pool := parleytest.EmptyDatabase(t)
	conn, err := pgx.Connect(t.Context(), parleytest.DSN(t, pool))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeConn(t.Context(), conn) })
	return conn, conn.Config().Database + "_demo"
}

func TestRunTry(t *testing.T) {
	admin, name := administrator(t)
	result, err := Run(t.Context(), admin, Config{Senders: 4, Readers: 2, Conversations: 8, Duration: 4 * time.Second, Database: name, Observer: logObserver{t}})
	if err != nil {
		t.Fatal(err)
	}
	text, _ := json.MarshalIndent(result, "", " ")
	t.Logf("%s\n%+v\n%+v", text, result.batches, result.kill)
}
