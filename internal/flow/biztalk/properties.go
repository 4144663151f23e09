package biztalk

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// engineProperties are properties that the engine sets itself, by the classes under which filters know them.
var engineProperties = map[string]string{
	"BTS.MessageType": "MessageType", "BTS.ReceivePortName": "ReceivePortName", "BTS.ReceiveLocationName": "ReceiveLocationName",
	"BTS.InboundTransportType": "InboundTransportType", "BTS.InboundTransportLocation": "InboundTransportLocation",
	"BTS.SPName":        "SendPortName",
	"BTS.InterchangeID": "InterchangeID", "BTS.MessageID": "MessageID",
	"FILE.ReceivedFileName": "SourceFileName", "FTP.ReceivedFileName": "SourceFileName", "SFTP.ReceivedFileName": "SourceFileName",
	"ErrorReport.ErrorType": "ErrorReport.ErrorType", "ErrorReport.FailureCode": "ErrorReport.FailureCode",
	"ErrorReport.FailureCategory": "ErrorReport.FailureCategory", "ErrorReport.MessageType": "ErrorReport.MessageType",
	"ErrorReport.ReceivePortName": "ErrorReport.ReceivePortName", "ErrorReport.SendPortName": "ErrorReport.SendPortName",
	"ErrorReport.InboundTransportLocation":  "ErrorReport.InboundTransportLocation",
	"ErrorReport.OutboundTransportLocation": "ErrorReport.OutboundTransportLocation",
	"ErrorReport.Description":               "ErrorReport.Description", "ErrorReport.FailureTime": "ErrorReport.FailureTime",
	"ErrorReport.FailureAdapter": "ErrorReport.FailureAdapter",
}

// unpromoted are properties of the engine by which no message is routed.
var unpromoted = map[string]bool{"InterchangeID": true, "MessageID": true}

// systemSpaces are the namespaces of BizTalk's own property schemas, by the namespace of their classes.
var systemSpaces = map[string]string{
	"BTS":         "http://schemas.microsoft.com/BizTalk/2003/system-properties",
	"ErrorReport": "http://schemas.microsoft.com/BizTalk/2005/error-report",
	"FILE":        "http://schemas.microsoft.com/BizTalk/2003/file-properties",
	"FTP":         "http://schemas.microsoft.com/BizTalk/2003/ftp-properties",
	"HTTP":        "http://schemas.microsoft.com/BizTalk/2003/http-properties",
	"SMTP":        "http://schemas.microsoft.com/BizTalk/2003/smtp-properties",
	"POP3":        "http://schemas.microsoft.com/BizTalk/2003/pop3-properties",
	"SOAP":        "http://schemas.microsoft.com/BizTalk/2003/soap-properties",
	"WCF":         "http://schemas.microsoft.com/BizTalk/2006/01/Adapters/WCF-properties",
	"MSMQ":        "http://schemas.microsoft.com/BizTalk/2003/msmq-properties",
}

// A propertyClass is a property schema of a file: filters name its properties by the class that was made of it.
type propertyClass struct {
	file  string // without folders and extension, which is the name of the class
	space string
	types map[string]string
}

// A use is a property that a filter, or a promotion, names, and where.
type use struct {
	at         *node
	kind, name string
}

// property gives the name that a property has in definitions, for the class by which a filter names it.
func (t *translation) property(u use, class string) string {
	if name, isEngine := engineProperties[class]; isEngine {
		return name
	}
	parts := strings.Split(class, ".")
	local := parts[len(parts)-1]
	space := strings.Join(parts[:len(parts)-1], ".")
	if system, isSystem := systemSpaces[space]; isSystem {
		if t.use(system, local) {
			t.omit(u.at, u.kind, u.name, "property "+class, "nothing of the engine sets it, so a predicate with it is never satisfied",
				"ask for something that the engine sets, such as MessageType or ReceivePortName, or promote it by a path")
		}
		return system + "#" + local
	}
	found := []string{}
	for _, c := range t.classes {
		if _, has := c.types[local]; has && len(parts) > 1 && strings.EqualFold(c.file, parts[len(parts)-2]) {
			found = append(found, c.space)
		}
	}
	slices.Sort(found)
	found = slices.Compact(found)
	if len(found) == 1 {
		return found[0] + "#" + local
	}
	if space == "" {
		space = "BizTalk"
	}
	if t.use(space, local) {
		why, instead := "its property schema is not among the files", "give the .xsd of the property schema, so that it gets its namespace"
		if len(found) > 1 {
			why = fmt.Sprintf("the property schemas of %s are called alike", strings.Join(found, " and "))
			instead = "replace its name by namespace#Name in the definitions"
		}
		t.omit(u.at, u.kind, u.name, "the namespace of property "+class, why+"; the namespace is "+space+" now", instead)
	}
	return space + "#" + local
}

// use declares a property as a text, unless it is declared. It reports whether it was not.
func (t *translation) use(space, local string) bool {
	if t.declared[space] == nil {
		t.declared[space] = map[string]string{}
	}
	if _, is := t.declared[space][local]; is {
		return false
	}
	t.declared[space][local] = "text"
	return true
}

// typeOf gives the type of a property by its name in definitions.
func (t *translation) typeOf(property string) string {
	space, local, _ := strings.Cut(property, "#")
	return t.declared[space][local]
}

// declareUsed makes the property schemas of all properties that are named.
func (t *translation) declareUsed() {
	for _, space := range slices.Sorted(maps.Keys(t.declared)) {
		properties := object{}
		for local, typ := range t.declared[space] {
			properties[local] = object{"type": typ}
		}
		if len(properties) == 0 {
			continue
		}
		t.add(kindApplication, t.settings.Application, object{})
		t.add(kindPropertySchema, space, object{"application": t.settings.Application, "properties": properties})
	}
}

// isNamespace reports whether a property schema may be called so.
func isNamespace(space string) bool {
	return space != "" && len(space) <= nameMost && !strings.ContainsAny(space, "#\n\r\t") && strings.TrimSpace(space) == space &&
		!token.MatchString(space)
}
