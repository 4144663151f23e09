package verb

import (
	"strings"
	"testing"
)

// The words of PgBouncer differ from version to version, and its SQLSTATE says nothing.
func TestWordsOfAPoolerLeadToItsConfiguration(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		"no such database: shop": "[databases]", "no such user: ann": "auth_file", "password authentication failed": "auth_file",
		"server login has been failing, cached error: connect failed (server_login_retry)": "PostgreSQL runs behind it",
		"server login failed: FATAL the database system is starting up":                    "PostgreSQL runs behind it",
		"pgbouncer cannot connect to server":                                               "PostgreSQL runs behind it",
		"client_login_timeout (server down)":                                               "PostgreSQL runs behind it",
		"no more connections allowed (max_client_conn)":                                    "max_client_conn",
		"pooler is shut down":                                                              "its log",
	} {
		if got := poolerRemedy(message); !strings.Contains(got, want) {
			t.Errorf("%s: %s", message, got)
		}
	}
}
