package rights_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/internal/sqltest"
)

// A dialog begins from a service, so SEND on the target alone is of no use.
func TestGrantOfSendToARoleWithoutServiceSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	role := b.Role("sender")
	config := b.Pool.Config().ConnConfig
	var notices []string
	config.OnNotice = func(_ *pgconn.PgConn, notice *pgconn.Notice) { notices = append(notices, notice.Message) }
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	s := sqltest.Session{T: t, DB: conn}
	s.Exec("select parley.grant('SEND', 'service', '//test/Answerer', $1)", role)
	if len(notices) != 1 || !strings.Contains(notices[0], "owns no service") {
		t.Errorf("the notices are %q", notices)
	}
	notices = nil
	s.Exec("select parley.grant('SEND', 'service', '//test/Answerer', 'public')")
	s.Exec("select parley.alter_authorization('service', '//test/Asker', $1)", role)
	s.Exec("select parley.grant('SEND', 'service', '//test/Answerer', $1)", role)
	if len(notices) != 0 {
		t.Errorf("the notices are %q", notices)
	}
}
