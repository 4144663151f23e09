package host_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/sqltest"
	"github.com/parley-broker/parley/parleytest"
)

const linesSchema = `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:b="http://schemas.microsoft.com/BizTalk/2003" targetNamespace="urn:file">
<xs:annotation><xs:appinfo><b:schemaInfo standard="Flat File" root_reference="File"/></xs:appinfo></xs:annotation>
<xs:element name="File"><xs:annotation><xs:appinfo><b:recordInfo structure="delimited" child_delimiter_type="hex" child_delimiter="0x0A"
 child_order="postfix"/></xs:appinfo></xs:annotation><xs:complexType><xs:sequence><xs:element name="Line" maxOccurs="unbounded"><xs:annotation>
<xs:appinfo><b:recordInfo structure="delimited" child_delimiter_type="char" child_delimiter=";" child_order="infix"/></xs:appinfo></xs:annotation>
<xs:complexType><xs:sequence><xs:element name="No" type="xs:int"/><xs:element name="Name" type="xs:string"/></xs:sequence></xs:complexType>
</xs:element></xs:sequence></xs:complexType></xs:element></xs:schema>`

// Bad records are suspended one by one while the message around them is being written, which has all others.
func TestBadRecordsAreSuspendedAndTheMessageAroundThemGoesOn(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	documents, err := json.Marshal(map[string]string{"lines.xsd": linesSchema})
	if err != nil {
		t.Fatal(err)
	}
	e.apply(fmt.Sprintf(`{
		"message type": {"urn:file#File": {"application": "Orders", "schema": {"file": "lines.xsd", "documents": %s}}},
		"pipeline": {"Lines": {"application": "Orders", "direction": "receive", "stages": {"disassemble": [
			{"component": "flat-file-disassembler", "settings": {"document": "urn:file#File", "validate": true, "recover_records": true}}]}}},
		"receive location": {"Source": {"receive_port": "In", "host": "Receive", "adapter": "FAKE", "address": "source", "pipeline": "Lines"}}
	}`, documents))
	e.serve()
	var file strings.Builder
	for i := range 20_000 {
		if i%5000 == 4999 {
			fmt.Fprintf(&file, "x%d;bad\n", i)
		} else {
			fmt.Fprintf(&file, "%d;good\n", i)
		}
	}
	results := e.take(file.String())
	if results[0].Outcome != adapter.Suspended || results[0].Messages != 5 {
		t.Errorf("the result is %+v", results[0])
	}
	sent := e.untilSent(1)
	if good := strings.Count(sent[0], "<Line>"); good != 19_996 || !strings.HasSuffix(sent[0], "File>") || strings.Contains(sent[0], "bad") {
		t.Errorf("the message has %d records and %d bytes", good, len(sent[0]))
	}
	sqltest.Equal(e.Session, "x4999;bad x9999;bad x14999;bad x19999;bad", `
		select string_agg(rtrim(convert_from(m.body, 'UTF8'), E'\n'), ' ' order by m.message_id)
		from parley_flow._p_suspended as s join parley_flow._p_message as m using (message_id)`)
}

func TestTheLastErrorOfAPortIsOverOnceItHasSentSomething(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	e.port("Out", `{"ordered": true, "order_key": "urn:p#Key"}`)
	e.destination("Out", failsWith(adapter.Failure{Code: "send.transport", Err: errors.New("nobody listens"), Unreachable: true}))
	e.serve()
	e.take("a")
	const isFailing = `select coalesce(bool_or(last_error = $1 and last_error_at > clock_timestamp() - interval '1 hour' and recovered_at is null), false)
		from parley_flow.send_ports where name = 'Out'`
	const isOver = `select coalesce(bool_or(last_error = $1 and recovered_at > last_error_at), false) from parley_flow.send_ports where name = 'Out'`
	parleytest.Until(t, "the error is shown", func() bool { return sqltest.Value[bool](e.Session, isFailing, "nobody listens") })
	e.destination("Out", e.record("Out"))
	e.untilSent(1)
	parleytest.Until(t, "the error is over", func() bool { return sqltest.Value[bool](e.Session, isOver, "nobody listens") })
	e.untilEmpty()
	// A failure of one message is an error of the port too.
	e.port("Out", `{}`)
	e.destination("Out", failsWith(adapter.Failure{Code: "send.refused", Err: errors.New("no such order"), Permanent: true}))
	e.take("b")
	parleytest.Until(t, "the second error is shown", func() bool { return sqltest.Value[bool](e.Session, isFailing, "no such order") })
	e.destination("Out", e.record("Out"))
	e.take("c")
	parleytest.Until(t, "the second error is over", func() bool { return sqltest.Value[bool](e.Session, isOver, "no such order") })
}

func TestASuccessOfOneNodeEndsTheErrorThatAnotherHasMet(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	e.serve()
	e.take("a")
	e.untilSent(1)
	e.Exec("select parley_flow._p_record_port_failure(send_port_id, 'elsewhere') from parley_flow._p_send_port where name = 'Out'")
	parleytest.Until(t, "the error is over", func() bool {
		e.take("b")
		return sqltest.Value[bool](e.Session, "select recovered_at is not null from parley_flow.send_ports where name = 'Out'")
	})
}
