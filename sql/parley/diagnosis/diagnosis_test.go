package diagnosis_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

func TestDiagnosisFindsNothingWhereNothingIsWrong(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Conversation()
	for _, query := range []string{sqltest.Configuration, "parley.diagnose_runtime(level => 'INFO')"} {
		if found := b.Findings(query); len(found) != 0 {
			t.Errorf("%s finds %+v", query, found)
		}
	}
}

// faults makes things go wrong. Each names the finding, the object it must name, and nothing more: the cure comes from the finding itself.
var faults = []struct {
	code, in string
	object   string // part of the name; "" when only known at run time
	since    bool   // whether the time is known
	arrange  func(b *sqltest.Broker)
	fill     [2]string // what has to be filled into the cure
}{
	{code: "broker-disabled", in: sqltest.Configuration, since: true, arrange: func(b *sqltest.Broker) { b.Exec("select parley.disable_broker()") }},
	{code: "broker-elsewhere", in: sqltest.Configuration, since: true, arrange: func(b *sqltest.Broker) {
		b.Exec("update parley._p_broker set system_identifier = 1")
		b.Exec("select parley.attach_broker()")
	}},
	{code: "damaged", in: sqltest.Configuration, object: "Asking", arrange: func(b *sqltest.Broker) { b.Exec(`drop view parley_queue."Asking"`) }},
	{code: "owner-missing", in: sqltest.Configuration, object: "//test/Asker", arrange: func(b *sqltest.Broker) {
		b.Exec("create role " + sqltest.Quote(b.Name()))
		b.Exec("select parley.alter_authorization('service', '//test/Asker', $1)", b.Name())
		b.Exec("drop role " + sqltest.Quote(b.Name()))
	}},
	{
		code: "peer-expired", in: sqltest.Configuration, object: "shop's", since: true, fill: [2]string{"<fingerprint>", sqltest.AnotherKey},
		arrange: func(b *sqltest.Broker) {
			b.Exec("select parley.trust_peer($1, 'shop''s')", sqltest.OneKey)
			b.Exec("update parley._p_peer_certificate set not_after = now()")
		},
	},
	{
		code: "peer-expiring", in: sqltest.Configuration, object: "shop's", fill: [2]string{"<fingerprint>", sqltest.AnotherKey},
		arrange: func(b *sqltest.Broker) {
			b.Exec("select parley.trust_peer($1, 'shop''s', not_after => now() + interval '29 days')", sqltest.OneKey)
		},
	},
	{
		code: "peer-role-missing", in: sqltest.Configuration, object: "shop's", fill: [2]string{"<role>", "public"},
		arrange: func(b *sqltest.Broker) {
			b.Exec("select parley.trust_peer($1, 'shop''s')", sqltest.OneKey)
			b.Exec("update parley._p_peer set role = 4000000000::oid::regrole")
		},
	},
	{code: "autovacuum-off", in: sqltest.Configuration, object: "parley._p_message", arrange: func(b *sqltest.Broker) {
		b.Exec("alter table parley._p_message set (autovacuum_enabled = off)")
	}},
	{
		code: "service-missing", in: sqltest.Configuration, object: "//test/Missing", since: true, fill: [2]string{"<queue>", "Answering"},
		arrange: func(b *sqltest.Broker) {
			b.Lead()
			b.Exec("select parley.begin_dialog('//test/Asker', '//test/Missing', allow_unknown_target => true)")
		},
	},
	{
		code: "route-missing", in: "parley.diagnose_configuration('//test/Asker', '//far/Service')", object: "//far/Service",
		fill:    [2]string{"<host>", "far"},
		arrange: func(b *sqltest.Broker) { b.Exec("select parley.drop_route('AutoCreatedLocal')") },
	},
	{
		code: "route-missing", in: sqltest.Configuration, object: "//test/Answerer", since: true,
		arrange: func(b *sqltest.Broker) {
			b.Exec("select parley.drop_route('AutoCreatedLocal')")
			b.Dialog()
		},
	},
	{
		code: "route-missing", in: "parley.diagnose_configuration('//far/Asker', '//test/Answerer')", object: "//far/Asker",
		fill: [2]string{"<host>", "far"},
		arrange: func(b *sqltest.Broker) {
			b.Exec("select parley.alter_route('AutoCreatedLocal', service_name => '//test/Answerer')")
		},
	},
	{
		code: "route-expired", in: sqltest.Configuration, object: "//far/Service's route", since: true,
		arrange: func(b *sqltest.Broker) {
			b.CreateRoute("//far/Service's route", "tcp://a:1", sqltest.Far)
			b.Exec("update parley._p_route set expires_at = clock_timestamp() where name like '//far%'")
			b.Exec("select parley.begin_dialog('//test/Asker', '//far/Service')")
		},
	},
	{
		code: "route-to-nowhere", in: sqltest.Configuration, object: "lost", fill: [2]string{"<queue>", "Answering"},
		arrange: func(b *sqltest.Broker) { b.CreateRoute("lost", "LOCAL", "//test/answerer") },
	},
	{
		code: "route-to-old-broker", in: sqltest.Configuration, object: "moved",
		arrange: func(b *sqltest.Broker) {
			b.Exec("select parley.create_route('moved', 'LOCAL', '//test/Answerer', 'current database')")
			b.Exec("select parley.new_broker()")
		},
	},
	{
		code: "contract-missing", in: "parley.diagnose_configuration('//test/Asker', '//test/Answerer', '//none')", object: "//none",
		fill: [2]string{"<message type>", sqltest.Note},
	},
	{
		code: "contract-not-accepted", in: sqltest.Configuration, object: "//test/Answerer", since: true,
		arrange: func(b *sqltest.Broker) {
			b.Dialog()
			b.Exec("select parley.alter_service('//test/Answerer', drop_contracts => array['//test/Work'])")
		},
	},
	{
		code: "contract-not-accepted", in: "parley.diagnose_configuration(to_service => '//test/Answerer', contract => '//other')", object: "//test/Answerer",
		arrange: func(b *sqltest.Broker) { b.Exec("select parley.create_contract('//other', array['DEFAULT'])") },
	},
	{
		code: "send-not-permitted", in: "parley.diagnose_configuration('//test/Asker', '//test/Answerer')", object: "//test/Answerer",
		arrange: func(b *sqltest.Broker) {
			b.Exec("select parley.alter_authorization('service', '//test/Asker', $1)", b.Role("asker"))
		},
	},
	{code: "send-not-granted", in: "parley.diagnose_configuration('//far/Asker', '//test/Answerer')", object: "//test/Answerer"},
	{
		code: "binding-role-missing", in: sqltest.Configuration, object: "b", fill: [2]string{"<role>", "postgres"},
		arrange: func(b *sqltest.Broker) {
			b.Exec("create role " + sqltest.Quote(b.Name()))
			b.Exec("select parley.create_remote_service_binding('b', '//far/Service', $1)", b.Name())
			b.Exec("drop role " + sqltest.Quote(b.Name()))
		},
	},
	{code: "queue-off", in: sqltest.Configuration, object: "Asking", since: true, arrange: func(b *sqltest.Broker) {
		b.Exec("select parley.alter_queue('Asking', status => false)")
	}},
	{code: "queue-poisoned", in: sqltest.Configuration, object: "Answering", arrange: func(b *sqltest.Broker) {
		b.Exec("select parley.alter_queue('Answering', poison_action => 'DISABLE_QUEUE')")
		b.Send(b.Dialog(), sqltest.Request, "poison")
		for range 5 {
			tx := b.Begin()
			tx.Receive("Answering")
			tx.Rollback()
		}
		_, _ = b.DB.Exec(b.Context(), "select parley.receive('Answering')")
	}},
	{code: "readers-paused", in: sqltest.Configuration, object: "Asking", since: true, arrange: func(b *sqltest.Broker) {
		b.Exec("select parley.pause_readers('Asking')")
	}},
	{code: "activation-without-readers", in: sqltest.Configuration, object: "Answering", since: true, arrange: func(b *sqltest.Broker) {
		b.Activated("OWNER")
		b.Exec("select parley.alter_queue('Answering', max_queue_readers => 0)")
	}},
	{code: "activation-procedure-missing", in: sqltest.Configuration, object: "Answering", arrange: func(b *sqltest.Broker) {
		b.Activated("OWNER")
		b.Exec("drop procedure public.work()")
	}},
	{code: "activation-role-missing", in: sqltest.Configuration, object: "Answering", arrange: func(b *sqltest.Broker) {
		b.Exec("create role " + sqltest.Quote(b.Name()))
		b.Activated(b.Name())
		b.Exec("drop role " + sqltest.Quote(b.Name()))
	}},
	{code: "activation-not-permitted", in: sqltest.Configuration, object: "Answering", arrange: func(b *sqltest.Broker) {
		b.Activated(b.Role("reader"))
		b.Exec("revoke execute on procedure public.work() from public")
		b.Afterwards("drop procedure public.work()")
	}},
	{code: "receive-not-permitted", in: sqltest.Configuration, object: "Answering", arrange: func(b *sqltest.Broker) { b.Activated(b.Role("reader")) }},

	{code: "no-reader", in: sqltest.Runtime, object: "Answering", since: true, arrange: func(b *sqltest.Broker) {
		b.Activated("OWNER")
		b.Exec("select parley.alter_queue('Answering', activation => false)")
		b.Send(b.Dialog(), sqltest.Request, "unread")
	}},
	{
		code: "no-reader", in: sqltest.Runtime, object: "Answering", since: true, fill: [2]string{"<schema.procedure>", "public.work"},
		arrange: func(b *sqltest.Broker) {
			b.Exec("create procedure public.work() language sql as ''")
			b.Send(b.Dialog(), sqltest.Request, "unread")
		},
	},
	{code: "poison", in: sqltest.Runtime, since: true, arrange: func(b *sqltest.Broker) {
		b.Send(b.Dialog(), sqltest.Request, "poison")
		b.Exec("select parley._p_set_aside_conversation(m.lane / 16, m.endpoint_id, m.position, 5) from parley._p_message as m")
	}},
	{code: "undeliverable", in: sqltest.Runtime, object: "//test/Missing", since: true, fill: [2]string{"<queue>", "Answering"}, arrange: func(b *sqltest.Broker) {
		// Without a daemon the cure is one: TestScripts/diagnose_two_databases.
		b.Exec("select parley._p_lead('a daemon', 0, 60000)")
		b.Send(sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', '//test/Missing', allow_unknown_target => true)"), "DEFAULT", "x")
	}},
	{code: "undeliverable", in: sqltest.Runtime, object: "//test/Answerer", since: true, fill: [2]string{"<host>", "far"}, arrange: func(b *sqltest.Broker) {
		b.Send(sqltest.Value[string](b.Session,
			"select parley.begin_dialog('//test/Asker', '//test/Answerer', broker_instance => gen_random_uuid()::text, allow_unknown_target => true)"), "DEFAULT", "x")
	}},
	{code: "undeliverable", in: sqltest.Runtime, object: "//far/Service", since: true, fill: [2]string{"<host>", "far"}, arrange: func(b *sqltest.Broker) {
		b.Exec("select parley.drop_route('AutoCreatedLocal')")
		b.Send(b.DialogWithFar(), sqltest.Request, "x")
	}},
	{code: "undeliverable", in: sqltest.Runtime, object: "//test/Answerer", since: true, arrange: func(b *sqltest.Broker) {
		handle, _ := b.Conversation()
		b.Exec("select parley.disable_broker()")
		b.Send(handle, sqltest.Request, "x")
	}},
	{
		code: "destination-unreachable", in: sqltest.Runtime, object: "tcp://127.0.0.1:4022", since: true, fill: [2]string{"<host>", "127.0.0.2"},
		arrange: func(b *sqltest.Broker) {
			b.CreateRoute("far", "tcp://127.0.0.1:4022", sqltest.Far)
			b.Send(b.DialogWithFar(), sqltest.Request, "x")
			b.Exec("update parley._p_destination set attempts = 3, status = 'refused (9754)', failing_since = clock_timestamp()")
		},
	},
	{code: "conversation-not-ended", in: sqltest.Runtime, since: true, arrange: func(b *sqltest.Broker) {
		ended, target := b.Conversation()
		b.End(ended)
		b.Messages("select * from parley.receive('Answering', conversation_handle => $1)", target)
	}},
	{code: "conversation-not-ended", in: sqltest.Runtime, object: "//test/Answerer", since: true, arrange: func(b *sqltest.Broker) {
		for range 3 {
			ended, target := b.Conversation()
			b.EndWithError(ended, 1, "no")
			b.Messages("select * from parley.receive('Answering', conversation_handle => $1)", target)
		}
	}},
	{code: "conversation-one-way", in: sqltest.Runtime, since: true, arrange: func(b *sqltest.Broker) { b.Conversation() }},
	{code: "conversation-one-way", in: sqltest.Runtime, object: "//test/Asker", since: true, arrange: func(b *sqltest.Broker) {
		for range 3 {
			b.Conversation()
		}
	}},
	{code: "conversation-not-used", in: sqltest.Runtime, since: true, arrange: func(b *sqltest.Broker) { b.Dialog() }},
	{code: "timers-late", in: sqltest.Runtime, since: true, arrange: func(b *sqltest.Broker) {
		b.Exec("select parley.begin_conversation_timer($1::uuid, 0)", b.Dialog())
	}},
	{code: "tombstones", in: sqltest.Runtime, since: true, arrange: func(b *sqltest.Broker) {
		b.Exec("update parley._p_broker set tombstone_seconds = 0")
		initiator, target := b.Conversation()
		b.End(initiator)
		b.End(target)
	}},
}

// The finding appears, names the object and states what to do; that, done as printed, makes it go.
func TestCureOfAFindingMakesItGo(t *testing.T) {
	t.Parallel()
	for _, fault := range faults {
		t.Run(fault.code, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			if fault.arrange != nil {
				b.RequireNoFinding(fault.in, fault.code)
				fault.arrange(b)
			}
			f := b.RequireFinding(fault.in, fault.code)
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
			b.Exec(cure)
			b.RequireNoFinding(fault.in, fault.code)
		})
	}
}

