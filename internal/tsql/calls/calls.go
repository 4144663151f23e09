// Package calls is the one list of the functions of the schema that statements of T-SQL call.
package calls

import "strings"

// functions has for each statement the function that it calls. Words in small letters tell two forms of a statement apart.
var functions = map[string]string{
	"BEGIN DIALOG":             "parley.begin_dialog",
	"BEGIN CONVERSATION TIMER": "parley.begin_conversation_timer",
	"SEND":                     "parley.send",
	"SEND to several":          "parley.send_to_all",
	"RECEIVE":                  "parley.receive",
	"GET CONVERSATION GROUP":   "parley.get_conversation_group",
	"MOVE CONVERSATION":        "parley.move_conversation",
	"END CONVERSATION":         "parley.end_conversation",
	"GET_TRANSMISSION_STATUS":  "parley.get_transmission_status",
	"CAST to xml":              "parley.body_text",

	"CREATE MESSAGE TYPE":           "parley.create_message_type",
	"ALTER MESSAGE TYPE":            "parley.alter_message_type",
	"CREATE CONTRACT":               "parley.create_contract",
	"CREATE QUEUE":                  "parley.create_queue",
	"ALTER QUEUE":                   "parley.alter_queue",
	"ALTER QUEUE drops activation":  "parley.drop_activation",
	"CREATE SERVICE":                "parley.create_service",
	"ALTER SERVICE":                 "parley.alter_service",
	"CREATE ROUTE":                  "parley.create_route",
	"ALTER ROUTE":                   "parley.alter_route",
	"CREATE REMOTE SERVICE BINDING": "parley.create_remote_service_binding",
	"ALTER REMOTE SERVICE BINDING":  "parley.alter_remote_service_binding",
	"CREATE BROKER PRIORITY":        "parley.create_broker_priority",
	"ALTER BROKER PRIORITY":         "parley.alter_broker_priority",
	"CREATE EVENT NOTIFICATION":     "parley.create_event_notification",

	"DROP MESSAGE TYPE":           "parley.drop_message_type",
	"DROP CONTRACT":               "parley.drop_contract",
	"DROP QUEUE":                  "parley.drop_queue",
	"DROP SERVICE":                "parley.drop_service",
	"DROP ROUTE":                  "parley.drop_route",
	"DROP REMOTE SERVICE BINDING": "parley.drop_remote_service_binding",
	"DROP BROKER PRIORITY":        "parley.drop_broker_priority",
	"DROP EVENT NOTIFICATION":     "parley.drop_event_notification",

	"GRANT":               "parley.grant",
	"REVOKE":              "parley.revoke",
	"ALTER AUTHORIZATION": "parley.alter_authorization",

	"SET ENABLE_BROKER":              "parley.enable_broker",
	"SET DISABLE_BROKER":             "parley.disable_broker",
	"SET NEW_BROKER":                 "parley.new_broker",
	"SET ERROR_BROKER_CONVERSATIONS": "parley.error_broker_conversations",
	"SET HONOR_BROKER_PRIORITY":      "parley.honor_broker_priority",
}

// Text writes the call of a statement with arguments that are SQL already. A statement outside the list is a fault of the caller, and
// panics.
func Text(statement string, arguments ...string) string {
	function, known := functions[statement]
	if !known {
		panic("calls: " + statement + " calls no function of the schema")
	}
	return function + "(" + strings.Join(arguments, ", ") + ")"
}

// Has reports whether a statement calls a function of the schema.
func Has(statement string) bool {
	_, known := functions[statement]
	return known
}
