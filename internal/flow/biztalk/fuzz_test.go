package biztalk_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/biztalk"
	"github.com/parley-broker/parley/internal/flow/definitions"
	"github.com/parley-broker/parley/internal/flow/fault"
)

// Any file is translated, or refused as a fault of its own. The definitions are read back, and each thing left out has a place and a remedy.
func FuzzImport(f *testing.F) {
	for _, text := range []string{
		"", "<BindingInfo/>", propertySchema, orderSchema, flatPipeline,
		string(bindings(location(`C:\a\*.xml`, transport("ReceiveLocationTransportType", "FILE")+pipelineOf("ReceivePipeline", xmlReceive))).Body),
		string(bindings(port("https://me:x@y/${Z}", transport("TransportType", "HTTP", "Password", "x"),
			filter(`<Group>`+statement("A.B.C", "0", "${X}")+statement("BTS.X", "6", "")+`</Group>`))).Body),
		string(bindings(port(`\\a\b\%MessageID%`, transport("TransportType", "WCF-WebHttp", "HttpMethodAndUrl",
			`<BtsHttpUrlMapping><Operation Method="PUT" Url="/x"/></BtsHttpUrlMapping>`), "")).Body),
		string(bindings(port("https://y$${A}", transport("TransportType", "HTTP"), "")).Body),
		string(bindings(port("SQL://x/y", transport("TransportType", "SQL", "AdapterConfig", "<Receive><sqlCommand>x</sqlCommand></Receive>"), "")).Body),
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		result, err := biztalk.Import([]biztalk.Source{{Name: "x.xml", Body: body}}, biztalk.Settings{})
		if err != nil {
			if found, is := fault.Of(err); !is || found.File != "x.xml" || found.Remedy == "" {
				t.Fatalf("%v is no fault of the file", err)
			}
			return
		}
		for _, o := range result.Omissions {
			if o.File == "" || o.Line < 1 || o.Column < 1 || o.What == "" || o.Why == "" || o.Instead == "" {
				t.Fatalf("%+v has no place, reason or remedy", o)
			}
		}
		written, err := definitions.WriteWith(result.Definitions, result.Variables)
		if err != nil {
			t.Fatal(err)
		}
		settings := definitions.Settings{Set: map[string]string{}}
		for name, value := range result.Variables {
			if value == nil {
				settings.Set[name] = "x"
			}
		}
		if _, err := definitions.Read([]definitions.Source{{Name: "x.yaml", Written: written}}, settings); err != nil {
			t.Fatalf("what is written is not read: %v\n%s", err, strings.TrimSpace(string(written)))
		}
	})
}
