package biztalk_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/biztalk"
	"github.com/parley-broker/parley/internal/sqltest"
)

const (
	propertySchema = `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:b="http://schemas.microsoft.com/BizTalk/2003"
 targetNamespace="urn:shop:properties"><xs:annotation><xs:appinfo><b:schemaInfo schema_type="property"/></xs:appinfo></xs:annotation>
<xs:element name="Customer" type="xs:string"/><xs:element name="Total" type="xs:decimal"/><xs:element name="Count" type="xs:int"/>
<xs:element name="Sent" type="xs:dateTime"/><xs:element name="Urgent" type="xs:boolean"/></xs:schema>`
	orderSchema = `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:b="http://schemas.microsoft.com/BizTalk/2003" xmlns:p="urn:shop:properties"
 xmlns:q="urn:shop:others" targetNamespace="urn:shop:orders"><xs:element name="Order"><xs:annotation><xs:appinfo><b:properties>
<b:property name="p:Total" xpath="/*[local-name()='Order' and namespace-uri()='urn:shop:orders']/*[local-name()='Total' and namespace-uri()='']"/>
<b:property name="q:Region" xpath="/*[local-name()='Order' and namespace-uri()='urn:shop:orders']/@*[local-name()='region' and namespace-uri()='']"/>
<b:property name="p:Customer" xpath="//Customer"/>
<b:property distinguished="true" xpath="/*[local-name()='Order' and namespace-uri()='urn:shop:orders']/*[local-name()='Total' and namespace-uri()='']"/>
</b:properties></xs:appinfo></xs:annotation><xs:complexType><xs:sequence><xs:element name="Customer" type="xs:string"/>
<xs:element name="Total" type="xs:decimal"/></xs:sequence><xs:attribute name="region" type="xs:string"/></xs:complexType></xs:element></xs:schema>`
	flatSchema = `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:b="http://schemas.microsoft.com/BizTalk/2003" targetNamespace="urn:shop:orders">
<xs:annotation><xs:appinfo><b:schemaInfo standard="Flat File" root_reference="Order"/></xs:appinfo></xs:annotation><xs:element name="Order">
<xs:annotation><xs:appinfo><b:recordInfo structure="delimited" child_delimiter_type="char" child_delimiter=";" child_order="infix"/></xs:appinfo></xs:annotation>
<xs:complexType><xs:sequence><xs:element name="No" type="xs:int"/><xs:element name="Total" type="xs:decimal"/></xs:sequence></xs:complexType></xs:element></xs:schema>`
	flatPipeline = `<Document PolicyFilePath="BTSReceivePolicy.xml" MajorVersion="1" MinorVersion="0"><Description>reads orders</Description><Stages>
<Stage CategoryId="9d0e4103-4cce-4536-83fa-4a5040674ad6"><Components/></Stage>
<Stage CategoryId="9d0e4105-4cce-4536-83fa-4a5040674ad6"><Components><Component><Name>Microsoft.BizTalk.Component.FFDasmComp</Name><Properties>
<Property Name="DocumentSpecName"><Value>Shop.Schemas.Order, Shop, Version=1.0.0.0</Value></Property>
<Property Name="RecoverableInterchangeProcessing"><Value>true</Value></Property></Properties></Component></Components></Stage>
<Stage CategoryId="9d0e410e-4cce-4536-83fa-4a5040674ad6"><Components><Component><Name>Microsoft.BizTalk.Component.PartyRes</Name></Component></Components>
</Stage></Stages></Document>`
)

func TestSchemasBecomePropertiesAndMessageTypesWithTheirPromotions(t *testing.T) {
	t.Parallel()
	result := imported(t,
		biztalk.Source{Name: `schemas\Order.xsd`, Body: []byte(orderSchema)}, biztalk.Source{Name: "schemas/Properties.xsd", Body: []byte(propertySchema)},
		bindings(port(`C:\a`, transport("TransportType", "FILE"), filter(`<Group>`+statement("Shop.Schemas.Properties.Total", "4", "1000")+`</Group>
<Group>`+statement("Shop.Schemas.Properties.Sent", "1", "today")+`</Group>
<Group>`+statement("Elsewhere.Props.Kind", "0", "x")+`</Group>`))))
	requireObject(t, result, "property schema", "urn:shop:properties", `{"application":"Orders","properties":{"Count":{"type":"integer"},`+
		`"Customer":{"type":"text"},"Sent":{"type":"timestamp"},"Total":{"type":"number"},"Urgent":{"type":"boolean"}}}`)
	requireObject(t, result, "message type", "urn:shop:orders#Order", `{"application":"Orders","promotions":{`+
		`"urn:shop:others#Region":"/*[local-name()='Order' and namespace-uri()='urn:shop:orders']/@*[local-name()='region' and namespace-uri()='']",`+
		`"urn:shop:properties#Total":"/*[local-name()='Order' and namespace-uri()='urn:shop:orders']/*[local-name()='Total' and namespace-uri()='']"}}`)
	requireOmission(t, result, "the schema: a path in it is not in the canonical form", false)
	if got := object(t, result, "send port", "Out"); !strings.Contains(got, `"property":"urn:shop:properties#Total","value":"1000"`) {
		t.Errorf("the filter does not find the property schema: %s", got)
	}
	requireOmission(t, result, "the promotion of Customer: path //Customer", false)
	requireOmission(t, result, "urn:shop:others#Region: its property schema is not among the files", false)
	requireOmission(t, result, "the namespace of property Elsewhere.Props.Kind", false)
	requireOmission(t, result, "which is no time with an offset", true)
	if faults := checked(t, sqltest.NewBroker(t), result); len(faults) > 0 {
		t.Errorf("the database refuses %+v", faults)
	}
}

