package broker

import (
	"regexp"
	"strings"
)

// valueForms find the values of SQL Server's texts in the message and the detail of the database, one under the other. Their groups are in
// the order of the text's values. A text whose values are not all there stays that of the broker.
var valueForms = map[int]*regexp.Regexp{
	3716: regexp.MustCompile(`^(.+) "(.*)" is still used\nIt is used by (?:a )?(contract|service|broker priority)`),
	8403: regexp.MustCompile(`^message type "(.*)" is named twice`),
	8404: regexp.MustCompile(`^contract "(.*)" is named twice`),
	8408: regexp.MustCompile(`^service "(.*)" does not accept event notifications`),
	8412: regexp.MustCompile(`^the target service is malformed\nIt has 0()`),
	8413: regexp.MustCompile(`^"(.*)" is no broker instance`),
	8435: regexp.MustCompile(`^conversation handle "(.*)" at position (\d+) `),
	8441: regexp.MustCompile(`\nPosition (\d+) of the list is null`),
	8451: regexp.MustCompile(`^conversation handle "(.*)" is named twice\nIt stands at position (\d+)`),
	8492: regexp.MustCompile(`^contract "(.*)" gives the initiator nothing`),
	8493: regexp.MustCompile(`^nothing to change in service "(.*)"`),
	9611: regexp.MustCompile(`^role "(.*)" does not exist`),
	9620: regexp.MustCompile(`^(.*) is not a procedure`),
	9653: regexp.MustCompile(`^procedure (.*) takes arguments`),
	9661: regexp.MustCompile(`^route "(.*)" has a mirror`),
	9662: regexp.MustCompile(`^route "(.*)" names a broker instance`),
	9717: regexp.MustCompile(`^queue "(.*)" has a QUEUE_ACTIVATION`),
	9718: regexp.MustCompile(`^queue "(.*)" has internal activation`),
	9742: regexp.MustCompile(`^procedure (.*) is temporary`),
	9745: regexp.MustCompile(`^route "(.*)" takes the address`),
	9746: regexp.MustCompile(`^route "(.*)": lifetime`),
	9747: regexp.MustCompile(`^route "(.*)": the mirror`),
}

// numberBefore stands before the detail of each error of the broker.
var numberBefore = regexp.MustCompile(`^Service Broker error \d+\. `)

// constantsBehind are values of texts that are always the same, behind those of the message.
var constantsBehind = map[int][]any{
	8406: {1, maxLifetime}, 9746: {1, maxLifetime}, 8408: {"http://schemas.microsoft.com/SQL/Notifications/PostEventNotification"},
}

// ourWords are words of the broker for which SQL Server's texts have others.
var ourWords = map[string]string{"broker priority": "conversation priority"}

// valuesIn gives the values that the form of a number finds; false where there is none, or where it does not fit.
func valuesIn(number int, message, detail string) ([]any, bool) {
	form := valueForms[number]
	if form == nil {
		return constantsBehind[number], constantsBehind[number] != nil
	}
	found := form.FindStringSubmatch(message + "\n" + numberBefore.ReplaceAllString(detail, ""))
	if found == nil {
		return nil, false
	}
	var values []any
	for _, text := range found[1:] {
		switch object := inBrackets.FindStringSubmatch(text); {
		case isIdentifier[number]:
			text = strings.ToUpper(text)
		case object != nil:
			text = strings.ReplaceAll(object[1], "]]", "]")
		case ourWords[text] != "":
			text = ourWords[text]
		}
		values = append(values, text)
	}
	return append(values, constantsBehind[number]...), true
}
