package biztalk

import (
	"fmt"
	"strconv"
	"strings"
)

// translateBindings translates a binding file.
func (t *translation) translateBindings(root *node) {
	t.translateOrchestrations(root)
	receivePorts := root.all("ReceivePortCollection", "ReceivePort")
	sendPorts := root.all("SendPortCollection", "SendPort")
	// Filters name receive ports, wherever they stand.
	for _, port := range receivePorts {
		t.name(port, kindReceivePort, port.value("Name"))
	}
	for _, port := range receivePorts {
		t.translateReceivePort(port)
	}
	for _, port := range sendPorts {
		t.name(port, kindSendPort, port.value("Name"))
	}
	for _, port := range sendPorts {
		t.translateSendPort(port)
	}
	for _, group := range root.all("DistributionListCollection", "DistributionList") {
		t.translateGroup(group)
	}
	for _, party := range root.all("PartyCollection", "Party") {
		t.omit(party, "party", party.value("Name"), "the party", "there are no parties", "route by properties of messages and names of ports")
	}
}

// translateOrchestrations lists what is not translated, and which ports belong to it.
func (t *translation) translateOrchestrations(root *node) {
	const why, instead = "a binding file does not have it", "import its .odx file too, and bind its ports"
	services := append(root.all("ModuleRefCollection", "ModuleRef", "Services", "Service"),
		root.all("ModuleRefCollection", "ModuleRef", "ServiceRefCollection", "ServiceRef")...)
	for _, service := range services {
		name := service.value("Name", "FullName")
		if name == "" {
			continue // the place of an assembly that has none
		}
		t.omit(service, "orchestration", name, "the orchestration", why, instead)
		for _, port := range service.all("Ports", "Port") {
			if to := port.child("SendPortRef").value("Name"); to != "" {
				t.bound[to] = name
			}
			if from := port.child("ReceivePortRef").value("Name"); from != "" {
				t.omit(port, kindReceivePort, t.nameNow(kindReceivePort, from), "its subscription by orchestration "+name, why, instead)
			}
		}
	}
}

// omitStopping lists something without which a port would not do what it did.
func (t *translation) omitStopping(at *node, kind, name, what, why, instead string) {
	t.omit(at, kind, name, what, why, instead)
	t.omissions[len(t.omissions)-1].IsStopped = true
}

func (t *translation) translateReceivePort(port *node) {
	name := t.name(port, kindReceivePort, port.value("Name"))
	settings := object{"application": t.application(port)}
	t.describe(port, settings)
	if isTrue(port.value("RouteFailedMessage")) {
		settings["failed_message_routing"] = true
	}
	if !t.add(kindReceivePort, name, settings) {
		t.omit(port, kindReceivePort, name, "a second receive port of this name", "there is one", "rename one of the two before the export")
		return
	}
	isStopped := t.useMaps(port, kindReceivePort, name, settings)
	if written := port.value("Authentication"); written != "" && written != "0" {
		isStopped = true
		t.omitStopping(port, kindReceivePort, name, "the authentication of parties", "there are no parties",
			"let the adapter authenticate, then enable the locations")
	}
	locations, translated := append(port.all("ReceiveLocations", "ReceiveLocation"),
		port.all("ReceiveLocationCollection", "ReceiveLocation")...), []object{}
	for _, location := range locations {
		translated = append(translated, t.translateLocation(location, name, isStopped))
	}
	if isTrue(port.value("IsTwoWay")) {
		t.answerClients(port, name, settings, locations, translated)
	}
}

// describe takes over the text for people.
func (t *translation) describe(at *node, settings object) {
	if text := cut(strings.TrimSpace(at.value("Description")), 2000); text != "" {
		settings["description"] = text
	}
}

// translateLocation translates a location, and gives its settings.
func (t *translation) translateLocation(location *node, port string, isStopped bool) object {
	name := t.name(location, kindReceiveLocation, location.value("Name"))
	handler := location.child("ReceiveHandler")
	e := &endpoint{
		t: t, at: location, kind: kindReceiveLocation, name: name, isStopped: isStopped, settings: object{}, secrets: object{},
		adapter: location.child("ReceiveLocationTransportType").value("Name"), address: location.value("Address"),
	}
	for _, other := range []string{
		location.child("TransportType").value("Name"), handler.child("TransportType").value("Name"),
		location.value("ReceiveHandlerTransportType", "TransportType"),
	} {
		if e.adapter == "" {
			e.adapter = other
		}
	}
	e.readProperties(location, "ReceiveLocationTransportTypeData", "TransportTypeData")
	e.translate()
	settings := object{"receive_port": port, "host": t.host(location, handler), "adapter": e.adapter, "address": e.address}
	t.describe(location, settings)
	t.usePipeline(location, e, settings, "receive", []string{"ReceivePipeline", "ReceivePipelineName"}, "ReceivePipelineData")
	e.schedule(location, settings)
	settings["enabled"] = isTrue(location.value("Enable")) && !e.isStopped
	e.put(settings)
	if !t.add(kindReceiveLocation, name, settings) {
		t.omit(location, kindReceiveLocation, name, "a second receive location of this name", "there is one",
			"rename one of the two before the export")
	}
	return settings
}

