package biztalk_test

import (
	"strings"
	"testing"
)

// Ports that have answers respond by HTTP, with the pipeline of the answers. By other adapters they are stopped, and listed.
func TestPortsWithAnswersRespond(t *testing.T) {
	t.Parallel()
	twoWay := func(text string) string { return strings.Replace(text, `IsTwoWay="false"`, `IsTwoWay="true"`, 1) }
	in := twoWay(location("http://localhost/orders", transport("ReceiveLocationTransportType", "HTTP")+
		pipelineOf("ReceivePipeline", "Microsoft.BizTalk.DefaultPipelines.XMLReceive")+pipelineOf("SendPipeline", "Microsoft.BizTalk.DefaultPipelines.XMLTransmit")))
	out := twoWay(port("http://erp/orders", transport("TransportType", "HTTP"),
		pipelineOf("TransmitPipeline", "Microsoft.BizTalk.DefaultPipelines.XMLTransmit")+pipelineOf("ReceivePipeline", "Microsoft.BizTalk.DefaultPipelines.XMLReceive")))
	result := imported(t, bindings(in+out))
	if got := object(t, result, "receive port", "In"); !strings.Contains(got, `"responds":true`) || !strings.Contains(got, `"response_pipeline":"XMLTransmit"`) {
		t.Errorf("the receive port is %s", got)
	}
	if got := object(t, result, "send port", "Out"); !strings.Contains(got, `"responds":true`) || !strings.Contains(got, `"response_pipeline":"XMLReceive"`) {
		t.Errorf("the send port is %s", got)
	}
	result = imported(t, bindings(twoWay(location(`C:\in\*.xml`, transport("ReceiveLocationTransportType", "FILE")))+
		twoWay(port(`C:\out\x.xml`, transport("TransportType", "FILE"), ""))))
	if got := object(t, result, "receive location", "Folder"); !strings.Contains(got, `"enabled":false`) {
		t.Errorf("the location is %s", got)
	}
	if got := object(t, result, "send port", "Out"); !strings.Contains(got, `"state":"Bound"`) || strings.Contains(got, "responds") {
		t.Errorf("the send port is %s", got)
	}
}
