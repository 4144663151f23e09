package sqltest

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Inconsistency is a row of the consistency check.
type Inconsistency struct {
	ErrorNumber  int
	ObjectKind   string
	ObjectName   string
	RepairNumber *int
	Repaired     bool
}

// Check gives the errors that a call of the consistency check reports.
func (s Session) Check(call string) []Inconsistency {
	s.Helper()
	rows, err := s.DB.Query(s.Context(), "select coalesce(error_number, 0) as error_number, object_kind, object_name, repair_number, repaired from parley."+call+" where level = 'ERROR'")
	if err != nil {
		s.Fatalf("%s: %v", call, Describe(err))
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[Inconsistency])
	if err != nil {
		s.Fatalf("%s: %v", call, Describe(err))
	}
	return found
}

// Listen reports a daemon that listens for other servers.
func (b *Broker) Listen() {
	b.Helper()
	b.Exec(`select parley._p_report_daemon(gen_random_uuid(), 'host', '{"ip_address": "0.0.0.0", "port": 4022, "forwards": false, "forward_size_mb": 10}',
		'[]', '[]', '{}')`)
}

// Lead makes as if a daemon ran.
func (b *Broker) Lead() {
	b.Helper()
	b.Exec("update parley._p_leader set leader = 'test'")
	b.Exec("select setval('parley._p_leader_lease', (extract(epoch from clock_timestamp()) * 1000000)::bigint + 30000000)")
}

// Lonely gives a session that a cure may end without the pool noticing.
func (b *Broker) Lonely() Session {
	b.Helper()
	conn, err := pgx.ConnectConfig(b.Context(), b.Pool.Config().ConnConfig)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close(context.Background()) })
	return Session{T: b.T, DB: conn}
}

// Finding is a finding of diagnosis about one thing.
type Finding struct {
	Code, Level, Part, ObjectKind, ObjectName, Cause string
	HasSince                                         bool
	Cure                                             string
}

// Calls of diagnosis that report everything.
const (
	Configuration = "parley.diagnose_configuration(level => 'INFO')"
	// At once, whatever patience a check has.
	Runtime = "parley.diagnose_runtime(level => 'INFO', patience => '0')"
)

// Findings gives the findings of a call of diagnosis.
func (s Session) Findings(query string) []Finding {
	s.Helper()
	rows, err := s.DB.Query(s.Context(), `
		select f.code, f.level, f.part, f.object_kind, f.object_name, f.cause, f.since is not null as has_since, coalesce(f.cure, '') as cure
		from `+query+` as f`)
	if err != nil {
		s.Fatalf("%s: %v", query, Describe(err))
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[Finding])
	if err != nil {
		s.Fatalf("%s: %v", query, Describe(err))
	}
	return found
}

// RequireFinding requires that there is exactly one finding of a code, and gives it.
func (s Session) RequireFinding(query, code string) Finding {
	s.Helper()
	var of []Finding
	all := s.Findings(query)
	for _, f := range all {
		if f.Part == "PROBLEM" {
			s.Fatalf("a check could not be made: %+v", f)
		}
		if f.Code == code {
			of = append(of, f)
		}
	}
	if len(of) != 1 {
		s.Fatalf("found %d times %s, want once; all: %+v", len(of), code, all)
	}
	return of[0]
}

// RequireNoFinding requires that a code is not found, and that each check could be made.
func (s Session) RequireNoFinding(query, code string) {
	s.Helper()
	for _, f := range s.Findings(query) {
		if f.Code == code || f.Part == "PROBLEM" {
			s.Errorf("still found: %+v", f)
		}
	}
}

// Activated lets a procedure of public read the answering queue under a role, as if the daemon ran.
func (b *Broker) Activated(executeAs string) {
	b.Helper()
	b.Exec("create procedure public.work() language sql as ''")
	b.Lead()
	b.Exec("select parley.alter_queue('Answering', activation_procedure => 'public.work', execute_as => $1, max_queue_readers => 2, activation => true)", executeAs)
}
