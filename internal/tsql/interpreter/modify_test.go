package interpreter

import "testing"

func TestModifyChangesXMLAsTheDocumentationShows(t *testing.T) {
	t.Parallel()
	const product = "DECLARE @x xml = '<Root><ProductDescription ProductID=\"1\" ProductName=\"Road Bike\"><Features></Features></ProductDescription></Root>'\n"
	const plant = "DECLARE @x xml = '<Root><Location LocationID=\"10\"><step>one</step><step>two</step></Location></Root>'\n"
	play(t, []scenario{
		{
			"elements are inserted into, as first, and after",
			product + `SET @x.modify('insert <Maintenance>3 year parts</Maintenance> into (/Root/ProductDescription/Features)[1]')
SET @x.modify('insert <Warranty>1 year parts and labor</Warranty> as first into (/Root/ProductDescription/Features)[1]')
SET @x.modify('insert <Material>Aluminium</Material> as last into (/Root/ProductDescription/Features)[1]')
SET @x.modify('insert <BikeFrame>Strong</BikeFrame> after (/Root/ProductDescription/Features/Material)[1]')
PRINT CAST(@x.query('/Root/ProductDescription/Features') AS nvarchar(max))`,
			"<Features><Warranty>1 year parts and labor</Warranty><Maintenance>3 year parts</Maintenance><Material>Aluminium</Material><BikeFrame>Strong</BikeFrame></Features>",
		},
		{
			"several elements, a comment, a text and the nodes of a variable are inserted",
			`DECLARE @x xml = '<r><a/></r>', @new xml = '<n k="1">x</n><n/>', @text nvarchar(9) = N'a<b'
SET @x.modify('insert (<b>1</b>, <c d="{sql:variable("@text")}">{ sql:variable("@text") } {{}}</c>) before (/r/a)[1]')
SET @x.modify('insert <!-- note --> after (/r/b)[1]')
SET @x.modify('insert text{"free"} as first into (/r)[1]')
SET @x.modify('insert sql:variable("@new") into (/r)[1]')
PRINT CAST(@x AS nvarchar(max))`,
			`<r>free<b>1</b><!-- note --><c d="a&lt;b">a&lt;b {}</c><a/><n k="1">x</n><n/></r>`,
		},
		{
			"attributes are inserted",
			plant + `DECLARE @hrs decimal(4,1) = .2
SET @x.modify('insert attribute LaborHours {sql:variable("@hrs")} into (/Root/Location[@LocationID=10])[1]')
SET @x.modify('insert (attribute SetupHours {".5" }, attribute Other {".2"}) into (/Root/Location[@LocationID=10])[1]')
SELECT @x.value('(/Root/Location/@LaborHours)[1]', 'varchar(5)') AS a, @x.value('(/Root/Location/@SetupHours)[1]', 'varchar(5)') AS b, @x.value('(//@Other)[1]', 'varchar(5)') AS c`,
			"a     b     c\n0.2   .5    .2\n(1 rows affected)",
		},
		{
			"attributes, elements and texts are deleted",
			plant + `SET @x.modify('delete /Root/Location/@LocationID')
SET @x.modify('delete /Root/Location/step[2]')
SET @x.modify('delete /Root/Location/text()')
SET @x.modify('delete /nothing')
PRINT CAST(@x AS nvarchar(max))
SET @x.modify('delete //step')
PRINT CAST(@x AS nvarchar(max))`,
			"<Root><Location><step>one</step></Location></Root>\n<Root><Location/></Root>",
		},
		{
			"values are replaced",
			plant + `DECLARE @to int = 7
SET @x.modify('replace value of (/Root/Location/step[1]/text())[1] with "new with text"')
SET @x.modify('replace value of (/Root/Location/@LocationID)[1] with sql:variable("@to")')
SET @x.modify('replace value of (/Root/Location/step[2]/text())[1] with concat(string((/Root/Location/@LocationID)[1]), "0")')
PRINT CAST(@x AS nvarchar(max))`,
			`<Root><Location LocationID="7"><step>new with text</step><step>70</step></Location></Root>`,
		},
		{
			"namespaces of the prolog count",
			`DECLARE @x xml = '<a xmlns="urn:x"><b/></a>'
SET @x.modify('declare default element namespace "urn:x"; insert <c/> into (/a)[1]')
SET @x.modify('declare namespace p="urn:x"; insert <p:d/> after (/p:a/p:b)[1]')
PRINT CAST(@x AS nvarchar(max))`,
			`<a xmlns="urn:x"><b/><p:d xmlns:p="urn:x"/><c/></a>`,
		},
		{"the target is one node", "DECLARE @x xml = '<a/>'\nSET @x.modify('insert <b/> into /a/c')", "Msg 2226, Level 16, State 1, Line 2\nXQuery [modify()]: The target of 'insert' must be a single node, found 'node() *'"},
		{"a replaced value is that of a text or an attribute", "DECLARE @x xml = '<a>1</a>'\nSET @x.modify('replace value of (/a)[1] with \"2\"')", "Msg 2356, Level 16, State 1, Line 2\nXQuery [modify()]: The target of 'replace value of' must be a non-metadata attribute or an element with simple typed content, found 'element(a,xdt:untyped) ?'"},
		{"replace has one target", "DECLARE @x xml = '<a>1</a>'\nSET @x.modify('replace value of /a/text() with \"2\"')", "Msg 2337, Level 16, State 1, Line 2\nXQuery [modify()]: The target of 'replace' must be at most one node, found 'node() *'"},
		{"NULL cannot be changed", "DECLARE @x xml\nSET @x.modify('delete /a')", "Msg 5302, Level 16, State 1, Line 2\nMutator 'modify()' on '@x' cannot be called on a null value."},
		{"modify stands in SET alone", "DECLARE @x xml = '<a/>'\nSELECT @x.modify('delete /a')", "Msg 8137, Level 16, State 1, Line 2\nIncorrect use of the XML data type method 'modify'. A non-mutator method is expected in this context."},
		{"an attribute stands once", "DECLARE @x xml = '<a b=\"1\"/>'\nSET @x.modify('insert attribute b {\"2\"} into (/a)[1]')", "Msg 9437, Level 16, State 1, Line 2\nXML parsing: duplicate attribute"},
	})
}
