package flatfile_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/flatfile"
	"github.com/parley-broker/parley/internal/flow/interchange"
	"github.com/parley-broker/parley/internal/flow/xsd"
)

// Any schema is compiled, or refused as a fault; by one that is compiled any file is read to an end.
func FuzzSchemasAreCompiled(f *testing.F) {
	for _, element := range fuzzed {
		f.Add([]byte(frame(element)), "PO1,a\nb\n1;2\n")
	}
	f.Fuzz(func(t *testing.T, body []byte, file string) {
		source, err := xsd.Parse("x.xsd", body, nil)
		if err != nil {
			return
		}
		schema, err := flatfile.Compile(source, flatfile.Settings{})
		if err != nil {
			if found, is := fault.Of(err); !is || found.Remedy == "" {
				t.Fatalf("the schema is refused as %v", err)
			}
			return
		}
		for _, recovery := range []interchange.Recovery{interchange.Nothing, interchange.Records} {
			if _, _, err := disassembled(t, schema, file, flatfile.ReadSettings{Recover: recovery}); err != nil {
				if found, is := fault.Of(err); !is || found.Remedy == "" {
					t.Fatalf("%q ends with %v, which is no fault with a remedy", file, err)
				}
			}
		}
	})
}
