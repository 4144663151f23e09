package biztalk_test

import (
	"bytes"
	"encoding/json"
	"html"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/parley-broker/parley/internal/flow/biztalk"
	"github.com/parley-broker/parley/internal/flow/definitions"
	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/sqltest"
)

// withRole gives all hosts of definitions a role.
func withRole(t *testing.T, content json.RawMessage, role string) json.RawMessage {
	t.Helper()
	var all map[string]map[string]map[string]any
	if err := json.Unmarshal(content, &all); err != nil {
		t.Fatal(err)
	}
	for _, settings := range all["host"] {
		settings["role"] = role
	}
	written, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return written
}

// transport names the adapter of a port or location, with its properties, names and values in turn.
func transport(tag, adapter string, properties ...string) string {
	data := "<CustomProps>"
	for i := 0; i+1 < len(properties); i += 2 {
		data += "<" + properties[i] + ` vt="8">` + html.EscapeString(properties[i+1]) + "</" + properties[i] + ">"
	}
	data += "</CustomProps>"
	return "<" + tag + ` Name="` + adapter + `"/><` + tag + "Data>" + html.EscapeString(data) + "</" + tag + "Data>"
}

// pipelineOf names a pipeline.
func pipelineOf(tag, class string) string {
	return "<" + tag + ` Name="` + class + `" FullyQualifiedName="` + class + `, Some.Assembly, Version=1.0.0.0"/>`
}

// location is a receive port with a location.
func location(address, content string) string {
	return `<ReceivePortCollection><ReceivePort Name="In" IsTwoWay="false"><ApplicationName>Orders</ApplicationName><ReceiveLocations>
<ReceiveLocation Name="Folder"><Address>` + html.EscapeString(address) + `</Address><Enable>true</Enable>` + content +
		`<ReceiveHandler Name="Receiver"/></ReceiveLocation></ReceiveLocations></ReceivePort></ReceivePortCollection>`
}

// port is a send port; more stands beside its transport.
func port(address, content, more string) string {
	return `<SendPortCollection><SendPort Name="Out" IsStatic="true" IsTwoWay="false"><ApplicationName>Orders</ApplicationName>` +
		`<PrimaryTransport><Address>` + html.EscapeString(address) + `</Address>` + content +
		`<SendHandler Name="Sender"/></PrimaryTransport>` + more + `</SendPort></SendPortCollection>`
}

// filter is a filter as files have it: XML as text.
func filter(groups string) string {
	return "<Filter>" + html.EscapeString(`<?xml version="1.0" encoding="utf-16"?><Filter>`+groups+`</Filter>`) + "</Filter>"
}

func statement(property, operator, value string) string {
	return `<Statement Property="` + property + `" Operator="` + operator + `" Value="` + value + `"/>`
}

func bindings(content string) biztalk.Source {
	return biztalk.Source{Name: "bindings.xml", Body: []byte(`<?xml version="1.0"?><BindingInfo Version="3.5">` + content + `</BindingInfo>`)}
}

