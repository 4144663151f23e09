package pipeline_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/pipeline"
)

func TestASchemaThatAsksForMoreThanIsCheckedIsRefusedWhenThePipelineIsCompiled(t *testing.T) {
	t.Parallel()
	named := `{"validate": [{"component": "xml-validator", "settings": {"documents": ["urn:env#Batch"]}}]}`
	_, err := pipeline.CompileReceive(defined(t, "receive", named), types(t, messageTypes()), nil)
	if err == nil || !strings.Contains(err.Error(), "the content of elements that a wildcard takes is not checked") {
		t.Errorf("it is compiled with %v", err)
	}
	receive(t, strings.Replace(named, `{"documents"`, `{"allow_unchecked": true, "documents"`, 1))

	// A type that the pipeline does not name is found with the message.
	all := `{"disassemble": [{"component": "xml-disassembler", "settings": {"envelopes": []}}], "validate": [{"component": "xml-validator"}]}`
	batch := `<e:Batch xmlns:e="urn:env"><a/></e:Batch>`
	_, err = run(t, receive(t, all), body(batch))
	requireFailure(t, err, "receive.validate", "asks for more: the content of elements that a wildcard takes is not checked")
	allowed := strings.Replace(all, `"xml-validator"`, `"xml-validator", "settings": {"allow_unchecked": true}`, 1)
	if c, err := run(t, receive(t, allowed), body(batch)); err != nil || len(c.good) != 1 {
		t.Errorf("where it is allowed: %v", err)
	}
}
