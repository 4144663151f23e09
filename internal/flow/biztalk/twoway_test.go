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

// The maps of answers stand apart from those of requests: a receive port names them as outbound, a send port as inbound. A map whose compiled
// file is missing stops the port, since answers would go out as they are.
func TestMapsOfAnswersAreImported(t *testing.T) {
	t.Parallel()
	twoWay := func(text string) string { return strings.Replace(text, `IsTwoWay="false"`, `IsTwoWay="true"`, 1) }
	transforms := func(collection, class string) string {
		return "<" + collection + `><Transform FullName="` + class + `" AssemblyQualifiedName="` + class + `, M, Version=1"/></` + collection + ">"
	}
	in := strings.Replace(twoWay(location("http://localhost/orders", transport("ReceiveLocationTransportType", "HTTP"))), "</ReceiveLocations>",
		"</ReceiveLocations>"+transforms("OutboundTransforms", "M.OrderToInvoice"), 1)
	out := twoWay(port("http://erp/orders", transport("TransportType", "HTTP"), transforms("InboundTransforms", "M.OrderToInvoice")))
	result := imported(t, bindings(in+out), compiledMap("string(A)"))
	for kind, name := range map[string]string{"receive port": "In", "send port": "Out"} {
		if got := object(t, result, kind, name); !strings.Contains(got, `"response_maps":["M.OrderToInvoice"]`) || strings.Contains(got, `"maps"`) {
			t.Errorf("the %s is %s", kind, got)
		}
	}
	both := twoWay(port("http://erp/orders", transport("TransportType", "HTTP"), transforms("Transforms", "M.OrderToInvoice")+transforms("InboundTransforms", "M.Gone")))
	result = imported(t, bindings(both), compiledMap("string(A)"))
	if got := object(t, result, "send port", "Out"); strings.Contains(got, "response_maps") || !strings.Contains(got, `"maps":["M.OrderToInvoice"]`) ||
		!strings.Contains(got, `"state":"Bound"`) {
		t.Errorf("with a map of answers that is missing the port is %s", got)
	}
}
