package broker

import (
	"errors"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/internal/pgdb"
	"github.com/parley-broker/parley/internal/tsql/connection"
	"github.com/parley-broker/parley/internal/tsql/fault"
)

// faultOf gives the error of SQL Server for what the database answered. Its own numbers have their own texts where the values that they
// need are known.
func faultOf(err error, verb string) *fault.Error {
	refused, is := errors.AsType[*pgconn.PgError](err)
	if !is {
		return connection.Fault(err, verb)
	}
	number, isBroker := pgdb.ErrorNumber(err)
	if !isBroker {
		// There is no schema parley in this database.
		if refused.Code == "3F000" || refused.Code == "42P01" && strings.Contains(refused.Message, "parley.") {
			return fault.New(pgdb.NoBroker)
		}
		return connection.Fault(err, verb)
	}
	arguments, hasText := argumentsOf(number, refused)
	if _, _, known := fault.Text(number); !known || !hasText {
		return connection.Fault(err, verb)
	}
	return fault.New(number, arguments...)
}

// fault gives the error of a call. A queue that it reads is named as the batch writes it; one that it only names is error 15151.
func (c *call) fault(err error) *fault.Error {
	found := faultOf(err, c.verb)
	switch found.Number {
	case 208:
	case 9613, 9614:
		return c.named(found)
	case 9619:
		return c.named(found, quoted)
	case 8402:
		if event := unknownEvent.FindStringSubmatch(found.Message); event != nil {
			return fault.New(1084, event[1])
		}
		return found
	default:
		return found
	}
	if c.queue != "" {
		return fault.New(208, c.queue)
	}
	if refused, is := errors.AsType[*pgconn.PgError](err); is {
		if missing := missingQueue.FindStringSubmatch(refused.Message); missing != nil {
			return fault.New(15151, "find", "queue", strings.ReplaceAll(missing[1], "]]", "]")+missing[2])
		}
	}
	return found
}

// named gives the text of a number that begins with the object which the statement defines. Forms find the values behind it in the
// message of the database.
func (c *call) named(found *fault.Error, behind ...*regexp.Regexp) *fault.Error {
	values := []any{c.object}
	for _, form := range behind {
		value := form.FindStringSubmatch(found.Message)
		if value == nil {
			return found
		}
		values = append(values, value[1])
	}
	if c.object == "" {
		return found
	}
	return fault.New(found.Number, values...)
}

// unknownEvent finds the event that a queue does not have.
var unknownEvent = regexp.MustCompile(`^there is no event "(.*)" of a queue$`)

// missingQueue finds the last part of a name in the message that there is no such queue: in brackets first, else plain. Both forms are
// those of lookupName.
var missingQueue = regexp.MustCompile(
	`^queue "(?:(?:\[(?:[^\]]|\]\])*\]|[^.\["]*)\.)?(?:\[((?:[^\]]|\]\])*)\]|([^.\["]+))" does not exist$`,
)

// Texts with one name take the one that the message of the database quotes, those with a state the state in its detail.
var (
	withoutArguments = map[int]bool{
		127: true, 8410: true, 8417: true, 8418: true, 8419: true, 8420: true, 8421: true, 8422: true, 8424: true, 8430: true,
		8433: true, 8468: true, 8470: true, 9663: true,
	}
	withName = map[int]bool{
		208: true, 2714: true, 8414: true, 8423: true, 8425: true, 8426: true, 8428: true, 8431: true, 8432: true, 8434: true,
		8436: true, 9617: true,
	}
	isIdentifier = map[int]bool{8414: true, 8426: true, 8435: true, 8436: true, 8451: true}
	withState    = map[int]bool{8427: true, 8429: true, 8438: true, 8458: true}
)

// maxLifetime is the most seconds that a conversation may live.
const maxLifetime = 1<<31 - 1

var (
	// inBrackets is the last part of the name of a queue as the broker is given it.
	inBrackets = regexp.MustCompile(`^\[.*\]\.\[(.*)\]$`)

	quoted   = regexp.MustCompile(`"((?:[^"]|"")*)"`)
	inNumber = regexp.MustCompile(`-?\d+`)

	stateIn = regexp.MustCompile(`state ([A-Z]{2})\b`)
	states  = map[string]string{
		"CLOSED": "CD", "DISCONNECTED_INBOUND": "DI", "DISCONNECTED_OUTBOUND": "DO", "ERROR": "ER", "STARTED_OUTBOUND": "SO",
		"STARTED_INBOUND": "SI", "CONVERSING": "CO",
	}
	stateName = regexp.MustCompile(`state is ([A-Z_]+)`)
)

// argumentsOf gives the values of the text of a number; false where they are not known.
func argumentsOf(number int, refused *pgconn.PgError) ([]any, bool) {
	switch {
	case withoutArguments[number]:
		return nil, true
	case withName[number]:
		if found := quoted.FindStringSubmatch(refused.Message); found != nil {
			if object := inBrackets.FindStringSubmatch(found[1]); number == 2714 && object != nil {
				return []any{strings.ReplaceAll(object[1], "]]", "]")}, true
			}
			if isIdentifier[number] {
				return []any{strings.ToUpper(found[1])}, true
			}
			return []any{found[1]}, true
		}
	case number == 8411:
		if found := inNumber.FindString(refused.Message); found != "" {
			return []any{found, 1, maxLifetime}, true
		}
	case withState[number]:
		if found := stateIn.FindStringSubmatch(refused.Detail); found != nil {
			return []any{found[1]}, true
		}
		if found := stateName.FindStringSubmatch(refused.Message); found != nil {
			return []any{states[found[1]]}, true
		}
	}
	return valuesIn(number, refused.Message, refused.Detail)
}

// lost gives the error of a session that cannot go on.
func lost(err error) *fault.Error { return connection.Fault(err, "") }
