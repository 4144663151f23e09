package security

import (
	"context"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"time"

	truststore "github.com/parley-broker/parley/internal/store/trust"
	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/connection"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/session"
	"github.com/parley-broker/parley/internal/tsql/value"
)

const (
	// ofLinks says what stands for the certificates of master, which are those of links between servers.
	ofLinks = "a daemon makes the key of its links itself, and parley pair exchanges it"
	// ofPasswords says what stands for a password of a private key.
	ofPasswords = "private keys are sealed under the master key"
	// atTheCommand says where certificates are made.
	atTheCommand = "run the script by parley tsql, or use parley dialog-certificate"
	// backDated is how long before now a certificate begins that has no START_DATE: clocks of servers differ.
	backDated = 24 * time.Hour
	// maxSubject is the length of the longest subject in bytes.
	maxSubject = 256
)

// certificate compiles CREATE CERTIFICATE: of our own with its keys, or of somebody else from a file.
func (t *Translator) certificate(node *ast.Certificate, scope expression.Scope) (*statement, *fault.Error) {
	switch {
	case node.Verb == "ALTER":
		return t.alterCertificate(node)
	case node.From != "" && node.From != "FILE":
		return nil, refused("CREATE CERTIFICATE FROM "+node.From, "a certificate comes from a file of BACKUP CERTIFICATE")
	case node.From == "FILE" && len(node.PrivateKey) > 0:
		return nil, refused("CREATE CERTIFICATE WITH PRIVATE KEY", "private keys do not leave their database")
	case t.keys == nil:
		return nil, refused("CREATE CERTIFICATE", atTheCommand)
	case node.From == "FILE":
		return t.importCertificate(node, scope)
	}
	return t.makeCertificate(node, scope)
}

// A validity is how long a certificate is valid, and its subject.
type validity struct {
	subject    *expression.Expression
	start, end *expression.Expression // nil where the batch does not say it
}

func (t *Translator) makeCertificate(node *ast.Certificate, scope expression.Scope) (*statement, *fault.Error) {
	var v validity
	for _, part := range []struct {
		name string
		into **expression.Expression
		as   value.Type
	}{
		{"SUBJECT", &v.subject, value.Sized(value.NVarChar, value.MaxUnicode)},
		{"START_DATE", &v.start, value.Of(value.DateTime)},
		{"EXPIRY_DATE", &v.end, value.Of(value.DateTime)},
	} {
		option := ast.FindOption(node.Options, part.name)
		if option == nil {
			continue
		}
		compiled, err := expression.CompileAs(option.Value, part.as, scope)
		if err != nil {
			return nil, err
		}
		*part.into = compiled
	}
	if v.subject == nil {
		return nil, fault.New(15212, maxSubject)
	}
	return t.inBroker("CREATE CERTIFICATE", func(ctx context.Context, frame *expression.Frame, sink session.Sink) *fault.Error {
		subject, start, end, warning, err := v.read(frame)
		if err != nil {
			return err
		}
		owner, err := t.ownerOf(ctx, node.Owner)
		if err != nil {
			return err
		}
		certificate, private, bad := t.keys.Make(subject, start, end)
		if bad != nil {
			return unsaid("CREATE CERTIFICATE", bad)
		}
		if err := t.install(ctx, node, owner, certificate, private); err != nil {
			return err
		}
		if node.Encryption != nil {
			if err := inform(sink, "ENCRYPTION BY PASSWORD", ofPasswords); err != nil {
				return err
			}
		}
		if warning != nil {
			if bad := sink.Message(warning); bad != nil {
				return connection.Fault(bad, "")
			}
		}
		return nil
	}), nil
}

