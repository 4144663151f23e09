package operate

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/pgdb"
	"github.com/parley-broker/parley/internal/trusted"
)

// The values of [Finding.Level], the gravest first, and of [Finding.Part].
const (
	LevelError   = "ERROR"
	LevelWarning = "WARNING"
	LevelInfo    = "INFO"

	PartConfiguration = "CONFIGURATION"
	PartRuntime       = "RUNTIME"
	PartProblem       = "PROBLEM" // a check could not be made
)

// inFarDatabase begins the cause of what is found in the far database of a dialog.
const inFarDatabase = "In the far database: "

// Finding is one thing that is wrong with one object; as JSON it is a stable format.
type Finding struct {
	Code        string     `json:"code"` // which check found it, such as queue-off
	Level       string     `json:"level"`
	Part        string     `json:"part"`
	ObjectKind  string     `json:"object_kind"`
	ObjectName  string     `json:"object_name"`
	Cause       string     `json:"cause"`
	Since       *time.Time `json:"since"`        // nil when nobody knows
	Cure        *string    `json:"cure"`         // a statement or command, ready to paste; nil when there is none
	ErrorNumber *int32     `json:"error_number"` // that Service Broker gives to this; nil when it gives none
}

// DiagnosisFilter chooses what diagnosis reports; zero values choose what is usual.
type DiagnosisFilter struct {
	Level  string   // the mildest that is reported; "" means WARNING
	Ignore []string // codes
}

// DiagnoseConfiguration finds what is wrong with definitions: with all of them, or with what a dialog between two
// services needs. Either service and the contract may be "".
//
// Errors: a [parley.Error] with number 15151 for others than administrators.
func DiagnoseConfiguration(
	ctx context.Context, db parley.DB, fromService, toService, contract string, filter DiagnosisFilter,
) ([]Finding, error) {
	rows, err := db.Query(ctx, `
		select f.code, f.level, f.part, f.object_kind, f.object_name, f.cause, f.since, f.cure, f.error_number
		from parley.diagnose_configuration(
			from_service => nullif($1::text, ''), to_service => nullif($2::text, ''), contract => nullif($3::text, ''),
			level => coalesce(nullif($4::text, ''), 'WARNING'), ignore => coalesce($5::text[], '{}')
		) as f`, fromService, toService, contract, filter.Level, filter.Ignore)
	return collectFindings(rows, err)
}

// cureThere makes a cure say that it is for the far database: pasted into this one it would cure nothing, or do harm.
func cureThere(cure *string, database string) *string {
	if cure == nil {
		return nil
	}
	command, remark, hasRemark := strings.Cut(*cure, "  -- ")
	if strings.HasPrefix(command, "parley ") && !strings.Contains(command, "-dsn ") {
		command += " --dsn '<DSN of " + database + ">'"
	}
	there := "in the far database " + strconv.Quote(database)
	if hasRemark {
		there += "; " + remark
	}
	return new(command + "  -- " + there)
}

