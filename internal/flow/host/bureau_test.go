package host_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/parley-broker/parley/internal/flow/host"
	"github.com/parley-broker/parley/internal/flow/mapping"
	"github.com/parley-broker/parley/internal/flow/mapping/mappingtest"
	"github.com/parley-broker/parley/parleytest"
)

// bureau has clients that wait at a receive port with maps of both directions, an orchestration that answers them, which asks by a send
// port with maps of both directions and has a dynamic port deliver a copy where its expression says.
const bureau = `{
	"message type": {
		"Order": {"application": "Desk", "format": "json"}, "Question": {"application": "Desk", "format": "json"},
		"Asked": {"application": "Desk", "format": "json"}, "Told": {"application": "Desk", "format": "json"},
		"Said": {"application": "Desk", "format": "json"}, "Reply": {"application": "Desk", "format": "json"}
	},
	"map": {"In": $in, "Ask": $ask, "Tell": $tell, "Out": $out},
	"pipeline": {
		"Orders": {"application": "Desk", "direction": "receive", "stages": {"disassemble": [{"component": "json-disassembler", "settings": {"type": "Order"}}]}},
		"Tellings": {"application": "Desk", "direction": "receive", "stages": {"disassemble": [{"component": "json-disassembler", "settings": {"type": "Told"}}]}}
	},
	"receive port": {"Bureau": {"application": "Desk", "responds": true, "response_timeout": "1 minute", "maps": ["In"], "response_maps": ["Out"]}},
	"receive location": {"Bureau": {"receive_port": "Bureau", "host": "Receive", "adapter": "HTTP", "address": "$bureau", "pipeline": "Orders",
		"settings": {"authentication": "none"}}},
	"send port": {
		"Oracle": {"application": "Desk", "host": "Send", "adapter": "HTTP", "address": "$oracle/oracle", "responds": true, "response_pipeline": "Tellings",
			"maps": ["Ask"], "response_maps": ["Tell"], "retry_policy": "never"},
		"Anywhere": {"application": "Desk", "host": "Send", "adapter": "Dynamic", "address": "$oracle/*", "settings": {"adapters": {"HTTP": {}}}, "retry_policy": "never"}
	},
	"orchestration": {"Bureau": {"application": "Desk", "host": "Send", "retry_policy": "never",
		"messages": {"question": "Question", "said": "Said", "copy": "any"}, "ports": {"oracle": {"send_port": "Oracle"}, "anywhere": {"send_port": "Anywhere"}},
		"activations": [{"receive": "0", "filter": [[{"property": "MessageType", "operator": "=", "value": "Question"}]], "convoy": []}],
		"body": [
			{"receive": {"message": "question", "activate": true}},
			{"scope": {"correlations": {"asked": ["CorrelationToken"]}, "do": [
				{"send": {"message": "question", "port": "oracle", "initialise": ["asked"]}},
				{"receive": {"message": "said", "follow": ["asked"]}}
			]}},
			{"construct": {"message": "copy", "from": "said", "properties": {"Transport.Address": "'$oracle/copies/' + question.json().q"}}},
			{"send": {"message": "copy", "port": "anywhere"}},
			{"send": {"message": "said", "answers": "question"}}
		]}}
}`

// An orchestration answers a request of HTTP. Each port maps what goes through it in both directions, and a dynamic port sends where the
// orchestration says.
func TestAnOrchestrationAnswersARequest(t *testing.T) {
	t.Parallel()
	jq := mappingtest.JQ(t)
	e, address, _ := newDesk(t, "1 minute", func(c *host.Config) { c.Maps = mapping.PoolConfig{JQ: jq, Workers: 1} })
	var mu sync.Mutex
	got := map[string]string{}
	oracle := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		got[r.URL.Path] = string(body)
		mu.Unlock()
		if r.URL.Path == "/oracle" {
			_, _ = io.WriteString(w, strings.Replace(string(body), "asked", "told", 1))
		}
	}))
	t.Cleanup(oracle.Close)
	bureauAddress := strings.TrimSuffix(address, "desk") + "bureau"
	program := func(text, source, target string) string {
		return fmt.Sprintf(`{"application": "Desk", "language": "jq", "source": %q, "target": %q, "program": {"file": "m.jq", "documents": {"m.jq": %q}}}`,
			source, target, text)
	}
	e.apply(strings.NewReplacer("$bureau", bureauAddress, "$oracle", oracle.URL, "$in", program("{q: .order}", "Order", "Question"),
		"$ask", program("{asked: .q}", "Question", "Asked"), "$tell", program("{said: (.told + \"!\")}", "Told", "Said"),
		"$out", program("{reply: .said}", "Said", "Reply")).Replace(bureau))
	var answer reply
	parleytest.Until(t, "the bureau answers", func() bool {
		answer = ask(t.Context(), bureauAddress, "", `{"order": "seven"}`)
		return answer.err == nil && answer.status != http.StatusNotFound
	})
	if answer.status != http.StatusOK || strings.TrimSpace(answer.body) != `{"reply":"seven!"}` {
		t.Errorf("the client got %d %q", answer.status, answer.body)
	}
	parleytest.Until(t, "the copy is there", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return got["/copies/seven"] != ""
	})
	e.untilOver(0)
	e.untilNone("parley_flow._p_instance")
	if got["/oracle"] != `{"asked":"seven"}` || got["/copies/seven"] != `{"said":"seven!"}` {
		t.Errorf("sent were %v", got)
	}
}