func imported(t *testing.T, sources ...biztalk.Source) *biztalk.Result {
	t.Helper()
	texts := map[string]string{}
	for _, source := range sources {
		texts[source.Name] = string(source.Body)
	}
	carry := func(file string) (map[string]string, error) {
		return map[string]string{file[strings.LastIndexAny(file, `\/`)+1:]: texts[file]}, nil
	}
	result, err := biztalk.Import(sources, biztalk.Settings{Carry: carry})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// object gives the settings of an object, as JSON with sorted keys.
func object(t *testing.T, result *biztalk.Result, kind, name string) string {
	t.Helper()
	var all map[string]map[string]any
	if err := json.Unmarshal(result.Definitions, &all); err != nil {
		t.Fatal(err)
	}
	if all[kind][name] == nil {
		t.Fatalf("there is no %s %q in %s", kind, name, result.Definitions)
	}
	if settings, is := all[kind][name].(map[string]any); is {
		if schema, has := settings["schema"].(map[string]any); has {
			delete(schema, "documents")
		}
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(all[kind][name]); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(text.String())
}

func requireObject(t *testing.T, result *biztalk.Result, kind, name, want string) {
	t.Helper()
	if got := object(t, result, kind, name); got != want {
		t.Errorf("%s %q is\n%s\nand not\n%s", kind, name, got, want)
	}
}

// requireOmission asks that something is in the list, with a place and a remedy.
func requireOmission(t *testing.T, result *biztalk.Result, what string, isStopped bool) {
	t.Helper()
	for _, o := range result.Omissions {
		if o.File == "" || o.Line < 1 || o.Column < 1 || o.Why == "" || o.Instead == "" || o.Kind == "" {
			t.Errorf("%+v has no place, reason or remedy", o)
		}
	}
	if !slices.ContainsFunc(result.Omissions, func(o biztalk.Omission) bool {
		return strings.Contains(o.String(), what) && o.IsStopped == isStopped
	}) {
		t.Errorf("%q is not in the list %v", what, result.Omissions)
	}
}

const (
	xmlReceive   = "Microsoft.BizTalk.DefaultPipelines.XMLReceive"
	passTransmit = "Microsoft.BizTalk.DefaultPipelines.PassThruTransmit"
)

func TestBindingsBecomeDefinitionsThatADatabaseTakes(t *testing.T) {
	t.Parallel()
	source := bindings(
		location(`D:\Orders\In\*.xml`, transport("ReceiveLocationTransportType", "FILE", "PollingInterval", "5000", "BatchSize", "5", "BatchSizeInBytes", "102400")+
			pipelineOf("ReceivePipeline", xmlReceive)) +
			port(`\\files\erp$\%MessageID%.xml`, transport("TransportType", "FILE", "CopyMode", "2", "AllowCacheOnWrite", "-1")+
				`<RetryCount>10</RetryCount><RetryInterval>1</RetryInterval>`,
				pipelineOf("TransmitPipeline", passTransmit)+`<Priority>2</Priority><OrderedDelivery>true</OrderedDelivery>
<StopSendingOnFailure>true</StopSendingOnFailure><RouteFailedMessage>true</RouteFailedMessage><Description>to the ERP</Description>`+
					filter(`<Group>`+statement("BTS.MessageType", "0", "urn:orders#Order")+statement("BTS.ReceivePortName", "5", "In")+`</Group>
<Group>`+statement("FILE.ReceivedFileName", "6", "")+`</Group><Group/>`)) +
			`<DistributionListCollection><DistributionList Name="All"><SendPorts><SendPortRef Name="Out"/><SendPortRef Name="Gone"/></SendPorts>` +
			filter(`<Group>`+statement("ErrorReport.FailureCode", "0", "0xc0c01657")+`</Group>`) + `</DistributionList></DistributionListCollection>`)
	result := imported(t, source)
	requireObject(t, result, "receive port", "In", `{"application":"Orders"}`)
	requireObject(t, result, "receive location", "Folder", `{"adapter":"FILE","address":"${DRIVE_D}/Orders/In/*.xml","enabled":true,`+
		`"host":"Receiver","pipeline":"XMLReceive","receive_port":"In","settings":{"batch_count":5,"ignore_case":true,"poll_interval":"5 seconds"}}`)
	requireObject(t, result, "send port", "Out", `{"adapter":"FILE","address":"${SHARE_FILES_ERP}/%MessageID%.xml","application":"Orders",`+
		`"description":"to the ERP","failed_message_routing":true,`+
		`"filter":[[{"operator":"=","property":"MessageType","value":"urn:orders#Order"},`+
		`{"operator":"<>","property":"ReceivePortName","value":"In"}],[{"operator":"exists","property":"SourceFileName"}]],`+
		`"host":"Sender","on_failure":"stop","ordered":true,"priority":2,"retry_policy":"10 times, a minute apart",`+
		`"settings":{"fsync":false,"mode":"overwrite"}}`)
	requireObject(t, result, "send port group", "All", `{"application":"Orders","filter":[[{"operator":"=","property":"ErrorReport.FailureCode",`+
		`"value":"0xc0c01657"}]],"ports":["Out"]}`)
	requireObject(t, result, "host", "Sender", `{"role":"flow_sender"}`)
	requireOmission(t, result, `the path D:\Orders\In\*.xml`, false)
	requireOmission(t, result, `send port Gone`, false)
	if faults := checked(t, sqltest.NewBroker(t), result); len(faults) > 0 {
		t.Errorf("the database refuses %+v", faults)
	}
}

func TestBindingsAreReadInAnyCharsetAndForm(t *testing.T) {
	t.Parallel()
	const text = `<BindingInfo><ReceivePortCollection><ReceivePort Name="Größe"><ReceiveLocations><ReceiveLocation Name="L" Address="C:\a\*" ` +
		`Enable="True" ReceiveHandlerName="H" TransportType="FILE" TransportTypeData="&lt;CustomProps/&gt;"/></ReceiveLocations></ReceivePort>` +
		`</ReceivePortCollection></BindingInfo>`
	little, big := []byte{0xff, 0xfe}, []byte{0xfe, 0xff}
	for _, unit := range utf16.Encode([]rune(`<?xml version="1.0" encoding="utf-16"?>` + text)) {
		little, big = append(little, byte(unit), byte(unit>>8)), append(big, byte(unit>>8), byte(unit))
	}
	for name, body := range map[string][]byte{
		"UTF-16": little, "UTF-16 big end first": big, "UTF-8": []byte(text), "UTF-8 with a mark": []byte("\ufeff" + text),
		"UTF-8 that says UTF-16": []byte(`<?xml version="1.0" encoding="utf-16"?>` + text),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireObject(t, imported(t, biztalk.Source{Name: "b.xml", Body: body}), "receive location", "L",
				`{"adapter":"FILE","address":"${DRIVE_C}/a/*","enabled":true,"host":"BizTalkServerApplication","receive_port":"Größe"}`)
		})
	}
}