func TestEveryCheckHasATest(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	tested := map[string]bool{
		// Tests of their own.
		"binding-certificate-missing": true, "dialog-certificate-missing": true, "time-out-short": true,
		"endpoint-missing": true, "peer-not-trusted": true, "peer-unknown": true,
		"webhook-secret-plain": true, "certificate-expired": true, "certificate-expiring": true,
		"rights-lost": true, "no-daemon": true, "schedule-failing": true, "transmission-backlog": true, "reader-slow": true, "reader-failing": true, "group-held": true,
		"sender-open": true, "daemon-superuser": true, "messages-set-aside": true, "isolation-default": true, "read-only-default": true, "time-out": true,
		"sequence-behind": true, "messages-passed-by": true, "reader-keeps-snapshot": true, "old-snapshot": true, "old-prepared-transaction": true, "messages-from-the-future": true, "queue-full": true, "queue-nearly-full": true,
		// Need a server of their own, with wal_level at logical or a standby that is missing: internal/verify/reliability.
		"old-slot": true, "commit-waits-for-standby": true,
	}
	for _, fault := range faults {
		tested[fault.code] = true
	}
	for _, code := range sqltest.Values[string](b.Session, "select code from parley.diagnosis_checks") {
		if !tested[code] {
			t.Errorf("no test makes %s appear", code)
		}
	}
	for _, function := range sqltest.Values[string](b.Session, `
		select check_function from parley.diagnosis_checks where to_regprocedure(format('parley.%I(parley._p_scope)', check_function)) is null`) {
		t.Errorf("there is no function %s", function)
	}
}

