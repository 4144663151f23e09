package biztalk

// translateDynamicPort translates a port of which each message says where it goes. Which adapters and addresses it may name has to be
// said here, and who sets the property.
func (t *translation) translateDynamicPort(port *node, name string) {
	e := &endpoint{t: t, at: port, kind: kindSendPort, name: name, settings: object{"adapters": object{"HTTP": object{}}}, secrets: object{}}
	settings := object{
		"application": t.application(port), "host": t.host(port, port.child("SendHandler")), "adapter": "Dynamic", "address": "https://*",
		"state": "Bound",
	}
	t.describe(port, settings)
	t.usePipeline(port, e, settings, "send", []string{"TransmitPipeline", "SendPipeline", "SendPipelineName"}, "SendPipelineData")
	t.useMaps(port, kindSendPort, name, settings)
	if groups, _ := t.filter(port, kindSendPort, name); len(groups) > 0 {
		settings["filter"] = groups
	}
	e.stop(port, "where messages may go", "a dynamic port names the adapters and the beginning of the addresses",
		"say them in address and adapters; the property Transport.Address has the address, or the one that address_property names")
	e.put(settings)
	if !t.add(kindSendPort, name, settings) {
		t.omit(port, kindSendPort, name, "a second send port of this name", "there is one", "rename one of the two before the export")
	}
}