func TestWhatWouldNotDoWhatItDidIsWrittenAndDoesNotRun(t *testing.T) {
	t.Parallel()
	file := transport("TransportType", "FILE")
	fileIn := transport("ReceiveLocationTransportType", "FILE")
	xmlIn := pipelineOf("ReceivePipeline", xmlReceive)
	for name, c := range map[string]struct{ content, kind, what string }{
		"an adapter that there is not": {port("mailto:x", transport("TransportType", "WCF-Dream"), ""), "send port", "adapter WCF-Dream"},
		"SQL":                          {port("mssql://s//d?", transport("TransportType", "WCF-SQL"), ""), "send port", "the database of SQL Server"},
		"a queue": {
			location(`FORMATNAME:DIRECT=OS:m\PRIVATE$\orders`, transport("ReceiveLocationTransportType", "MSMQ")), "receive location", `PRIVATE$\orders`,
		},
		"a map":             {port(`C:\a`, file, `<Transforms><Transform FullName="M.OrderToInvoice"/></Transforms>`), "send port", "map M.OrderToInvoice"},
		"its own pipeline":  {location(`C:\a`, fileIn+pipelineOf("ReceivePipeline", "My.Pipelines.In")), "receive location", "My.Pipelines.In"},
		"a service window":  {location(`C:\a`, fileIn+xmlIn+`<ReceiveLocationServiceWindowEnabled>true</ReceiveLocationServiceWindowEnabled>`), "receive location", "the service window"},
		"the same, to send": {port(`C:\a`, file+`<ServiceWindowEnabled>true</ServiceWindowEnabled>`, ""), "send port", "the service window"},
		"days that recur":   {location(`C:\a`, fileIn+xmlIn+`<ScheduleRecurrenceType>Weekly</ScheduleRecurrenceType>`), "receive location", "the schedule Weekly"},
		"a certificate":     {port(`C:\a`, file, `<EncryptionCert ThumbPrint="ab"/>`), "send port", "the certificate"},
		"an operator":       {port(`C:\a`, file, filter(`<Group>`+statement("BTS.MessageType", "9", "x")+`</Group>`)), "send port", `operator "9"`},
		"a broken filter":   {port(`C:\a`, file, `<Filter>&lt;Filter</Filter>`), "send port", "the filter"},
		"a macro":           {port(`C:\a\%SourceParty%.xml`, file, ""), "send port", "macros in the name"},
		"settings that are no XML": {
			port(`C:\a`, `<TransportType Name="FILE"/><TransportTypeData>&lt;a</TransportTypeData>`, ""), "send port", "the settings of the adapter",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result := imported(t, bindings(c.content))
			requireOmission(t, result, c.what, true)
			if c.kind == "send port" && !strings.Contains(object(t, result, c.kind, "Out"), `"state":"Bound"`) {
				t.Errorf("the port runs: %s", result.Definitions)
			}
			if c.kind == "receive location" && !strings.Contains(object(t, result, c.kind, "Folder"), `"enabled":false`) {
				t.Errorf("the location runs: %s", result.Definitions)
			}
		})
	}
}

