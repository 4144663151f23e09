package sql_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// finding is what diagnosis reports of one thing.
type finding struct {
	Code, Level, Part, ObjectKind, ObjectName, Cause string
	HasSince                                         bool
	Cure                                             string
}

const (
	configuration = "parley.diagnose_configuration(level => 'INFO')"
	// At once, whatever patience a check has.
	runtime = "parley.diagnose_runtime(level => 'INFO', patience => '0')"
)

func (s session) findings(query string) []finding {
	s.Helper()
	rows, err := s.db.Query(s.Context(), `
		select f.code, f.level, f.part, f.object_kind, f.object_name, f.cause, f.since is not null as has_since, coalesce(f.cure, '') as cure
		from `+query+` as f`)
	if err != nil {
		s.Fatalf("%s: %v", query, describe(err))
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[finding])
	if err != nil {
		s.Fatalf("%s: %v", query, describe(err))
	}
	return found
}

// requireFinding requires that there is exactly one finding of a code, and gives it.
func (s session) requireFinding(query, code string) finding {
	s.Helper()
	var of []finding
	all := s.findings(query)
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

func (s session) requireNoFinding(query, code string) {
	s.Helper()
	for _, f := range s.findings(query) {
		if f.Code == code || f.Part == "PROBLEM" {
			s.Errorf("still found: %+v", f)
		}
	}
}

func TestDiagnosisFindsNothingWhereNothingIsWrong(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.conversation()
	for _, query := range []string{configuration, "parley.diagnose_runtime(level => 'INFO')"} {
		if found := b.findings(query); len(found) != 0 {
			t.Errorf("%s finds %+v", query, found)
		}
	}
}

// faults makes things go wrong. Each names the finding, the object it must name, and nothing more: the cure comes from the finding itself.
var faults = []struct {
	code, in string
	object   string // part of the name; "" when only known at run time
	since    bool   // whether the time is known
	arrange  func(b *broker)
	fill     [2]string // what has to be filled into the cure
}{
	{code: "broker-disabled", in: configuration, since: true, arrange: func(b *broker) { b.exec("select parley.disable_broker()") }},
	{code: "broker-elsewhere", in: configuration, since: true, arrange: func(b *broker) {
		b.exec("update parley._p_broker set system_identifier = 1")
		b.exec("select parley.attach_broker()")
	}},
	{code: "damaged", in: configuration, object: "Asking", arrange: func(b *broker) { b.exec(`drop view parley_queue."Asking"`) }},
	{code: "owner-missing", in: configuration, object: "//test/Asker", arrange: func(b *broker) {
		b.exec("create role " + quote(b.Name()))
		b.exec("select parley.alter_authorization('service', '//test/Asker', $1)", b.Name())
		b.exec("drop role " + quote(b.Name()))
	}},
	{
		code: "peer-expired", in: configuration, object: "shop's", since: true, fill: [2]string{"<fingerprint>", anotherKey},
		arrange: func(b *broker) {
			b.exec("select parley.trust_peer($1, 'shop''s')", oneKey)
			b.exec("update parley._p_peer_certificate set not_after = now()")
		},
	},
	{
		code: "peer-expiring", in: configuration, object: "shop's", fill: [2]string{"<fingerprint>", anotherKey},
		arrange: func(b *broker) {
			b.exec("select parley.trust_peer($1, 'shop''s', not_after => now() + interval '29 days')", oneKey)
		},
	},
	{
		code: "peer-role-missing", in: configuration, object: "shop's", fill: [2]string{"<role>", "public"},
		arrange: func(b *broker) {
			b.exec("select parley.trust_peer($1, 'shop''s')", oneKey)
			b.exec("update parley._p_peer set role = 4000000000::oid::regrole")
		},
	},
	{code: "autovacuum-off", in: configuration, object: "parley._p_message", arrange: func(b *broker) {
		b.exec("alter table parley._p_message set (autovacuum_enabled = off)")
	}},
	{
		code: "service-missing", in: configuration, object: "//test/Missing", since: true, fill: [2]string{"<queue>", "Answering"},
		arrange: func(b *broker) {
			b.lead()
			b.exec("select parley.begin_dialog('//test/Asker', '//test/Missing', allow_unknown_target => true)")
		},
	},
	{
		code: "route-missing", in: "parley.diagnose_configuration('//test/Asker', '//far/Service')", object: "//far/Service",
		fill:    [2]string{"<host>", "far"},
		arrange: func(b *broker) { b.exec("select parley.drop_route('AutoCreatedLocal')") },
	},
	{
		code: "route-missing", in: configuration, object: "//test/Answerer", since: true,
		arrange: func(b *broker) {
			b.exec("select parley.drop_route('AutoCreatedLocal')")
			b.dialog()
		},
	},
	{
		code: "route-missing", in: "parley.diagnose_configuration('//far/Asker', '//test/Answerer')", object: "//far/Asker",
		fill: [2]string{"<host>", "far"},
		arrange: func(b *broker) {
			b.exec("select parley.alter_route('AutoCreatedLocal', service_name => '//test/Answerer')")
		},
	},
	{
		code: "route-expired", in: configuration, object: "//far/Service's route", since: true,
		arrange: func(b *broker) {
			b.createRoute("//far/Service's route", "tcp://a:1", far)
			b.exec("update parley._p_route set expires_at = clock_timestamp() where name like '//far%'")
			b.exec("select parley.begin_dialog('//test/Asker', '//far/Service')")
		},
	},
	{
		code: "route-to-nowhere", in: configuration, object: "lost", fill: [2]string{"<queue>", "Answering"},
		arrange: func(b *broker) { b.createRoute("lost", "LOCAL", "//test/answerer") },
	},
	{
		code: "route-to-old-broker", in: configuration, object: "moved",
		arrange: func(b *broker) {
			b.exec("select parley.create_route('moved', 'LOCAL', '//test/Answerer', 'current database')")
			b.exec("select parley.new_broker()")
		},
	},
	{
		code: "contract-missing", in: "parley.diagnose_configuration('//test/Asker', '//test/Answerer', '//none')", object: "//none",
		fill: [2]string{"<message type>", note},
	},
	{
		code: "contract-not-accepted", in: configuration, object: "//test/Answerer", since: true,
		arrange: func(b *broker) {
			b.dialog()
			b.exec("select parley.alter_service('//test/Answerer', drop_contracts => array['//test/Work'])")
		},
	},
	{
		code: "contract-not-accepted", in: "parley.diagnose_configuration(to_service => '//test/Answerer', contract => '//other')", object: "//test/Answerer",
		arrange: func(b *broker) { b.exec("select parley.create_contract('//other', array['DEFAULT'])") },
	},
	{
		code: "send-not-permitted", in: "parley.diagnose_configuration('//test/Asker', '//test/Answerer')", object: "//test/Answerer",
		arrange: func(b *broker) {
			b.exec("select parley.alter_authorization('service', '//test/Asker', $1)", b.role("asker"))
		},
	},
	{code: "send-not-granted", in: "parley.diagnose_configuration('//far/Asker', '//test/Answerer')", object: "//test/Answerer"},
	{
		code: "binding-role-missing", in: configuration, object: "b", fill: [2]string{"<role>", "postgres"},
		arrange: func(b *broker) {
			b.exec("create role " + quote(b.Name()))
			b.exec("select parley.create_remote_service_binding('b', '//far/Service', $1)", b.Name())
			b.exec("drop role " + quote(b.Name()))
		},
	},
	{code: "queue-off", in: configuration, object: "Asking", since: true, arrange: func(b *broker) {
		b.exec("select parley.alter_queue('Asking', status => false)")
	}},
	{code: "queue-poisoned", in: configuration, object: "Answering", arrange: func(b *broker) {
		b.exec("select parley.alter_queue('Answering', poison_action => 'DISABLE_QUEUE')")
		b.send(b.dialog(), request, "poison")
		for range 5 {
			tx := b.begin()
			tx.receive("Answering")
			tx.rollback()
		}
		_, _ = b.db.Exec(b.Context(), "select parley.receive('Answering')")
	}},
	{code: "readers-paused", in: configuration, object: "Asking", since: true, arrange: func(b *broker) {
		b.exec("select parley.pause_readers('Asking')")
	}},
	{code: "activation-without-readers", in: configuration, object: "Answering", since: true, arrange: func(b *broker) {
		b.activated("OWNER")
		b.exec("select parley.alter_queue('Answering', max_queue_readers => 0)")
	}},
	{code: "activation-procedure-missing", in: configuration, object: "Answering", arrange: func(b *broker) {
		b.activated("OWNER")
		b.exec("drop procedure public.work()")
	}},
	{code: "activation-role-missing", in: configuration, object: "Answering", arrange: func(b *broker) {
		b.exec("create role " + quote(b.Name()))
		b.activated(b.Name())
		b.exec("drop role " + quote(b.Name()))
	}},
	{code: "activation-not-permitted", in: configuration, object: "Answering", arrange: func(b *broker) {
		b.activated(b.role("reader"))
		b.exec("revoke execute on procedure public.work() from public")
		b.afterwards("drop procedure public.work()")
	}},
	{code: "receive-not-permitted", in: configuration, object: "Answering", arrange: func(b *broker) { b.activated(b.role("reader")) }},

	{code: "no-reader", in: runtime, object: "Answering", since: true, arrange: func(b *broker) {
		b.activated("OWNER")
		b.exec("select parley.alter_queue('Answering', activation => false)")
		b.send(b.dialog(), request, "unread")
	}},
	{
		code: "no-reader", in: runtime, object: "Answering", since: true, fill: [2]string{"<schema.procedure>", "public.work"},
		arrange: func(b *broker) {
			b.exec("create procedure public.work() language sql as ''")
			b.send(b.dialog(), request, "unread")
		},
	},
	{code: "poison", in: runtime, since: true, arrange: func(b *broker) {
		b.send(b.dialog(), request, "poison")
		b.exec("select parley._p_set_aside_conversation(m.lane / 16, m.endpoint_id, m.position, 5) from parley._p_message as m")
	}},
	{code: "undeliverable", in: runtime, object: "//test/Missing", since: true, fill: [2]string{"<queue>", "Answering"}, arrange: func(b *broker) {
		// Without a daemon the cure is one: TestScripts/diagnose_two_databases.
		b.exec("select parley._p_lead('a daemon', 0, 60000)")
		b.send(value[string](b.session, "select parley.begin_dialog('//test/Asker', '//test/Missing', allow_unknown_target => true)"), "DEFAULT", "x")
	}},
	{code: "undeliverable", in: runtime, object: "//test/Answerer", since: true, fill: [2]string{"<host>", "far"}, arrange: func(b *broker) {
		b.send(value[string](b.session,
			"select parley.begin_dialog('//test/Asker', '//test/Answerer', broker_instance => gen_random_uuid()::text, allow_unknown_target => true)"), "DEFAULT", "x")
	}},
	{code: "undeliverable", in: runtime, object: "//far/Service", since: true, fill: [2]string{"<host>", "far"}, arrange: func(b *broker) {
		b.exec("select parley.drop_route('AutoCreatedLocal')")
		b.send(b.dialogWithFar(), request, "x")
	}},
	{code: "undeliverable", in: runtime, object: "//test/Answerer", since: true, arrange: func(b *broker) {
		handle, _ := b.conversation()
		b.exec("select parley.disable_broker()")
		b.send(handle, request, "x")
	}},
	{
		code: "destination-unreachable", in: runtime, object: "tcp://127.0.0.1:4022", since: true, fill: [2]string{"<host>", "127.0.0.2"},
		arrange: func(b *broker) {
			b.createRoute("far", "tcp://127.0.0.1:4022", far)
			b.send(b.dialogWithFar(), request, "x")
			b.exec("update parley._p_destination set attempts = 3, status = 'refused (9754)', failing_since = clock_timestamp()")
		},
	},
	{code: "conversation-not-ended", in: runtime, since: true, arrange: func(b *broker) {
		ended, target := b.conversation()
		b.end(ended)
		b.messages("select * from parley.receive('Answering', conversation_handle => $1)", target)
	}},
	{code: "conversation-not-ended", in: runtime, object: "//test/Answerer", since: true, arrange: func(b *broker) {
		for range 3 {
			ended, target := b.conversation()
			b.endWithError(ended, 1, "no")
			b.messages("select * from parley.receive('Answering', conversation_handle => $1)", target)
		}
	}},
	{code: "conversation-one-way", in: runtime, since: true, arrange: func(b *broker) { b.conversation() }},
	{code: "conversation-one-way", in: runtime, object: "//test/Asker", since: true, arrange: func(b *broker) {
		for range 3 {
			b.conversation()
		}
	}},
	{code: "conversation-not-used", in: runtime, since: true, arrange: func(b *broker) { b.dialog() }},
	{code: "timers-late", in: runtime, since: true, arrange: func(b *broker) {
		b.exec("select parley.begin_conversation_timer($1::uuid, 0)", b.dialog())
	}},
	{code: "tombstones", in: runtime, since: true, arrange: func(b *broker) {
		b.exec("update parley._p_broker set tombstone_seconds = 0")
		initiator, target := b.conversation()
		b.end(initiator)
		b.end(target)
	}},
}

// activated lets a procedure of public read the answering queue under a role, as if the daemon ran.
func (b *broker) activated(executeAs string) {
	b.Helper()
	b.exec("create procedure public.work() language sql as ''")
	b.lead()
	b.exec("select parley.alter_queue('Answering', activation_procedure => 'public.work', execute_as => $1, max_queue_readers => 2, activation => true)", executeAs)
}

// The finding appears, names the object and states what to do; that, done as printed, makes it go.
func TestCureOfAFindingMakesItGo(t *testing.T) {
	t.Parallel()
	for _, fault := range faults {
		t.Run(fault.code, func(t *testing.T) {
			t.Parallel()
			b := newWorld(t)
			if fault.arrange != nil {
				b.requireNoFinding(fault.in, fault.code)
				fault.arrange(b)
			}
			f := b.requireFinding(fault.in, fault.code)
			if fault.object != "" && f.ObjectName != fault.object || f.ObjectName == "" || f.ObjectKind == "" || f.Cause == "" {
				t.Errorf("the finding names %s %q, want %q: %s", f.ObjectKind, f.ObjectName, fault.object, f.Cause)
			}
			if f.HasSince != fault.since {
				t.Errorf("it is known since when: %v, want %v", f.HasSince, fault.since)
			}
			cure := f.Cure
			if fault.fill[0] != "" {
				cure = strings.ReplaceAll(cure, fault.fill[0], fault.fill[1])
			}
			if strings.Contains(cure, "<") {
				t.Fatalf("something has to be filled into %s", cure)
			}
			b.exec(cure)
			b.requireNoFinding(fault.in, fault.code)
		})
	}
}

func TestEveryCheckHasATest(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	tested := map[string]bool{
		// Tests of their own.
		"binding-certificate-missing": true, "dialog-certificate-missing": true, "time-out-short": true,
		"endpoint-missing": true, "peer-not-trusted": true, "peer-unknown": true,
		"webhook-secret-plain": true, "certificate-expired": true, "certificate-expiring": true,
		"rights-lost": true, "no-daemon": true, "transmission-backlog": true, "reader-slow": true, "reader-failing": true, "group-held": true,
		"sender-open": true, "daemon-superuser": true, "messages-set-aside": true, "isolation-default": true, "read-only-default": true, "time-out": true,
		"sequence-behind": true, "messages-passed-by": true, "reader-keeps-snapshot": true, "old-snapshot": true, "old-prepared-transaction": true, "messages-from-the-future": true, "queue-full": true, "queue-nearly-full": true,
		// Needs a server whose wal_level is logical: internal/verify/reliability.
		"old-slot": true,
	}
	for _, fault := range faults {
		tested[fault.code] = true
	}
	for _, code := range values[string](b.session, "select code from parley.diagnosis_checks") {
		if !tested[code] {
			t.Errorf("no test makes %s appear", code)
		}
	}
	for _, function := range values[string](b.session, `
		select check_function from parley.diagnosis_checks where to_regprocedure(format('parley.%I(parley._p_scope)', check_function)) is null`) {
		t.Errorf("there is no function %s", function)
	}
}

func TestDiagnosisIsForAdministrators(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	ordinary := b.as(b.role("ordinary"))
	for _, statement := range []string{
		"select parley.diagnose_configuration()", "select parley.diagnose_runtime()", "select parley.check_broker()", "select parley.check_broker(true)",
	} {
		ordinary.refuses(15151, statement)
	}
}

func TestDiagnosisIgnoresCodesAndLevels(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.dialog()
	b.requireFinding(runtime, "conversation-not-used")
	b.requireNoFinding("parley.diagnose_runtime(patience => '0', ignore => array['conversation-not-used'])", "conversation-not-used")
	b.requireNoFinding("parley.diagnose_runtime(patience => '0', level => 'error')", "conversation-not-used")
	b.refuses(8402, "select parley.diagnose_runtime(level => 'SOME')")
	// A dialog just begun is nothing unusual.
	b.requireNoFinding("parley.diagnose_runtime()", "conversation-not-used")
}

func TestDiagnosisOfOneConversationLeavesOthersOut(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	unused := b.dialog()
	talking, _ := b.conversation()
	b.requireFinding("parley.diagnose_runtime('"+unused+"', patience => '0')", "conversation-not-used")
	b.requireNoFinding("parley.diagnose_runtime('"+talking+"', patience => '0')", "conversation-not-used")
	b.refuses(8426, "select parley.diagnose_runtime(gen_random_uuid())")
}