// DiagnoseDialog finds what is wrong with the definitions that a dialog between services of two databases needs, in both of them. A service
// that only one of them has is not missing. Where the route between them leads over the network, the daemons of each have to listen where
// the other's routes lead, and each has to trust the keys of the other's; what cannot be compared is a finding of [PartProblem]. A finding
// in the far database says so in its cause, and the place of the work there in its cure. Empty names and the contract are as in
// [DiagnoseConfiguration].
//
// Errors: a [parley.Error] with number 15151 for others than administrators of either; [parley.ErrUntrustedSchema] and
// [parley.ErrNotInstalled] of the far database.
func DiagnoseDialog(
	ctx context.Context, near, far parley.DB, fromService, toService, contract string, filter DiagnosisFilter,
) ([]Finding, error) {
	if err := trusted.Require(ctx, far, trusted.ToUse); err != nil {
		return nil, fmt.Errorf("the far database: %w", err)
	}
	var database string
	if err := far.QueryRow(ctx, "select current_database()").Scan(&database); err != nil {
		return nil, fmt.Errorf("the far database: %w", err)
	}
	sides := [2]dialogSide{{db: near}, {db: far}}
	for i := range sides {
		if err := sides[i].read(ctx, fromService, toService, contract, filter); err != nil {
			return nil, err
		}
	}
	var found []Finding
	for i, side := range sides {
		other := sides[1-i]
		for _, f := range side.findings {
			isElsewhere := (f.Code == "service-missing" || f.Code == "route-to-nowhere") && slices.Contains(other.services, f.ObjectName)
			if isElsewhere {
				continue
			}
			if i == 1 {
				f.Cause = inFarDatabase + f.Cause
				f.Cure = cureThere(f.Cure, database)
			}
			found = append(found, f)
		}
	}
	if a, b := sides[0].terms, sides[1].terms; a != "" && b != "" && a != b && !slices.Contains(filter.Ignore, "contract-differs") {
		found = append(found, contractDiffers(sides[0].contract, a, b))
	}
	between, err := diagnoseEndpoints(ctx, &sides, []string{fromService, toService})
	if err != nil {
		return nil, err
	}
	for _, f := range between {
		isFound := func(other Finding) bool {
			return other.Code == f.Code && strings.HasPrefix(other.Cause, inFarDatabase) == strings.HasPrefix(f.Cause, inFarDatabase)
		}
		// One database alone has found it already.
		if filter.keeps(f) && (f.Part == PartProblem || !slices.ContainsFunc(found, isFound)) {
			found = append(found, f)
		}
	}
	return found, nil
}

// dialogSide is the statement of one of two databases about a dialog between them.
type dialogSide struct {
	db       parley.DB
	findings []Finding
	services []string // of the two, those that are here
	contract string
	terms    string // who sends what; "" when the contract is not here
}

func (s *dialogSide) read(ctx context.Context, fromService, toService, contract string, filter DiagnosisFilter) (err error) {
	if s.findings, err = DiagnoseConfiguration(ctx, s.db, fromService, toService, contract, filter); err != nil {
		return err
	}
	err = s.db.QueryRow(ctx, `
		select array(select s.name from parley.services as s where s.name in ($1, $2)), c.name, coalesce((
			select string_agg(
				format('%s SENT BY %s', t.name, case
					when u.is_sent_by_initiator and u.is_sent_by_target then 'ANY' when u.is_sent_by_initiator then 'INITIATOR' else 'TARGET'
				end), ', ' order by t.name collate "C"
			)
			from parley.service_contracts as k
			join parley.service_contract_message_usages as u using (service_contract_id)
			join parley.service_message_types as t using (message_type_id)
			where k.name = c.name
		), '')
		from (select coalesce(nullif($3, ''), 'DEFAULT') as name) as c`,
		fromService, toService, contract,
	).Scan(&s.services, &s.contract, &s.terms)
	if err != nil {
		return pgdb.StatementError(err, "diagnose a dialog")
	}
	return nil
}

func contractDiffers(contract, near, far string) Finding {
	number := int32(8498)
	return Finding{
		Code: "contract-differs", Level: LevelError, Part: PartConfiguration, ObjectKind: "contract", ObjectName: contract,
		Cause: "It is not the same in the two databases. Here: " + near + ". In the far database: " + far + ".", ErrorNumber: &number,
	}
}