func TestAGroupWithAPredicateThatCannotBeSaidIsLeftOutAsAWhole(t *testing.T) {
	t.Parallel()
	result := imported(t, bindings(port(`C:\a`, transport("TransportType", "FILE"), filter(
		`<Group>`+statement("BTS.MessageType", "0", "urn:a#A")+statement("BTS.MessageID", "0", "7")+`</Group>
<Group>`+statement("BTS.MessageType", "0", "urn:b#B")+`</Group>`))))
	if got := object(t, result, "send port", "Out"); strings.Contains(got, "urn:a#A") || !strings.Contains(got, "urn:b#B") {
		t.Errorf("the filter is %s", got)
	}
	requireOmission(t, result, "no message is routed by MessageID", true)
}

func TestSecretsBecomeReferences(t *testing.T) {
	t.Parallel()
	const secret = "geheim"
	for name, content := range map[string]string{
		"HTTP":                port("https://erp.example/in", transport("TransportType", "HTTP", "Username", "me", "Password", secret), ""),
		"an address":          port("https://me:"+secret+"@erp.example/in", transport("TransportType", "HTTP"), ""),
		"a connection string": port("db://x?user=me&password="+secret, transport("TransportType", "WCF-Oracle"), ""),
		"an unknown adapter":  port("x://y", transport("TransportType", "Dream", "UserName", "me", "Password", secret), ""),
		"SFTP":                port("x://y", transport("TransportType", "SFTP", "ServerAddress", "h", "TargetFileName", "%MessageID%", "UserName", "me", "Password", secret), ""),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result := imported(t, bindings(content))
			if got := object(t, result, "send port", "Out"); !strings.Contains(got, `"secrets":{"password":"env:OUT_PASSWORD"}`) {
				t.Errorf("there is no reference in %s", got)
			}
			whole, err := json.Marshal(result)
			if err != nil || bytes.Contains(whole, []byte(secret)) {
				t.Errorf("the password is in %s, %v", whole, err)
			}
		})
	}
}