// read gives subject and validity. Dates are those of UTC; without EXPIRY_DATE a certificate is valid for a year. One that has expired or
// is not valid yet is made all the same, with a warning.
func (v *validity) read(frame *expression.Frame) (subject string, start, end time.Time, warning, err *fault.Error) {
	text, err := v.subject.Evaluate(frame)
	if err != nil {
		return "", start, end, nil, err
	}
	if subject = text.Raw(); subject == "" || len(subject) > maxSubject {
		return "", start, end, nil, fault.New(15212, maxSubject)
	}
	now := time.Now().UTC().Truncate(time.Second)
	start = now.Add(-backDated)
	if v.start != nil {
		moment, err := v.start.Evaluate(frame)
		if err != nil {
			return "", start, end, nil, err
		}
		start = moment.Moment().Time()
	}
	end = now.AddDate(1, 0, 0)
	if v.start != nil {
		end = start.AddDate(1, 0, 0)
	}
	if v.end != nil {
		moment, err := v.end.Evaluate(frame)
		if err != nil {
			return "", start, end, nil, err
		}
		end = moment.Moment().Time()
		if v.start == nil && !start.Before(end) {
			start = end.Add(-backDated)
		}
	}
	switch {
	case !start.Before(end):
		return "", start, end, nil, fault.New(15213)
	case end.Before(now):
		warning = warned(15214)
	case start.After(now):
		warning = warned(15215)
	}
	return subject, start, end, warning, nil
}

// warned gives a message as a warning: it stops nothing.
func warned(number int) *fault.Error {
	m := fault.New(number)
	m.Severity = 10
	return m
}

func (t *Translator) importCertificate(node *ast.Certificate, scope expression.Scope) (*statement, *fault.Error) {
	file, err := expression.CompileAs(node.Source, value.Sized(value.NVarChar, value.MaxUnicode), scope)
	if err != nil {
		return nil, err
	}
	return t.inBroker("CREATE CERTIFICATE", func(ctx context.Context, frame *expression.Frame, _ session.Sink) *fault.Error {
		path, err := file.Evaluate(frame)
		if err != nil {
			return err
		}
		owner, err := t.ownerOf(ctx, node.Owner)
		if err != nil {
			return err
		}
		certificate, bad := t.keys.Import(path.Raw())
		switch {
		case errors.Is(bad, ErrNotRead):
			return fault.New(15208)
		case bad != nil:
			return unsaid("CREATE CERTIFICATE", bad)
		}
		return t.install(ctx, node, owner, certificate, nil)
	}), nil
}

// ownerOf gives the role of AUTHORIZATION, an empty name where it is not said.
func (t *Translator) ownerOf(ctx context.Context, name string) (string, *fault.Error) {
	if name == "" {
		return "", nil
	}
	return t.roleOf(ctx, name)
}

// install has the broker keep a certificate; private is nil for somebody else's.
func (t *Translator) install(ctx context.Context, node *ast.Certificate, owner string, certificate, private []byte) *fault.Error {
	_, err := t.askWith(ctx, truststore.CreateQuery, [][]byte{
		[]byte(node.Name), bytea(certificate), []byte(owner), bytea(private), truth(node.ActiveFor != "OFF"),
	})
	if err == nil {
		return nil
	}
	found := connection.Fault(err, "CREATE CERTIFICATE")
	if found.Number == 2714 {
		return fault.New(15232, node.Name)
	}
	return found
}

// bytea gives bytes as PostgreSQL writes them; nil for none.
func bytea(bytes []byte) []byte {
	if bytes == nil {
		return nil
	}
	return append([]byte(`\x`), hex.EncodeToString(bytes)...)
}

func truth(isTrue bool) []byte { return strconv.AppendBool(nil, isTrue) }

// alterCertificate compiles ALTER CERTIFICATE.
func (t *Translator) alterCertificate(node *ast.Certificate) (*statement, *fault.Error) {
	switch {
	case node.Removes != "":
		return nil, refused("ALTER CERTIFICATE REMOVE "+node.Removes, "drop the certificate")
	case node.ActiveFor == "":
		return t.informed("ALTER CERTIFICATE", ofPasswords), nil
	}
	return t.inBroker("ALTER CERTIFICATE", func(ctx context.Context, _ *expression.Frame, _ session.Sink) *fault.Error {
		_, err := t.askWith(ctx, truststore.AlterQuery, [][]byte{[]byte(node.Name), truth(node.ActiveFor == "ON"), nil})
		if err != nil {
			return absent(err, "alter", node.Name)
		}
		return nil
	}), nil
}

