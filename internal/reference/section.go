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
		files: []string{"catalog/message_types.sql", "conversation/validation.sql"},
	},
	{
		title: "Contracts",
		files: []string{"catalog/contracts.sql"},
	},
	{
		title: "Queues",
		intro: "A queue is named by one or two parts, `queue` or `schema.queue`; each may stand in brackets or double quotes. Without a\n" +
			"schema it is `dbo`, which need not exist: it is a part of the name and nothing more.",
		files: []string{"catalog/queues.sql", "catalog/alter_queue.sql", "activation/dropped_queues.sql"},
	},
	{
		title: "Simple queues",
		intro: "Queues without conversations: see [the page on simple queues](simple-queues.md).",
		files: []string{
			"simple/messages.sql", "simple/put.sql", "simple/put_once.sql", "simple/put_traced.sql", "simple/take.sql",
			"simple/failures.sql", "simple/inspection.sql",
			"views/simple_queues.sql", "activation/message_deliveries.sql",
		},
	},
	{
		title: "Services",
		files: []string{"catalog/services.sql"},
	},
	{
		title: "Routes",
		intro: "Where services are that are not in this database: see [the page on routing](routing.md).",
		files: []string{"catalog/routes.sql"},
	},
	{
		title: "Dialog security",
		intro: "How bodies are kept from whoever carries them, and who may say what to whom: see\n" +
			"[the page on dialog security](dialog-security.md).",
		files: []string{"catalog/certificates.sql", "catalog/remote_service_bindings.sql", "trust/dialog_security.sql"},
	},
	{
		title: "Broker priorities",
		files: []string{"catalog/priorities.sql"},
	},
	{
		title: "Dialogs",
		files: []string{"conversation/begin_dialog.sql"},
	},
	{
		title: "Sending",
		intro: "Bodies may be given as `bytea`, `text`, `jsonb`, `json` or `xml`; text travels as UTF-8.",
		files: []string{
			"send/send.sql", "send/send_forms.sql", "send/send_traced.sql", "send/arrays.sql", "send/begin_and_send.sql",
			"conversation/deliver.sql", "conversation/connect.sql", "send/send_at.sql", "send/send_once.sql", "conversation/deduplication.sql",
		},
	},
	{
		title: "Receiving",
		files: []string{
			"conversation/received_message.sql", "receive/receive.sql", "receive/receive_group.sql",
			"receive/savepoints.sql", "receive/receive_named.sql", "receive/receive_reply.sql", "receive/pause.sql",
			"receive/group_statements.sql", "receive/lock_groups.sql", "conversation/messages.sql",
			"receive/wait_for_message.sql", "activation/wait_statement.sql",
		},
	},
	{
		title: "Reading queues",
		intro: "Each queue has a view in schema `parley_queue`, called like the queue, in the columns of\n" +
			"[`parley.received_message`](#parleyreceived_message): `select * from parley_queue.shop`.",
		files: []string{"views/queue_views.sql", "views/queue_inspection.sql"},
	},
	{
		title: "Poison messages",
		intro: "What is set aside, and what can be done about it: see [the page on poison messages](poison.md).",
		files: []string{
			"conversation/set_aside_conversations.sql", "poison/poison.sql", "poison/set_aside.sql", "poison/poison_statements.sql",
			"poison/retry_matching.sql", "poison/reader_failures.sql",
			"poison/poison_views.sql",
		},
	},
	{
		title: "Ending conversations",
		files: []string{"conversation/conversation_rights.sql", "conversation/end_conversation.sql", "conversation/break_conversation.sql"},
	},
	{
		title: "Conversations that are used again",
		intro: "See [conversations](conversations.md).",
		files: []string{"conversation/pooled_conversations.sql", "conversation/warm_conversations.sql", "views/pooled_conversations.sql"},
	},
	{
		title: "Quotas",
		intro: "See [queues](queues.md#quotas).",
		files: []string{"conversation/quotas.sql", "views/queue_quotas.sql"},
	},
	{
		title: "Timers",
		files: []string{"conversation/timers.sql", "activation/fire_timers.sql"},
	},
	{
		title: "Activation",
		intro: "What the daemon, `parley serve`, reports about its work.",
		files: []string{"activation/queue_monitors.sql"},
	},
	{
		title: "External activation",
		intro: "What these are for: [activation](activation.md).",
		files: []string{"activation/activation_statements.sql", "activation/deliveries.sql"},
	},
	{
		title: "Event notifications",
		files: []string{"activation/event_notifications.sql", "views/event_views.sql", "activation/event_messages.sql"},
	},
	{
		title: "Permissions",
		files: []string{"base/roles.sql", "catalog/grant.sql"},
	},
	{
		title: "Peers",
		intro: "Brokers elsewhere that this database trusts: see [the page on security](security.md).",
		files: []string{
			"trust/peers.sql", "trust/peer_statements.sql", "trust/identities.sql", "trust/peer_dialog_certificates.sql", "trust/pairing.sql",
			"trust/pairing_daemon.sql", "trust/broker_certificates.sql",
		},
	},
	{
		title: "Switching the broker",
		intro: "What `ALTER DATABASE ... SET` does to a broker in SQL Server. The page on [backup and restore](backup.md) says when.",
		files: []string{"base/broker_identity.sql", "broker/broker_switches.sql", "transport/destination_statements.sql"},
	},
	{
		title: "Diagnosis",
		intro: "What `parley diagnose` shows; the page on [diagnosis](diagnose.md) explains each finding.",
		files: []string{
			"diagnosis/diagnosis_checks.sql", "diagnosis/diagnose.sql", "diagnosis/find_broker_faults.sql",
			"diagnosis/find_definition_faults.sql",
			"diagnosis/find_reader_faults.sql", "diagnosis/find_conversation_faults.sql", "diagnosis/find_old_transactions.sql",
			"diagnosis/find_destination_faults.sql",
			"diagnosis/check_broker.sql", "diagnosis/repair_broker.sql", "diagnosis/explain_conversation.sql", "diagnosis/trace_conversation.sql",
			"diagnosis/traces.sql",
		},
	},
	{
		title: "Catalog",
		intro: "Everybody may see what exists.",
		files: []string{"views/catalog_views.sql", "views/route_views.sql"},
	},
	{
		title: "Conversations",
		intro: "Everybody sees the conversations of his own services and of roles that he is a member of; administrators see all.",
		files: []string{"views/conversation_views.sql", "views/transmission_queue.sql"},
	},
	{
		title: "Monitoring",
		intro: "What each number is made of, and what to watch, is on [the page on monitoring](monitoring.md).",
		files: []string{
			"views/performance_counters.sql", "views/broker_metrics.sql", "views/queue_activity.sql", "views/conversation_activity.sql",
			"views/passing_messages.sql", "transport/daemon_reports.sql", "views/endpoint_views.sql", "views/transmission_destinations.sql",
		},
	},
	{
		title: "Errors",
		intro: "Each error carries its SQL Server number twice: in its SQLSTATE, class `SB` and then the number in base 36, and\n" +
			"at the start of its DETAIL. The message states the fact, the DETAIL the values, the HINT what to do. Errors of PostgreSQL itself " +
			"keep\ntheir own SQLSTATE.\n\n" +
			"The list stands in the database too: `select * from parley.errors where number = 8429`. A number has a row for " +
			"each situation in which\n" +
			"it is raised; … stands for a value. The cause follows the number in the DETAIL, the remedy is the HINT.\n\n" +
			"Errors that arrive as messages, with negative codes, are listed in [the page on concepts](concepts.md#errors-that-arrive).",
		files: []string{"base/errors.sql"},
	},
	{
		title: "Mail",
		intro: "See [the page on mail](mail.md). Each function asks for a right of its own; an error has a SQLSTATE of class `PM`, " +
			"and `select * from parley_mail.errors` lists them.",
		files: []string{
			"mail/submission.sql", "mail/send_batch.sql", "mail/stored_attachments.sql", "mail/render.sql", "mail/rights.sql",
			"mail/configuration.sql", "mail/apply.sql", "mail/directory_settings.sql", "mail/quotas.sql", "mail/queue_views.sql",
			"mail/operations.sql", "mail/message_filter.sql", "mail/sorting.sql", "mail/find_queues.sql", "mail/waiting_messages.sql",
			"mail/message_views.sql", "mail/message_operations.sql", "mail/remove_messages.sql", "mail/scheduled_messages.sql",
			"mail/export_messages.sql",
			"mail/kept_bodies.sql", "mail/parts.sql", "mail/held_domains.sql", "mail/test_address.sql", "mail/tracking.sql",
			"mail/pressure.sql", "mail/pressure_views.sql", "mail/daemons.sql", "mail/counters.sql", "mail/findings.sql",
			"mail/errors.sql",
		},
	},
}
