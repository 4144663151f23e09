package sqlrules

// callsUpward names, by file, what it uses of folders that come later in the manifest. A statement of the catalog ends or moves the
// conversations of what it drops or alters; the rest are single calls. No name may be added.
var callsUpward = map[string][]string{
	"parley/catalog/alter_queue.sql": {
		"_p_event_notification",
		"_p_forget_copy_numbers",
		"_p_forget_routes_of_queue",
		"_p_require_sole_activator",
	},
	"parley/catalog/contracts.sql":  {"_p_break_conversations", "_p_endpoint"},
	"parley/catalog/find_route.sql": {"_p_ask_broker_configuration", "_p_is_asking"},
	"parley/catalog/grant.sql":      {"_p_forget_routes_of_queue"},
	"parley/catalog/message_types.sql": {
		"_p_forget_routes_of_type",
		"_p_message",
		"_p_retained",
		"_p_transit",
		"_p_transmission",
	},
	"parley/catalog/remote_service_bindings.sql": {"_p_deliver_delayed"},
	"parley/catalog/routes.sql":                  {"_p_deliver_delayed", "_p_reroute"},
	"parley/catalog/services.sql": {
		"_p_break_conversations",
		"_p_deliver_delayed",
		"_p_drop_endpoints_of_service",
		"_p_endpoint",
		"_p_move_service",
	},
	"parley/poison/poison_statements.sql": {"peek"},
	"parley/trust/dialog_security.sql":    {"_p_endpoint"},
}