// dropCertificates compiles DROP CERTIFICATE.
func (t *Translator) dropCertificates(node *ast.Drop) *statement {
	return t.inBroker("DROP CERTIFICATE", func(ctx context.Context, _ *expression.Frame, _ session.Sink) *fault.Error {
		for _, name := range node.Names {
			_, err := t.ask(ctx, truststore.DropQuery, name.Object())
			if err == nil {
				continue
			}
			if found := absent(err, "drop", name.Object()); found.Number != 15151 || !node.IfExists {
				return found
			}
		}
		return nil
	})
}

// absent gives the error of a certificate that is not there with SQL Server's text.
func absent(err error, verb, name string) *fault.Error {
	found := connection.Fault(err, "CERTIFICATE")
	if found.Number == 15151 {
		return fault.New(15151, verb, "certificate", name)
	}
	return found
}

// backupCertificate compiles BACKUP CERTIFICATE: the public part goes to a file.
func (t *Translator) backupCertificate(node *ast.BackupCertificate, scope expression.Scope) (*statement, *fault.Error) {
	switch {
	case len(node.PrivateKey) > 0:
		return nil, refused("BACKUP CERTIFICATE WITH PRIVATE KEY", "private keys do not leave their database")
	case len(node.Options) > 0:
		return nil, refused("BACKUP CERTIFICATE WITH "+node.Options[0].Name, "the file has one form")
	case t.keys == nil:
		return nil, refused("BACKUP CERTIFICATE", atTheCommand)
	}
	file, err := expression.CompileAs(node.File, value.Sized(value.NVarChar, value.MaxUnicode), scope)
	if err != nil {
		return nil, err
	}
	return t.inBroker("BACKUP CERTIFICATE", func(ctx context.Context, frame *expression.Frame, _ session.Sink) *fault.Error {
		path, err := file.Evaluate(frame)
		if err != nil {
			return err
		}
		certificate, private, instance, err := t.exported(ctx, node.Name)
		if err != nil {
			return err
		}
		bad := t.keys.Export(path.Raw(), certificate, private, instance)
		switch {
		case errors.Is(bad, ErrNotWritten):
			return fault.New(15240, path.Raw())
		case bad != nil:
			return unsaid("BACKUP CERTIFICATE", bad)
		}
		return nil
	}), nil
}

// exported reads a certificate with its sealed keys, and the instance of the broker.
func (t *Translator) exported(ctx context.Context, name string) (certificate, private []byte, instance string, _ *fault.Error) {
	found, err := t.ask(ctx, truststore.ExportQuery, name)
	if err != nil {
		return nil, nil, "", connection.Fault(err, "BACKUP CERTIFICATE")
	}
	parts := append(strings.Fields(found), "", "", "")
	switch {
	case found == "":
		return nil, nil, "", fault.New(15151, "find", "certificate", name)
	case parts[2] == "":
		return nil, nil, "", fault.New(15246, name)
	}
	certificate, err = hex.DecodeString(parts[0])
	if err == nil {
		private, err = hex.DecodeString(parts[2])
	}
	if err != nil {
		return nil, nil, "", unsaid("BACKUP CERTIFICATE", err)
	}
	return certificate, private, parts[1], nil
}

// inBroker gives a statement on the certificates of dialogs. A database without a broker, as master mostly is, has those of links alone.
func (t *Translator) inBroker(construct string, run func(context.Context, *expression.Frame, session.Sink) *fault.Error) *statement {
	return &statement{run: func(ctx context.Context, frame *expression.Frame, sink session.Sink) *fault.Error {
		hasBroker, err := t.ask(ctx, "select to_regnamespace('parley') is not null")
		switch {
		case err != nil:
			return connection.Fault(err, construct)
		case hasBroker != "t":
			return inform(sink, construct, ofLinks)
		}
		return run(ctx, frame, sink)
	}}
}

// unsaid gives an error that SQL Server has no number for.
func unsaid(verb string, err error) *fault.Error {
	return &fault.Error{Number: 50000, Severity: 16, State: 1, Message: verb + ": " + err.Error()}
}
