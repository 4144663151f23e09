package sql_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A dialog begins from a service, so SEND on the target alone is of no use.
func TestGrantOfSendToARoleWithoutServiceSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	role := b.role("sender")
	config := b.pool.Config().ConnConfig
	var notices []string
	config.OnNotice = func(_ *pgconn.PgConn, notice *pgconn.Notice) { notices = append(notices, notice.Message) }
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	s := session{T: t, db: conn}
	s.exec("select parley.grant('SEND', 'service', '//test/Answerer', $1)", role)
	if len(notices) != 1 || !strings.Contains(notices[0], "owns no service") {
		t.Errorf("the notices are %q", notices)
	}
	notices = nil
	s.exec("select parley.grant('SEND', 'service', '//test/Answerer', 'public')")
	s.exec("select parley.alter_authorization('service', '//test/Asker', $1)", role)
	s.exec("select parley.grant('SEND', 'service', '//test/Answerer', $1)", role)
	if len(notices) != 0 {
		t.Errorf("the notices are %q", notices)
	}
}