func TestTokensOfDeploymentBecomeVariables(t *testing.T) {
	t.Parallel()
	result := imported(t, bindings(port(`${DropFolder}\Out\%MessageID%.xml`, transport("TransportType", "FILE"),
		filter(`<Group>`+statement("BTS.MessageType", "0", "${not a name}")+`</Group>`))))
	requireOmission(t, result, "the value of ${DropFolder}", false)
	written, err := definitions.WriteWith(result.Definitions, result.Variables)
	if err != nil {
		t.Fatal(err)
	}
	document, err := definitions.Read([]definitions.Source{{Name: "x.yaml", Written: written}},
		definitions.Settings{Set: map[string]string{"DropFolder": "/drop"}})
	if err != nil {
		t.Fatal(err)
	}
	content, err := document.JSON()
	if err != nil || !bytes.Contains(content, []byte(`"/drop/Out/%MessageID%.xml"`)) || !bytes.Contains(content, []byte(`"${not a name}"`)) {
		t.Errorf("the definitions are read as %s, %v", content, err)
	}
}

func TestWhatThereIsNotYetIsListed(t *testing.T) {
	t.Parallel()
	result := imported(t, bindings(`<ModuleRefCollection><ModuleRef Name="A"><Services><Service Name="Flow.Approve"><Ports>
<Port Name="P"><SendPortRef Name="Out"/></Port><Port Name="R"><ReceivePortRef Name="In"/></Port></Ports></Service></Services></ModuleRef></ModuleRefCollection>
<PartyCollection><Party Name="Contoso"/></PartyCollection>`+
		`<SendPortCollection><SendPort Name="Out" IsStatic="true"><PrimaryTransport><Address>C:\a</Address><TransportType Name="FILE"/></PrimaryTransport>
<SecondaryTransport><Address>C:\b</Address></SecondaryTransport></SendPort><SendPort Name="Dynamic" IsStatic="false"/></SendPortCollection>`))
	for _, what := range []string{
		`orchestration "Flow.Approve"`, `party "Contoso"`, `backup transport C:\b`, "what orchestration Flow.Approve sends to it",
		`receive port "In": its subscription by orchestration`,
	} {
		requireOmission(t, result, what, false)
	}
	requireOmission(t, result, `send port "Dynamic"`, true)
	if got := object(t, result, "send port", "Dynamic"); !strings.Contains(got, `"state":"Bound"`) || !strings.Contains(got, `"adapter":"Dynamic"`) {
		t.Errorf("the dynamic port is %s", got)
	}
}

func TestAFileThatIsNoneOfBizTalkIsRefusedWithItsPlace(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"another root": "<?xml version=\"1.0\"?>\n  <Bindings/>", "no XML": "hello", "an end too early": "<BindingInfo>", "nothing": "",
		"a document type": "<!DOCTYPE x [<!ENTITY y SYSTEM 'file:///etc/passwd'>]><BindingInfo>&y;</BindingInfo>",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := biztalk.Import([]biztalk.Source{{Name: "x.xml", Body: []byte(body)}}, biztalk.Settings{})
			f, is := fault.Of(err)
			if !is || f.File != "x.xml" || f.Place.Line < 1 || f.Remedy == "" {
				t.Errorf("the error %v is no fault with a place and a remedy", err)
			}
		})
	}
}

func TestServiceWindowsAndDaysAreTakenOver(t *testing.T) {
	t.Parallel()
	result := imported(t, bindings(location(`C:\a`, transport("ReceiveLocationTransportType", "FILE")+pipelineOf("ReceivePipeline", xmlReceive)+
		`<ReceiveLocationServiceWindowEnabled>true</ReceiveLocationServiceWindowEnabled>
		<ReceiveLocationFromTime>2009-11-12T22:00:00</ReceiveLocationFromTime><ReceiveLocationToTime>2009-11-12T07:30:00+02:00</ReceiveLocationToTime>
		<ReceiveLocationStartDateEnabled>true</ReceiveLocationStartDateEnabled><ReceiveLocationStartDate>2026-12-01T00:00:00</ReceiveLocationStartDate>`)))
	const want = `"schedule":{"from":"2026-12-01","windows":["22:00-05:30"]}`
	if got := object(t, result, "receive location", "Folder"); !strings.Contains(got, want) {
		t.Errorf("the location is %s, without %s", got, want)
	}
}