func TestPipelinesBecomeDefinitionsOfTheirComponents(t *testing.T) {
	t.Parallel()
	use := bindings(location(`C:\a\*.txt`, transport("ReceiveLocationTransportType", "FILE")+pipelineOf("ReceivePipeline", "Shop.Pipelines.ReadOrders")+
		`<ReceivePipelineData>&lt;Root&gt;&lt;Stages&gt;&lt;Stage&gt;&lt;Components&gt;&lt;Component Name="Microsoft.BizTalk.Component.FFDasmComp"&gt;`+
		`&lt;Properties&gt;&lt;RecoverableInterchangeProcessing vt="11"&gt;0&lt;/RecoverableInterchangeProcessing&gt;&lt;/Properties&gt;`+
		`&lt;/Component&gt;&lt;/Components&gt;&lt;/Stage&gt;&lt;/Stages&gt;&lt;/Root&gt;</ReceivePipelineData>`))
	pipeline := biztalk.Source{Name: "ReadOrders.btp", Body: []byte(flatPipeline)}
	result := imported(t, use, pipeline, biztalk.Source{Name: "Order.xsd", Body: []byte(flatSchema)})
	requireObject(t, result, "message type", "urn:shop:orders#Order", `{"application":"Orders","schema":{"file":"Order.xsd"}}`)
	requireObject(t, result, "pipeline", "ReadOrders", `{"application":"Orders","description":"reads orders","direction":"receive","stages":{"disassemble":`+
		`[{"component":"flat-file-disassembler","settings":{"document":"urn:shop:orders#Order","recoverable":true}}]}}`)
	requireObject(t, result, "receive location", "Folder", `{"adapter":"FILE","address":"${DRIVE_C}/a/*.txt","enabled":true,"host":"Receiver",`+
		`"pipeline":"ReadOrders","pipeline_settings":{"flat-file-disassembler":{"recoverable":false}},"receive_port":"In","settings":{"ignore_case":true}}`)
	requireOmission(t, result, "PartyRes", false)
	if faults := checked(t, sqltest.NewBroker(t), result); len(faults) > 0 {
		t.Errorf("the database refuses %+v", faults)
	}

	// Without the schema, or with a component that there is not, the location does not run.
	result = imported(t, use, pipeline)
	requireOmission(t, result, "schemas of component Microsoft.BizTalk.Component.FFDasmComp", true)
	if got := object(t, result, "receive location", "Folder"); !strings.Contains(got, `"enabled":false`) {
		t.Errorf("the location runs: %s", got)
	}
	own := biztalk.Source{Name: "ReadOrders.btp", Body: []byte(strings.ReplaceAll(flatPipeline, "Microsoft.BizTalk.Component.FFDasmComp", "My.Own"))}
	result = imported(t, use, own)
	requireOmission(t, result, "component My.Own", true)
	if got := object(t, result, "receive location", "Folder"); !strings.Contains(got, `"enabled":false`) {
		t.Errorf("the location runs: %s", got)
	}
}

// The flat-file disassembler has its three schemas and its header; a document whose schema describes an envelope is one here.
func TestEnvelopesOfFlatFilesAreTakenOver(t *testing.T) {
	t.Parallel()
	property := func(name, value string) string {
		return `<Property Name="` + name + `"><Value>` + value + `</Value></Property>`
	}
	schemaOf := func(name, info, record string) biztalk.Source {
		return biztalk.Source{Name: name + ".xsd", Body: []byte(`<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"
			xmlns:b="http://schemas.microsoft.com/BizTalk/2003" targetNamespace="urn:` + name + `"><xs:annotation><xs:appinfo><b:schemaInfo standard="Flat File" ` + info + `/>
			</xs:appinfo></xs:annotation><xs:element name="Root"><xs:annotation><xs:appinfo><b:recordInfo structure="delimited" child_delimiter_type="char" child_delimiter=";" ` +
			record + `/></xs:appinfo></xs:annotation><xs:complexType><xs:sequence><xs:element name="A" type="xs:string"/></xs:sequence></xs:complexType></xs:element></xs:schema>`)}
	}
	sources := []biztalk.Source{
		schemaOf("Head", "", ""), schemaOf("Line", "", ""), schemaOf("End", "", ""),
		schemaOf("Sheet", `is_envelope="yes"`, `body_xpath="/*[local-name()='Root' and namespace-uri()='urn:Sheet']"`),
	}
	for properties, want := range map[string]map[string]any{
		property("DocumentSpecName", "S.Line") + property("HeaderSpecName", "S.Head") + property("TrailerSpecName", "S.End") + property("PreserveHeader", "true"): {
			"document": "urn:Line#Root", "header": "urn:Head#Root", "trailer": "urn:End#Root", "preserve_header": true,
		},
		property("DocumentSpecName", "S.Sheet") + property("RecoverableInterchangeProcessing", "true"): {"envelope": "urn:Sheet#Root"},
	} {
		pipeline := biztalk.Source{Name: "Read.btp", Body: []byte(`<Document><Stages><Stage CategoryId="9d0e4105-4cce-4536-83fa-4a5040674ad6"><Components>
			<Component><Name>Microsoft.BizTalk.Component.FFDasmComp</Name><Properties>` + properties + `</Properties></Component></Components></Stage></Stages></Document>`)}
		result := imported(t, append(slices.Clone(sources), pipeline)...)
		written, err := json.Marshal(result.Definitions)
		wanted, wantedErr := json.Marshal(want)
		if err != nil || wantedErr != nil || !strings.Contains(string(written), `"component":"flat-file-disassembler","settings":`+string(wanted)) {
			t.Errorf("the definitions are %s, %v, %v and have no %s", written, err, wantedErr, wanted)
		}
	}
}
