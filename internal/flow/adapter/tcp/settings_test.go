package tcp

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/adapter/adaptertest"
)

func TestThePageOfAdaptersSaysWhatTheCodeDoes(t *testing.T) {
	t.Parallel()
	secrets := []string{certificateSecret, keySecret, authoritySecret}
	adaptertest.CheckPage(t, Kind, adapter.Receive, receiveDefaults(), secrets...)
	adaptertest.CheckPage(t, Kind, adapter.Send, sendDefaults(), secrets...)
	adaptertest.CheckExamples(t, Kind)
}

func TestDefinitionsThatAreWrongAreSaid(t *testing.T) {
	t.Parallel()
	both := []string{certificateSecret, keySecret}
	for _, c := range []struct {
		direction         adapter.Direction
		address, settings string
		secrets           []string
		want              string // path, and a part of message and remedy
	}{
		{adapter.Receive, "127.0.0.1:9000", `{"prefix_bytes": 8}`, nil, ""},
		{adapter.Receive, "127.0.0.1:9000", `{"tls": true}`, both, ""},
		{adapter.Receive, ":9000", `{}`, nil, "address: 0.0.0.0:9000"},
		{adapter.Receive, "127.0.0.1", `{}`, nil, "address: not host:port"},
		{adapter.Receive, "127.0.0.1:http", `{}`, nil, "address: number of a port"},
		{adapter.Receive, "127.0.0.1:9000", `{"framing": "xml"}`, nil, "settings framing: length, plain, line"},
		{adapter.Receive, "127.0.0.1:9000", `{"prefix_bytes": 3}`, nil, "settings prefix_bytes: 2, 4 or 8"},
		{adapter.Receive, "127.0.0.1:9000", `{"prefix_bytes": 2}`, nil, "settings max_size: at most 64524"},
		{adapter.Receive, "127.0.0.1:9000", `{"max_size": 100000000}`, nil, "settings max_size: from 1 to 67108864"},
		{adapter.Receive, "127.0.0.1:9000", `{"in_flight": 0}`, nil, "settings in_flight: from 1"},
		{adapter.Receive, "127.0.0.1:9000", `{"max_connections": 0}`, nil, "settings max_connections: from 1"},
		{adapter.Receive, "127.0.0.1:9000", `{"idle_timeout": "0 seconds"}`, nil, "settings idle_timeout: at least"},
		{adapter.Receive, "127.0.0.1:9000", `{"frame_timeout": "0 seconds"}`, nil, "settings frame_timeout: at least"},
		{adapter.Receive, "127.0.0.1:9000", `{"lanes": 100}`, nil, "settings lanes: from 1 to 64"},
		{adapter.Receive, "127.0.0.1:9000", `{"batch_count": 0}`, nil, "settings batch_count: from 1"},
		{adapter.Receive, "127.0.0.1:9000", `{"batch_bytes": 0}`, nil, "settings batch_bytes: from 1"},
		{adapter.Receive, "127.0.0.1:9000", `{"timeout": "1 second"}`, nil, "settings timeout: Its settings are framing"},
		{adapter.Receive, "127.0.0.1:9000", `{"tls": true}`, nil, "secrets: certificate is missing"},
		{adapter.Receive, "127.0.0.1:9000", `{"tls": true, "client_certificates": true}`, both, "secrets: authority is missing"},
		{adapter.Receive, "127.0.0.1:9000", `{"client_certificates": true}`, nil, "settings client_certificates: Set tls to true"},
		{adapter.Receive, "127.0.0.1:9000", `{}`, both, "secrets certificate: Set tls to true"},
		{adapter.Receive, "127.0.0.1:9000", `{"tls": true}`, append(both, "password"), "secrets password: Its secrets are"},
		{adapter.Send, "erp.example:9000", `{"tls": true, "server_name": "erp"}`, []string{authoritySecret}, ""},
		{adapter.Send, "erp.example:0", `{}`, nil, "address: erp.example:9000"},
		{adapter.Send, "erp.example:9000", `{"server_name": "erp"}`, nil, "settings server_name: Set tls to true"},
		{adapter.Send, "erp.example:9000", `{"connections": 0}`, nil, "settings connections: from 1"},
		{adapter.Send, "erp.example:9000", `{"in_flight": 0}`, nil, "settings in_flight: from 1"},
		{adapter.Send, "erp.example:9000", `{"timeout": "0 seconds"}`, nil, "settings timeout: at least"},
		{adapter.Send, "erp.example:9000", `{"connect_timeout": "0 seconds"}`, nil, "settings connect_timeout: at least"},
		{adapter.Send, "erp.example:9000", `{"key_prefix": "\u0000"}`, nil, "settings key_prefix: at most 500 bytes"},
		{adapter.Send, "erp.example:9000", `{"keys": "yes"}`, nil, "settings keys: true or false"},
		{adapter.Send, "erp.example:9000", `{"tls": true}`, []string{certificateSecret}, "secrets: private_key is missing"},
	} {
		problems := Kind.Check(c.direction, c.address, json.RawMessage(c.settings), c.secrets)
		if c.want == "" {
			if problems != nil {
				t.Errorf("%s %s: %+v", c.address, c.settings, problems)
			}
			continue
		}
		path, part, _ := strings.Cut(c.want, ": ")
		if !slices.ContainsFunc(problems, func(p adapter.Problem) bool {
			return strings.Join(p.Path, " ") == path && strings.Contains(p.Message+" "+p.Remedy, part) && p.Remedy != ""
		}) {
			t.Errorf("%s %s: %+v, and not %s", c.address, c.settings, problems, c.want)
		}
	}
}
