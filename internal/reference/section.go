package reference

// A section puts together what belongs together; its files stand in reading order.
type section struct {
	title string
	intro string
	files []string // names in sql/
}

var sections = []section{
	{
		title: "Message types",
		files: []string{"040_message_types.sql", "212_validation.sql"},
	},
	{
		title: "Contracts",
		files: []string{"050_contracts.sql"},
	},
	{
		title: "Queues",
		intro: "A queue is named by one or two parts, `queue` or `schema.queue`; each may stand in brackets or double quotes. Without a\n" +
			"schema it is `dbo`, which need not exist: it is a part of the name and nothing more.",
		files: []string{"060_queues.sql", "061_alter_queue.sql"},
	},
	{
		title: "Services",
		files: []string{"070_services.sql"},
	},
	{
		title: "Routes",
		intro: "Where services are that are not in this database: see [the page on routing](routing.md).",
		files: []string{"090_routes.sql"},
	},
	{
		title: "Dialog security",
		intro: "How bodies are kept from whoever carries them, and who may say what to whom: see\n" +
			"[the page on dialog security](dialog-security.md).",
		files: []string{"092_certificates.sql", "094_remote_service_bindings.sql", "096_dialog_security.sql"},
	},
	{
		title: "Broker priorities",
		files: []string{"080_priorities.sql"},
	},
	{
		title: "Dialogs",
		files: []string{"120_begin_dialog.sql"},
	},
	{
		title: "Sending",
		intro: "Bodies may be given as `bytea`, `text`, `jsonb`, `json` or `xml`; text travels as UTF-8.",
		files: []string{
			"200_send.sql", "201_send_forms.sql", "202_send_traced.sql", "204_arrays.sql", "222_send_and_end.sql", "210_deliver.sql", "211_connect.sql",
		},
	},
	{
		title: "Receiving",
		files: []string{
			"239_received_message.sql", "240_receive.sql", "241_receive_group.sql", "247_savepoints.sql", "248_receive_named.sql",
			"250_group_statements.sql", "110_messages.sql", "242_wait_for_message.sql",
		},
	},
	{
		title: "Looking at queues",
		intro: "Each queue has a view in schema `parley_queue`, called like the queue, in the columns of\n" +
			"[`parley.received_message`](#parleyreceived_message): `select * from parley_queue.shop`.",
		files: []string{"270_queue_views.sql", "271_queue_inspection.sql"},
	},
	{
		title: "Poison messages",
		intro: "What is set aside, and what can be done about it: see [the page on poison messages](poison.md).",
		files: []string{
			"118_set_aside.sql", "243_poison.sql", "244_set_aside.sql", "245_poison_statements.sql", "246_reader_failures.sql",
			"299_poison_views.sql",
		},
	},
	{
		title: "Ending conversations",
		files: []string{"219_conversation_rights.sql", "220_end_conversation.sql", "221_break_conversation.sql"},
	},
	{
		title: "Timers",
		files: []string{"260_timers.sql", "261_fire_timers.sql"},
	},
	{
		title: "Activation",
		intro: "What the daemon, `parley serve`, tells about its work.",
		files: []string{"402_queue_monitors.sql"},
	},
	{
		title: "External activation",
		intro: "What these are for: [activation](activation.md).",
		files: []string{"411_activation_statements.sql", "412_deliveries.sql"},
	},
	{
		title: "Event notifications",
		files: []string{"420_event_notifications.sql", "421_event_messages.sql"},
	},
	{
		title: "Permissions",
		files: []string{"020_roles.sql", "280_grant.sql"},
	},
	{
		title: "Peers",
		intro: "Brokers elsewhere that this database trusts: see [the page on security](security.md).",
		files: []string{
			"093_peers.sql", "094_peer_statements.sql", "095_identities.sql", "096_peer_dialog_certificates.sql", "097_pairing.sql",
			"098_pairing_daemon.sql", "099_broker_certificates.sql",
		},
	},
	{
		title: "Switching the broker",
		intro: "What `ALTER DATABASE ... SET` does to a broker in SQL Server. The page on [backup and restore](backup.md) tells when.",
		files: []string{"290_broker_identity.sql", "430_broker_switches.sql", "604_destination_statements.sql"},
	},
	{
		title: "Diagnosis",
		intro: "What `parley diagnose` shows; the page on [diagnosis](diagnose.md) explains each finding.",
		files: []string{
			"510_diagnosis_checks.sql", "511_diagnose.sql", "512_find_broker_faults.sql", "513_find_definition_faults.sql",
			"520_find_reader_faults.sql", "521_find_conversation_faults.sql", "522_find_old_transactions.sql", "524_find_destination_faults.sql",
			"530_check_broker.sql", "531_repair_broker.sql", "540_explain_conversation.sql", "541_trace_conversation.sql",
			"543_traces.sql",
		},
	},
	{
		title: "Catalog",
		intro: "Everybody may look at what exists.",
		files: []string{"300_catalog_views.sql", "305_route_views.sql"},
	},
	{
		title: "Conversations",
		intro: "Everybody sees the conversations of his own services and of roles that he is a member of; administrators see all.",
		files: []string{"310_conversation_views.sql", "311_transmission_queue.sql"},
	},
	{
		title: "Monitoring",
		intro: "What each number is made of, and what to watch, tells [the page on monitoring](monitoring.md).",
		files: []string{
			"502_performance_counters.sql", "503_broker_metrics.sql", "520_queue_activity.sql", "521_conversation_activity.sql",
			"522_passing_messages.sql", "630_daemon_reports.sql", "631_endpoint_views.sql", "523_transmission_destinations.sql",
		},
	},
	{
		title: "Errors",
		intro: "Each error carries its SQL Server number twice: in its SQLSTATE, class `SB` and then the number in base 36, and\n" +
			"at the start of its DETAIL. The message states the fact, the DETAIL the values, the HINT what to do. Errors of PostgreSQL itself " +
			"keep\ntheir own SQLSTATE.\n\n" +
			"Errors that arrive as messages, with negative codes, are told in [the page on concepts](concepts.md#errors-that-arrive).",
		files: []string{"010_errors.sql"},
	},
}