// DiagnoseRuntime finds the faults of the moment: messages that are not read or not delivered, sides that are not ended, and the sessions
// that hold them up. With a conversation (its handle, id or group) only what concerns it. Patience is for how long things may last before
// they are findings; nil means what is usual for each.
//
// Errors: a [parley.Error] with number 15151 for others than administrators, or [parley.ConversationNotFound].
func DiagnoseRuntime(
	ctx context.Context, db parley.DB, conversation *parley.UUID, patience *time.Duration, filter DiagnosisFilter,
) ([]Finding, error) {
	var secs *float64
	if patience != nil {
		s := patience.Seconds()
		secs = &s
	}
	rows, err := db.Query(ctx, `
		select f.code, f.level, f.part, f.object_kind, f.object_name, f.cause, f.since, f.cure, f.error_number
		from parley.diagnose_runtime(
			conversation => $1::uuid, level => coalesce(nullif($2::text, ''), 'WARNING'), ignore => coalesce($3::text[], '{}'),
			patience => make_interval(secs => $4::float8)
		) as f`, conversation, filter.Level, filter.Ignore, secs)
	return collectFindings(rows, err)
}

// DiagnoseConversation finds what is wrong with one conversation, named by its handle, id or group: at run time, and with
// the definitions that it needs.
//
// Errors: as [DiagnoseRuntime].
func DiagnoseConversation(
	ctx context.Context, db parley.DB, conversation parley.UUID, patience *time.Duration, filter DiagnosisFilter,
) ([]Finding, error) {
	findings, err := DiagnoseRuntime(ctx, db, &conversation, patience, filter)
	if err != nil {
		return nil, err
	}
	rows, err := db.Query(ctx, `
		select f.code, f.level, f.part, f.object_kind, f.object_name, f.cause, f.since, f.cure, f.error_number
		from (
			select
				case e.is_initiator when 1 then e.service_name else e.far_service end as from_service,
				case e.is_initiator when 1 then e.far_service else e.service_name end as to_service,
				e.service_contract_name as contract
			from parley.conversation_endpoints as e
			where $1::uuid in (e.conversation_handle, e.conversation_id, e.conversation_group_id)
			order by e.is_initiator desc
			limit 1
		) as d
		cross join lateral parley.diagnose_configuration(
			from_service => d.from_service, to_service => d.to_service, contract => d.contract,
			level => coalesce(nullif($2::text, ''), 'WARNING'), ignore => coalesce($3::text[], '{}')
		) as f`, conversation, filter.Level, filter.Ignore)
	definitions, err := collectFindings(rows, err)
	return append(findings, definitions...), err
}

func collectFindings(rows pgx.Rows, err error) ([]Finding, error) {
	if err != nil {
		return nil, pgdb.StatementError(err, "diagnose")
	}
	findings, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (f Finding, err error) {
		err = row.Scan(&f.Code, &f.Level, &f.Part, &f.ObjectKind, &f.ObjectName, &f.Cause, &f.Since, &f.Cure, &f.ErrorNumber)
		return f, err
	})
	if err != nil {
		return nil, pgdb.StatementError(err, "diagnose")
	}
	return findings, nil
}

// Inconsistency is something that CheckBroker found; as JSON it is a stable format.
type Inconsistency struct {
	ErrorNumber  *int32 `json:"error_number"` // nil when Service Broker gives none to this
	ObjectKind   string `json:"object_kind"`
	ObjectName   string `json:"object_name"`
	Finding      string `json:"finding"`
	RepairNumber *int32 `json:"repair_number"` // that Service Broker gives to the repair
	Repaired     bool   `json:"repaired"`      // just now
}

// CheckBroker checks that everything in the broker refers to something that exists, and repairs what does not when it is
// asked to. It reads every row there is.
//
// Errors: a [parley.Error] with number 15151 for others than administrators.
func CheckBroker(ctx context.Context, db parley.DB, repair bool) ([]Inconsistency, error) {
	rows, err := db.Query(ctx, `
		select c.error_number, c.object_kind, c.object_name, c.finding, c.repair_number, c.repaired
		from parley.check_broker(repair => $1) as c
		where c.level = 'ERROR'`, repair)
	if err != nil {
		return nil, pgdb.StatementError(err, "check the broker")
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Inconsistency])
	if err != nil {
		return nil, pgdb.StatementError(err, "check the broker")
	}
	return found, nil
}
