package parleytest

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// settingsVariable has every database of a test run made with changed settings: "database" for those of the database, "role" for those of
// the role that connects.
const settingsVariable = "PARLEY_TEST_SETTINGS"

// A Setting is what an administrator may have changed for everybody.
type Setting struct{ Name, Value string }

// FormatSettings change how statements are read and planned and how values are written: each to something that is not the default.
// Those that a server does not know are left out.
var FormatSettings = []Setting{
	{"DateStyle", "SQL, DMY"},
	{"IntervalStyle", "sql_standard"},
	{"TimeZone", "Asia/Kathmandu"},
	{"extra_float_digits", "-15"},
	{"bytea_output", "escape"},
	{"xmloption", "document"},
	{"xmlbinary", "hex"},
	{"lc_monetary", "de_DE.utf8"},
	{"lc_numeric", "de_DE.utf8"},
	{"lc_time", "de_DE.utf8"},
	{"default_text_search_config", "pg_catalog.german"},
	{"quote_all_identifiers", "on"},
	{"escape_string_warning", "off"},
	{"transform_null_equals", "on"},
	{"client_min_messages", "error"},
	{"row_security", "off"},
	{"search_path", "elsewhere, public"},
	{"check_function_bodies", "off"},
	{"default_transaction_deferrable", "on"},
	{"plpgsql.variable_conflict", "use_column"},
	{"plpgsql.extra_errors", "all"},
	{"plan_cache_mode", "force_custom_plan"},
	{"enable_seqscan", "off"},
	{"enable_indexonlyscan", "off"},
	{"enable_bitmapscan", "off"},
	{"enable_hashjoin", "off"},
	{"enable_mergejoin", "off"},
	{"enable_sort", "off"},
	{"enable_material", "off"},
	{"from_collapse_limit", "1"},
	{"join_collapse_limit", "1"},
	{"geqo_threshold", "2"},
	{"work_mem", "64kB"},
	{"synchronize_seqscans", "off"},
	{"constraint_exclusion", "off"},
}

// StatementSettings change what a literal, a parameter or a byte means, so that statements of a test would mean something else too.
var StatementSettings = []Setting{
	{"standard_conforming_strings", "off"},
	{"backslash_quote", "on"},
	{"array_nulls", "off"},
	{"client_encoding", "LATIN1"},
}

// SessionSettings change what a transaction sees and how long a session lasts.
var SessionSettings = []Setting{
	{"default_transaction_isolation", "serializable"},
	{"statement_timeout", "20s"},
	{"lock_timeout", "20s"},
	{"idle_in_transaction_session_timeout", "20s"},
	{"transaction_timeout", "20s"},
	{"idle_session_timeout", "2s"},
}

// ChangeSettings changes settings of a pool's database for every session that begins from now on: those of the database where level is
// "database", those of the role postgres in it where it is "role".
func ChangeSettings(t testing.TB, pool *pgxpool.Pool, level string, settings ...Setting) {
	t.Helper()
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatalf("parleytest: %v", err)
	}
	defer conn.Release()
	if err := changeSettings(t.Context(), conn.Conn(), conn.Conn().Config().Database, level, settings); err != nil {
		t.Fatalf("parleytest: %v", err)
	}
}

func changeSettings(ctx context.Context, conn *pgx.Conn, database, level string, settings []Setting) error {
	owner := map[string]string{"database": "alter database %1$I", "role": "alter role postgres in database %1$I"}[level]
	if owner == "" {
		return fmt.Errorf("settings are changed for %q: say database or role", level)
	}
	for _, s := range settings {
		// In German where the server's machine speaks it.
		var statement *string
		err := conn.QueryRow(ctx, `
			select case
				when current_setting($2, true) is null and $2 not like 'plpgsql.%' then null
				when $2 like E'lc\\_%' and not exists (select from pg_collation where collname = $3) then null
				when $2 = 'search_path' then format('`+owner+` set %2$s = elsewhere, public', $1::text, $2::text, $3::text)
				else format('`+owner+` set %2$s = %3$L', $1::text, $2::text, $3::text)
			end`, database, s.Name, s.Value).Scan(&statement)
		if err == nil && statement != nil {
			_, err = conn.Exec(ctx, *statement)
		}
		if err != nil {
			return fmt.Errorf("change the setting %s: %w", s.Name, err)
		}
	}
	return nil
}

// changeWanted changes the settings of a new database where the environment says so.
func changeWanted(ctx context.Context, conn *pgx.Conn, database string) error {
	level := os.Getenv(settingsVariable)
	if level == "" {
		return nil
	}
	return changeSettings(ctx, conn, database, level, FormatSettings)
}