func TestPortsOfMailSendByTheMailTransportOfTheDatabase(t *testing.T) {
	t.Parallel()
	result := imported(t, bindings(port("mailto:a@b.example;c@d.example", transport("TransportType", "SMTP", "From", "shop@b.example",
		"Subject", "100% new", "CC", "e@f.example", "EmailBodyText", "See there.", "SMTPHost", "relay"), "")))
	const want = `"address":"mailto:a@b.example, c@d.example"`
	got := object(t, result, "send port", "Out")
	for _, part := range []string{want, `"subject":"100%% new"`, `"cc":["e@f.example"]`, `"text":"See there."`, `"adapter":"Mail"`} {
		if !strings.Contains(got, part) {
			t.Errorf("the port is %s, without %s", got, part)
		}
	}
	if strings.Contains(got, "Bound") {
		t.Errorf("the port does not run: %s", got)
	}
	requireOmission(t, result, "the server relay", false)
	requireOmission(t, imported(t, bindings(location("POP3://m#x", transport("ReceiveLocationTransportType", "POP3", "UserName", "x",
		"MailServer", "m")+pipelineOf("ReceivePipeline", xmlReceive)))), "the mailbox x at m", true)
}

// compiledMap is a map of class M.OrderToInvoice as BizTalk compiles it; select is the value of its element.
func compiledMap(selected string) biztalk.Source {
	sheet := strings.ReplaceAll(`<?xml version="1.0" encoding="UTF-16"?><xsl:stylesheet xmlns:xsl="http://www.w3.org/1999/XSL/Transform" version="1.0"
 xmlns:s0="urn:o" xmlns:ns0="urn:i" xmlns:userCSharp="http://schemas.microsoft.com/BizTalk/2003/userCSharp"><xsl:template match="/"><xsl:apply-templates select="/s0:Order"/></xsl:template>
<xsl:template match="/s0:Order"><ns0:Invoice><xsl:value-of select="`+selected+`"/></ns0:Invoice></xsl:template></xsl:stylesheet>`, `"`, `""`)
	return biztalk.Source{Name: "OrderToInvoice.btm.cs", Body: []byte("namespace M {\n public sealed class OrderToInvoice : global::Microsoft.XLANGs.BaseTypes.TransformBase {\n" +
		`private const string _strMap = @"` + sheet + "\";\n}}\n")}
}

// A port whose compiled map is among the files gets it, and runs.
func TestAPortGetsItsCompiledMap(t *testing.T) {
	t.Parallel()
	file := transport("TransportType", "FILE")
	one := bindings(port(`C:\a`, file, `<Transforms><Transform FullName="M.OrderToInvoice" AssemblyQualifiedName="M, Version=1"/></Transforms>`))
	result := imported(t, compiledMap("userCSharp:MathAbs(string(A))"), one)
	for _, omission := range result.Omissions {
		if strings.Contains(omission.What, "map") {
			t.Errorf("left out is %+v", omission)
		}
	}
	var d struct {
		Map   map[string]map[string]any `json:"map"`
		Ports map[string]struct {
			Maps []string `json:"maps"`
		} `json:"send port"`
	}
	if err := json.Unmarshal(result.Definitions, &d); err != nil {
		t.Fatal(err)
	}
	made := d.Map["M.OrderToInvoice"]
	if made["source"] != "urn:o#Order" || made["target"] != "urn:i#Invoice" || made["language"] != "xslt" {
		t.Errorf("the map is %v", made)
	}
	for name, p := range d.Ports {
		if len(p.Maps) != 1 || p.Maps[0] != "M.OrderToInvoice" {
			t.Errorf("port %s has maps %v", name, p.Maps)
		}
	}
	own := imported(t, compiledMap("userCSharp:Own(string(A))"), one)
	requireOmission(t, own, "map M.OrderToInvoice", true)
}