func TestDiagnosisIsForAdministrators(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	ordinary := b.As(b.Role("ordinary"))
	for _, statement := range []string{
		"select parley.diagnose_configuration()", "select parley.diagnose_runtime()", "select parley.check_broker()", "select parley.check_broker(true)",
	} {
		ordinary.Refuses(15151, statement)
	}
}

func TestDiagnosisIgnoresCodesAndLevels(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Dialog()
	b.RequireFinding(sqltest.Runtime, "conversation-not-used")
	b.RequireNoFinding("parley.diagnose_runtime(patience => '0', ignore => array['conversation-not-used'])", "conversation-not-used")
	b.RequireNoFinding("parley.diagnose_runtime(patience => '0', level => 'error')", "conversation-not-used")
	b.Refuses(8402, "select parley.diagnose_runtime(level => 'SOME')")
	// A dialog just begun is nothing unusual.
	b.RequireNoFinding("parley.diagnose_runtime()", "conversation-not-used")
}

func TestDiagnosisOfOneConversationLeavesOthersOut(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	unused := b.Dialog()
	talking, _ := b.Conversation()
	b.RequireFinding("parley.diagnose_runtime('"+unused+"', patience => '0')", "conversation-not-used")
	b.RequireNoFinding("parley.diagnose_runtime('"+talking+"', patience => '0')", "conversation-not-used")
	b.Refuses(8426, "select parley.diagnose_runtime(gen_random_uuid())")
}
