package settings_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/sqltest"
	"github.com/parley-broker/parley/parleytest"
	"github.com/parley-broker/parley/schema"
)

// turkish gives a database in which the small letter of I is ı, and the capital of i is İ.
func turkish(t *testing.T) *sqltest.Broker {
	t.Helper()
	beside := parleytest.EmptyDatabase(t)
	config := beside.Config()
	config.ConnConfig.Database += "_tr"
	name := pgx.Identifier{config.ConnConfig.Database}.Sanitize()
	_, err := beside.Exec(t.Context(), "create database "+name+" template template0 encoding 'UTF8' locale 'C' locale_provider icu icu_locale 'tr-TR'")
	if refused, is := errors.AsType[*pgconn.PgError](err); is && (refused.Code == "0A000" || refused.Code == "42601") {
		t.Skip("the server has no databases with rules of ICU: " + refused.Message)
	} else if err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		pool.Close()
		if _, err := beside.Exec(context.WithoutCancel(t.Context()), "drop database "+name+" with (force)"); err != nil {
			t.Error(err)
		}
	})
	b := &sqltest.Broker{Session: sqltest.Session{T: t, DB: pool}, Pool: pool}
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if err := schema.Install(t.Context(), conn.Conn()); err != nil {
		t.Fatal(err)
	}
	return b
}

// Names of settings, kinds and rights are letters of ASCII, whatever the rules of the database make of an i.
func TestKeywordsAreReadByTheLettersOfASCII(t *testing.T) {
	t.Parallel()
	b := turkish(t)
	sqltest.Equal(b.Session, "İı", "select upper('i') || lower('I')")
	b.Exec(`
		select parley.create_queue('jobs', kind => 'simple', poison_action => 'disable_queue');
		select parley.create_queue('asking'), parley.create_queue('answering', execute_as => 'self');
		select parley.create_service('//asks', 'asking'), parley.create_service('//answers', 'answering', array['DEFAULT']);
		select parley.grant('view definition', 'database', null, 'PUBLIC'), parley.grant('receive', 'QUEUE', 'jobs', 'public');
		select parley.put('jobs', 'a')`)
	sqltest.Equal(b.Session, "a", "select parley.body_text(body) from parley.take('jobs')")
	b.Exec(`
		select parley_mail.apply('{
			"organization": {"organization": {"default_domain": "IIII.example"}}, "accepted domain": {"IIII.example": {}},
			"send connector": {"out": {"address_spaces": [{"pattern": "*"}], "routing": "smart_host", "tls": "opportunistic",
				"smart_hosts": [{"host": "RELAY.IIII.example"}]}}
		}');
		select parley_mail.send('Shop@iiii.EXAMPLE', array['x@example.net'], 's', 't', headers => '{"LIST-ID": "<list.iiii.example>"}',
			priority => 'high');
		select parley_mail._p_categorize(100, 10)`)
	sqltest.Equal(b.Session, 1, `select count(*) from parley_mail.messages where priority = 'HIGH'`)
	b.RefusesMail(10, `select parley_mail.send('shop@iiii.example', array['x@example.net'], 's', 't', headers => '{"MIME-VERSION": "1.0"}')`)
}
