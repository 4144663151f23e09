package verb

import (
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// poolerRemedies says what to look at when a pooler refuses something itself, by a part of its message. They are those of PgBouncer, whose
// SQLSTATE says nothing: it is 08P01 for all of them.
var poolerRemedies = []struct{ message, remedy string }{
	{"no such database", "name one of [databases] in pgbouncer.ini in the DSN, or add it there"},
	{"database \"", "look at [databases] in pgbouncer.ini: the database to which it leads is not on its server"},
	{"unsupported startup parameter", "leave the parameter out of the DSN, or add it to ignore_startup_parameters in pgbouncer.ini"},
	{"no more connections allowed", "close some, or raise max_client_conn in pgbouncer.ini"},
	{"admin console", "name a database in the DSN: this one is the console of the pooler"},
	// Those who may not log in, at the pooler or behind it.
	{"no such user", poolerUsers},
	{"authentication failed", poolerUsers},
	{"bouncer config error", poolerUsers},
	{"role \"", poolerUsers},
	{"no authentication method", poolerUsers},
	// The server behind it.
	{"server login", poolerServer},
	{"server_login_retry", poolerServer},
	{"query_wait_timeout", poolerServer},
	{"server down", poolerServer},
	{"connect", poolerServer},
	{"server conn", poolerServer},
}

const (
	poolerUsers  = "look at auth_file, auth_query and the user of [databases] in pgbouncer.ini"
	poolerServer = "look at whether PostgreSQL runs behind it, at host and port of [databases] in pgbouncer.ini, and at the log of the pooler"
	poolerOther  = "look at its configuration and its log"
)

// isOfPooler reports whether an error comes from a pooler: PostgreSQL says in which routine it arose.
func isOfPooler(err *pgconn.PgError) bool { return err.Routine == "" && err.File == "" }

// poolerRemedy says what to look at when a pooler answers with a message.
func poolerRemedy(message string) string {
	for _, r := range poolerRemedies {
		if strings.Contains(message, r.message) {
			return r.remedy
		}
	}
	return poolerOther
}
