package process_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/definitions"
	"github.com/parley-broker/parley/internal/flow/process"
)

// Names of the tests.
const (
	orderType  = "http://shop.example/orders#Order"
	answerType = "http://stock.example#Answer"
	numberName = "http://shop.example/properties#PoNumber"
	stateName  = "http://shop.example/properties#State"
)

var known = process.Known{
	Orchestrations: map[string]json.RawMessage{},
	Properties: map[string]string{
		"ErrorReport.ErrorType": "text", "ErrorReport.FailureCode": "text",
		numberName: "text", stateName: "text", "urn:shop#State": "text", "urn:p#N": "integer", "urn:p#Sum": "number", "MessageType": "text",
		"ReceivePortName": "text", "MessageID": "integer", "CorrelationToken": "text",
	},
	MessageTypes: map[string]bool{orderType: true, answerType: true, "Ask": true},
	Maps:         map[string]bool{"OrderToAsk": true},
	SendPorts:    map[string]bool{"Stock": true, "ERP": true},
	ReceivePorts: map[string]bool{"Stock in": true},
}

// read gives the orchestrations of a text of YAML.
func read(t testing.TB, written string) map[string]json.RawMessage {
	t.Helper()
	document, err := definitions.Read([]definitions.Source{{Name: "test.yaml", Written: []byte(written)}}, definitions.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	whole, err := document.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var kinds map[string]map[string]json.RawMessage
	if err := json.Unmarshal(whole, &kinds); err != nil {
		t.Fatal(err)
	}
	return kinds["orchestration"]
}

func compileIn(t testing.TB, all map[string]json.RawMessage, name string) (*process.Program, []process.Problem) {
	t.Helper()
	beside := known
	beside.Orchestrations = all
	return process.Compile(name, all[name], beside)
}

// declared begins an orchestration with the names that tests use.
const declared = `
orchestration:
  P:
    application: A
    host: H
    messages: {order: "` + orderType + `", answer: "` + answerType + `", ask: any, line: any}
    variables: {total: number, count: integer, name: text, found: list, thing: any, at: timestamp, span: duration, is: boolean}
    correlations: {number: ["` + numberName + `"]}
    ports: {stock: {send_port: Stock}, news: {}}
    body:
`

// withBody gives an orchestration P whose shapes are those of a text of YAML, indented as it is.
func withBody(body string) string {
	indented := []string{}
	for line := range strings.SplitSeq(strings.Trim(body, "\n"), "\n") {
		indented = append(indented, "      "+strings.ReplaceAll(line, "\t", "  "))
	}
	return declared + strings.Join(indented, "\n") + "\n"
}

const begins = "- receive: {message: order, activate: true, initialise: [number]}\n"

func program(t testing.TB, written string) *process.Program {
	t.Helper()
	all := read(t, written)
	names := slices.Sorted(maps.Keys(all))
	p, problems := compileIn(t, all, names[0])
	for _, problem := range problems {
		t.Errorf("%s (%s)", problem, problem.Remedy)
	}
	if len(problems) > 0 {
		t.FailNow()
	}
	return p
}
