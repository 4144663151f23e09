package sql_test

import (
	"strings"
	"testing"
)

const externalReader = `
	select format('%s min %s max %s %s', r.kind, r.min_readers, r.max_readers, r.definition)
	from parley._p_external_readers() as r
	join parley._p_queue as q using (queue_id)
	where q.name = 'Answering'`

func TestProgramIsDefinedAlteredAndDropped(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec(`select parley.create_program_activation('Answering', array['/opt/reader', '--name', 'a b'], '{"REGION": "north"}', '/var/lib', 1, 3, 500)`)
	equal(b.session, `program min 1 max 3 {"program": ["/opt/reader", "--name", "a b"], "queue_name": "Answering", "environment": {"REGION": "north"}, `+
		`"schema_name": "dbo", "stop_timeout_ms": 500, "working_directory": "/var/lib"}`, externalReader)
	b.exec("select parley.alter_program_activation('Answering', max_instances => 5)")
	equal(b.session, true, "select ("+externalReader+") like 'program min 1 max 5 {%\"REGION\": \"north\"%'")
	b.exec("select parley.alter_program_activation('Answering', activation => false)")
	equal(b.session, 0, "select count(*) from parley._p_external_readers()")
	equal(b.session, `{/opt/reader,--name,"a b"} {REGION}`, "select format('%s %s', program, environment_names) from parley.external_activations where not is_enabled")
	b.exec("select parley.drop_external_activation('Answering')")
	equal(b.session, 0, "select count(*) from parley.external_activations")
}

func TestWebhookIsDefinedAlteredAndDropped(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	given := value[string](b.session, "select parley.create_webhook_activation('Answering', 'https://example.com/in?key=1', max_instances => 7)")
	if !strings.HasPrefix(given, "whsec_") || len(given) != len("whsec_")+44 {
		t.Errorf("the secret is %q", given)
	}
	equal(b.session, given, "select definition ->> 'secret' from parley._p_external_readers()")
	equal(b.session, "webhook https://example.com/in?... 7", "select format('%s %s %s', kind, url, max_instances) from parley.external_activations")
	b.exec("select parley.alter_webhook_activation('Answering', secret => 'a secret that is mine', secret_name => 'mine', batch_size => 10)")
	equal(b.session, "a secret that is mine 10 https://example.com/in?key=1",
		"select format('%s %s %s', definition ->> 'secret', definition ->> 'batch_size', definition ->> 'url') from parley._p_external_readers()")
	b.exec("select parley.drop_external_activation('Answering')")
	equal(b.session, 0, "select count(*) from parley._p_external_readers()")
}

func TestSecretsAreInNoViewAndNoFunctionForOthers(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec("select parley.create_webhook_activation('Answering', 'https://example.com/in?key=hidden', secret => 'hidden-hidden-hidden', secret_name => 'shop')")
	b.exec(`select parley.create_program_activation('Asking', array['/opt/reader'], '{"PASSWORD": "hidden"}')`)
	reader := b.as(b.role("reader"))
	for _, view := range values[string](b.session, "select viewname::text from pg_views where schemaname = 'parley' and viewname not like '\\_p\\_%'") {
		rows := strings.Join(values[string](reader, "select v::text from parley."+view+" as v"), "\n")
		if strings.Contains(rows, "hidden") {
			t.Errorf("view %s shows a secret: %s", view, rows)
		}
	}
	for _, statement := range []string{
		"select secret from parley._p_external_activation",
		"select * from parley._p_external_readers()",
		"select parley._p_external_definition(null)",
	} {
		if err := reader.try(statement); err == nil {
			t.Errorf("%s is allowed", statement)
		}
	}
}

func TestActivatingNeedsAlterOnTheQueueAndItsOwnersRole(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	name, owner := b.role("definer"), b.role("owner")
	b.exec("select parley.alter_authorization('queue', 'Answering', $1)", owner)
	definer := b.as(name)
	for _, statement := range []string{
		"select parley.create_webhook_activation('Answering', 'https://example.com')",
		"select parley.create_program_activation('Answering', array['/opt/reader'])",
	} {
		definer.requireDenied(statement)
		b.grant(right{"ALTER", "queue", "Answering"}, name)
		definer.refuses(15517, statement)
		b.revoke(right{"ALTER", "queue", "Answering"}, name)
		b.exec("grant " + quote(owner) + " to " + quote(name))
		definer.requireAllowed(statement)
		b.exec("revoke " + quote(owner) + " from " + quote(name))
	}
}

func TestActivationThatIsOffMayStandBesideAnother(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec("create procedure public.read() language sql as ''")
	b.exec("select parley.create_program_activation('Answering', array['/opt/reader'], activation => false)")
	b.exec("select parley.alter_queue('Answering', activation_procedure => 'public.read', execute_as => 'OWNER', max_queue_readers => 1, activation => true)")
	b.refuses(9718, "select parley.alter_program_activation('Answering', activation => true)")
	b.exec("select parley.alter_queue('Answering', activation => false)")
	b.exec("select parley.alter_program_activation('Answering', activation => true)")
}

func TestQueueTakesItsActivationAlong(t *testing.T) {
	t.Parallel()
	b := newListener(t)
	b.exec("select parley.create_queue('Short')")
	b.exec("select parley.create_program_activation('Short', array['/opt/reader'])")
	b.exec("select parley.create_event_notification('off', 'Short', 'BROKER_QUEUE_DISABLED', '//test/Listener')")
	b.exec("select parley.drop_queue('Short')")
	equal(b.session, 0, "select count(*) from parley.external_activations")
	equal(b.session, 0, "select count(*) from parley.event_notifications")
	equal(b.session, 0, "select count(*) from parley.conversation_endpoints")
}

func TestDiagnosisReportsSecretsThatNoDaemonSeals(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec("select parley.create_webhook_activation('Answering', 'https://example.com/in')")
	b.requireNoFinding("parley.diagnose_runtime()", "webhook-secret-plain") // a daemon needs a moment
	if f := b.requireFinding(runtime, "webhook-secret-plain"); f.ObjectName != "Answering" || !f.HasSince {
		t.Errorf("the finding is %+v", f)
	}
	equal(b.session, true, "select parley._p_seal_webhook_secret(s.queue_id, s.secret, 'sealed') from parley._p_plain_secrets() as s")
	b.requireNoFinding(runtime, "webhook-secret-plain")
	b.exec("select parley.alter_webhook_activation('Answering', secret => 'a secret that is mine')")
	b.requireFinding(runtime, "webhook-secret-plain")
}
