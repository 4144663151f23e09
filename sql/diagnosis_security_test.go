package sql_test

import (
	"strings"
	"testing"
)

// Their cures are commands: here is what those do.
func TestDiagnosisFindsCertificatesThatABindingMisses(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	owner, remote := b.role("owner"), b.role("far")
	b.exec("select parley.alter_authorization('service', '//test/Asker', $1)", owner)
	b.exec("select parley.create_remote_service_binding('b', '//far/Service', $1)", remote)
	const dialog = "parley.diagnose_configuration('//test/Asker', '//far/Service', '//test/Work')"
	if f := b.requireFinding(dialog, "binding-certificate-missing"); f.ObjectName != "b" || !strings.Contains(f.Cure, "--role '"+remote+"'") {
		t.Errorf("found %+v", f)
	}
	if f := b.requireFinding(dialog, "dialog-certificate-missing"); f.ObjectName != "//test/Asker" || !strings.Contains(f.Cure, "--role '"+owner+"'") {
		t.Errorf("found %+v", f)
	}
	// Of other dialogs this is not reported.
	b.requireNoFinding("parley.diagnose_configuration('//test/Asker', '//test/Answerer', '//test/Work')", "dialog-certificate-missing")
	// An anonymous dialog is not signed.
	b.exec("select parley.alter_remote_service_binding('b', anonymous => true)")
	b.requireNoFinding(dialog, "dialog-certificate-missing")
	b.exec("select parley.alter_remote_service_binding('b', anonymous => false)")
	b.install("far side", remote, false)
	b.requireNoFinding(dialog, "binding-certificate-missing")
	b.install("own side", owner, true)
	b.requireNoFinding(dialog, "dialog-certificate-missing")
	b.exec("select parley.drop_remote_service_binding('b')")
	b.exec("select parley.drop_certificate(name) from parley.certificates")
	b.exec("select parley.alter_authorization('service', '//test/Asker', current_user)")
}

// One check that fails does not keep the others from being made.
func TestCheckThatFailsIsReportedAsAProblem(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.dialog()
	b.exec("drop function parley._p_find_tombstones(parley._p_scope)")
	problems := 0
	for _, f := range b.findings(runtime) {
		if f.Part == "PROBLEM" && f.Code == "tombstones" {
			problems++
		}
	}
	if problems != 1 {
		t.Errorf("%d problems are reported", problems)
	}
}
