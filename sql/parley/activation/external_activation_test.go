package activation_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

const externalReader = `
	select format('%s min %s max %s %s', r.kind, r.min_readers, r.max_readers, r.definition)
	from parley._p_external_readers() as r
	join parley._p_queue as q using (queue_id)
	where q.name = 'Answering'`

func TestProgramIsDefinedAlteredAndDropped(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec(`select parley.create_program_activation('Answering', array['/opt/reader', '--name', 'a b'], '{"REGION": "north"}', '/var/lib', 1, 3, 500)`)
	sqltest.Equal(b.Session, `program min 1 max 3 {"program": ["/opt/reader", "--name", "a b"], "queue_name": "Answering", "environment": {"REGION": "north"}, `+
		`"schema_name": "dbo", "stop_timeout_ms": 500, "working_directory": "/var/lib"}`, externalReader)
	b.Exec("select parley.alter_program_activation('Answering', max_instances => 5)")
	sqltest.Equal(b.Session, true, "select ("+externalReader+") like 'program min 1 max 5 {%\"REGION\": \"north\"%'")
	b.Exec("select parley.alter_program_activation('Answering', activation => false)")
	sqltest.Equal(b.Session, 0, "select count(*) from parley._p_external_readers()")
	sqltest.Equal(b.Session, `{/opt/reader,--name,"a b"} {REGION}`, "select format('%s %s', program, environment_names) from parley.external_activations where not is_enabled")
	b.Exec("select parley.drop_external_activation('Answering')")
	sqltest.Equal(b.Session, 0, "select count(*) from parley.external_activations")
}

func TestWebhookIsDefinedAlteredAndDropped(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	given := sqltest.Value[string](b.Session, "select parley.create_webhook_activation('Answering', 'https://example.com/in?key=1', max_instances => 7)")
	if !strings.HasPrefix(given, "whsec_") || len(given) != len("whsec_")+44 {
		t.Errorf("the secret is %q", given)
	}
	sqltest.Equal(b.Session, given, "select definition ->> 'secret' from parley._p_external_readers()")
	sqltest.Equal(b.Session, "webhook https://example.com/in?... 7", "select format('%s %s %s', kind, url, max_instances) from parley.external_activations")
	b.Exec("select parley.alter_webhook_activation('Answering', secret => 'a secret that is mine', secret_name => 'mine', batch_size => 10)")
	sqltest.Equal(b.Session, "a secret that is mine 10 https://example.com/in?key=1",
		"select format('%s %s %s', definition ->> 'secret', definition ->> 'batch_size', definition ->> 'url') from parley._p_external_readers()")
	b.Exec("select parley.drop_external_activation('Answering')")
	sqltest.Equal(b.Session, 0, "select count(*) from parley._p_external_readers()")
}

func TestSecretsAreInNoViewAndNoFunctionForOthers(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.create_webhook_activation('Answering', 'https://example.com/in?key=hidden', secret => 'hidden-hidden-hidden', secret_name => 'shop')")
	b.Exec(`select parley.create_program_activation('Asking', array['/opt/reader'], '{"PASSWORD": "hidden"}')`)
	reader := b.As(b.Role("reader"))
	for _, view := range sqltest.Values[string](b.Session, "select viewname::text from pg_views where schemaname = 'parley' and viewname not like '\\_p\\_%'") {
		rows := strings.Join(sqltest.Values[string](reader, "select v::text from parley."+view+" as v"), "\n")
		if strings.Contains(rows, "hidden") {
			t.Errorf("view %s shows a secret: %s", view, rows)
		}
	}
	for _, statement := range []string{
		"select secret from parley._p_external_activation",
		"select * from parley._p_external_readers()",
		"select parley._p_external_definition(null)",
	} {
		if err := reader.Try(statement); err == nil {
			t.Errorf("%s is allowed", statement)
		}
	}
}

func TestActivatingNeedsAlterOnTheQueueAndItsOwnersRole(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	name, owner := b.Role("definer"), b.Role("owner")
	b.Exec("select parley.alter_authorization('queue', 'Answering', $1)", owner)
	definer := b.As(name)
	for _, statement := range []string{
		"select parley.create_webhook_activation('Answering', 'https://example.com')",
		"select parley.create_program_activation('Answering', array['/opt/reader'])",
	} {
		definer.RequireDenied(statement)
		b.Grant(sqltest.RightTo("ALTER", "queue", "Answering"), name)
		definer.Refuses(15517, statement)
		b.Revoke(sqltest.RightTo("ALTER", "queue", "Answering"), name)
		b.Exec("grant " + sqltest.Quote(owner) + " to " + sqltest.Quote(name))
		definer.RequireAllowed(statement)
		b.Exec("revoke " + sqltest.Quote(owner) + " from " + sqltest.Quote(name))
	}
}

func TestActivationThatIsOffMayStandBesideAnother(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("create procedure public.read() language sql as ''")
	b.Exec("select parley.create_program_activation('Answering', array['/opt/reader'], activation => false)")
	b.Exec("select parley.alter_queue('Answering', activation_procedure => 'public.read', execute_as => 'OWNER', max_queue_readers => 1, activation => true)")
	b.Refuses(9718, "select parley.alter_program_activation('Answering', activation => true)")
	b.Exec("select parley.alter_queue('Answering', activation => false)")
	b.Exec("select parley.alter_program_activation('Answering', activation => true)")
}

func TestQueueTakesItsActivationAlong(t *testing.T) {
	t.Parallel()
	b := sqltest.NewListener(t)
	b.Exec("select parley.create_queue('Short')")
	b.Exec("select parley.create_program_activation('Short', array['/opt/reader'])")
	b.Exec("select parley.create_event_notification('off', 'Short', 'BROKER_QUEUE_DISABLED', '//test/Listener')")
	b.Exec("select parley.drop_queue('Short')")
	sqltest.Equal(b.Session, 0, "select count(*) from parley.external_activations")
	sqltest.Equal(b.Session, 0, "select count(*) from parley.event_notifications")
	sqltest.Equal(b.Session, 0, "select count(*) from parley.conversation_endpoints")
}

func TestDiagnosisReportsSecretsThatNoDaemonSeals(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.create_webhook_activation('Answering', 'https://example.com/in')")
	b.RequireNoFinding("parley.diagnose_runtime()", "webhook-secret-plain") // a daemon needs a moment
	if f := b.RequireFinding(sqltest.Runtime, "webhook-secret-plain"); f.ObjectName != "Answering" || !f.HasSince {
		t.Errorf("the finding is %+v", f)
	}
	sqltest.Equal(b.Session, true, "select parley._p_seal_webhook_secret(s.queue_id, s.secret, 'sealed') from parley._p_plain_secrets() as s")
	b.RequireNoFinding(sqltest.Runtime, "webhook-secret-plain")
	b.Exec("select parley.alter_webhook_activation('Answering', secret => 'a secret that is mine')")
	b.RequireFinding(sqltest.Runtime, "webhook-secret-plain")
}