func (t *translation) translateSendPort(port *node) {
	name := t.name(port, kindSendPort, port.value("Name"))
	primary := port.child("PrimaryTransport")
	if written := port.value("IsStatic"); written != "" && !isTrue(written) || primary == nil {
		t.translateDynamicPort(port, name)
		return
	}
	handler := primary.child("SendHandler")
	e := &endpoint{
		t: t, at: port, kind: kindSendPort, name: name, settings: object{}, secrets: object{},
		adapter: primary.child("TransportType").value("Name"), address: primary.value("Address"),
	}
	if e.adapter == "" {
		e.adapter = handler.child("TransportType").value("Name")
	}
	e.readProperties(primary, "TransportTypeData")
	e.translate()
	settings := object{"application": t.application(port), "host": t.host(port, handler), "adapter": e.adapter, "address": e.address}
	t.describe(port, settings)
	t.usePipeline(port, e, settings, "send", []string{"TransmitPipeline", "SendPipeline", "SendPipelineName"}, "SendPipelineData")
	e.isStopped = t.useMaps(port, kindSendPort, name, settings) || e.isStopped
	t.deliver(port, primary, e, settings)
	groups, isWhole := t.filter(port, kindSendPort, name)
	if len(groups) > 0 {
		settings["filter"] = groups
	}
	if !isWhole {
		e.isStopped = true
	}
	if orchestration := t.bound[port.value("Name")]; orchestration != "" {
		t.omit(port, kindSendPort, name, "what orchestration "+orchestration+" sends to it", "the orchestration names it",
			"write {send_port: NAME} under ports of the orchestration")
	}
	if e.isStopped {
		settings["state"] = "Bound"
	}
	e.put(settings)
	if !t.add(kindSendPort, name, settings) {
		t.omit(port, kindSendPort, name, "a second send port of this name", "there is one", "rename one of the two before the export")
	}
}

// deliver translates how messages are sent: order, priority, retries, failures.
func (t *translation) deliver(port, primary *node, e *endpoint, settings object) {
	if isTrue(port.value("IsTwoWay")) {
		t.takeAnswers(port, e, settings)
	}
	if isTrue(port.value("RouteFailedMessage")) {
		settings["failed_message_routing"] = true
	}
	if isTrue(port.value("OrderedDelivery")) || isTrue(primary.value("OrderedDelivery")) {
		// A message that cannot be sent is suspended, and the next ones go on, unless the port says that it stops.
		settings["ordered"], settings["on_failure"] = true, "park"
		if isTrue(port.value("StopSendingOnFailure")) {
			settings["on_failure"] = "stop"
		}
	}
	if priority, err := strconv.Atoi(port.value("Priority")); err == nil && priority >= 1 && priority <= 10 && priority != 5 {
		settings["priority"] = priority
	}
	if policy := t.retryPolicy(primary.value("RetryCount"), primary.value("RetryInterval")); policy != "" {
		settings["retry_policy"] = policy
	}
	e.schedule(primary, settings)
	if backup := port.child("SecondaryTransport"); backup.value("Address") != "" {
		t.omit(backup, kindSendPort, e.name, "the backup transport "+backup.value("Address"), "there are none yet",
			"route failed messages, and let a second port get them by ErrorReport.SendPortName")
	}
	if certificate := port.child("EncryptionCert"); certificate.value("ThumbPrint", "LongName", "ShortName") != "" {
		e.stop(certificate, "the certificate for encryption", "nothing encrypts messages", "send by a transport that encrypts, such as HTTPS")
	}
}

// retryPolicy makes the policy of a number of retries and minutes between them, and gives its name; empty for the default.
func (t *translation) retryPolicy(count, minutes string) string {
	times, err := strconv.Atoi(count)
	if err != nil {
		times = 3
	}
	interval, err := strconv.Atoi(minutes)
	if err != nil {
		interval = 5
	}
	times, interval = min(max(times, 0), 1000), min(max(interval, 0), 525_600)
	if times == 3 && interval == 5 {
		return ""
	}
	settings := object{"count": times, "interval": fmt.Sprintf("%d minutes", interval)}
	name := fmt.Sprintf("%d times, %d minutes apart", times, interval)
	switch {
	case times > 0 && interval == 1:
		settings["interval"], name = "1 minute", fmt.Sprintf("%d times, a minute apart", times)
	case times == 0:
		settings, name = object{"count": 0}, "never again"
	case interval == 0:
		settings["interval"] = "1 second"
	case interval > 24*60:
		settings["max_interval"] = settings["interval"]
	}
	t.add(kindRetryPolicy, name, settings)
	return name
}

func (t *translation) translateGroup(group *node) {
	name := t.name(group, kindSendPortGroup, group.value("Name"))
	settings := object{"application": t.application(group)}
	t.describe(group, settings)
	ports := []any{}
	for _, ref := range group.all("SendPorts", "SendPortRef") {
		port := t.nameNow(kindSendPort, ref.value("Name"))
		if t.objects[kindSendPort][port] == nil {
			t.omit(ref, kindSendPortGroup, name, "send port "+port, "the definitions do not have it", "define the port, and add it to the group")
			continue
		}
		ports = append(ports, port)
	}
	settings["ports"] = ports
	groups, isWhole := t.filter(group, kindSendPortGroup, name)
	if len(groups) > 0 {
		settings["filter"] = groups
	}
	if !isWhole {
		settings["state"] = "Bound"
	}
	if !t.add(kindSendPortGroup, name, settings) {
		t.omit(group, kindSendPortGroup, name, "a second group of this name", "there is one", "rename one of the two before the export")
	}
}
