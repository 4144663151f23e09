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
		files: []string{"parley/catalog/message_types.sql", "parley/conversation/validation.sql"},
	},
	{
		title: "Contracts",
		files: []string{"parley/catalog/contracts.sql"},
	},
	{
		title: "Queues",
		intro: "A queue is named by one or two parts, `queue` or `schema.queue`; each may stand in brackets or double quotes. Without a\n" +
			"schema it is `dbo`, which need not exist: it is a part of the name and nothing more.",
		files: []string{
			"parley/catalog/queues.sql", "parley/catalog/queue_statements.sql", "parley/catalog/alter_queue.sql",
			"parley/catalog/retry_policies.sql", "parley/activation/dropped_queues.sql",
		},
	},
	{
		title: "Simple queues",
		intro: "Queues without conversations: see [the page on simple queues](guides/simple-queues.md).",
		files: []string{
			"parley/simple/messages.sql", "parley/simple/put.sql",
			"parley/simple/put_each.sql", "parley/simple/put_unique.sql", "parley/simple/batches.sql",
			"parley/simple/take.sql", "parley/simple/failures.sql", "parley/simple/retry.sql", "parley/simple/limits.sql",
			"parley/simple/finished.sql", "parley/activation/long_work.sql",
			"parley/schedules/schedules.sql", "parley/schedules/due_schedules.sql",
			"parley/simple/inspection.sql", "parley/simple/edits.sql", "parley/views/simple_queues.sql",
			"parley/activation/message_deliveries.sql", "parley/activation/refused_messages.sql",
		},
	},
	{
		title: "Services",
		files: []string{"parley/catalog/services.sql"},
	},
	{
		title: "Routes",
		intro: "Where services are that are not in this database: see [the page on routing](guides/routing.md).",
		files: []string{"parley/catalog/routes.sql"},
	},
	{
		title: "Dialog security",
		intro: "How bodies are kept from whoever carries them, and who may say what to whom: see\n" +
			"[the page on dialog security](guides/dialog-security.md).",
		files: []string{
			"parley/catalog/certificates.sql", "parley/catalog/remote_service_bindings.sql",
			"parley/trust/dialog_security.sql",
		},
	},
	{
		title: "Broker priorities",
		files: []string{"parley/catalog/priorities.sql"},
	},
	{
		title: "Dialogs",
		files: []string{"parley/conversation/begin_dialog.sql"},
	},
	{
		title: "Sending",
		intro: "Bodies may be given as `bytea`, `text`, `jsonb`, `json` or `xml`; text travels as UTF-8.",
		files: []string{
			"parley/send/send.sql", "parley/send/send_forms.sql", "parley/send/trace_context.sql", "parley/send/arrays.sql",
			"parley/send/begin_and_send.sql", "parley/conversation/deliver.sql", "parley/conversation/connect.sql",
			"parley/send/delayed_statements.sql", "parley/conversation/deduplication.sql",
		},
	},
	{
		title: "Receiving",
		files: []string{
			"parley/conversation/received_message.sql", "parley/receive/receive.sql", "parley/receive/receive_group.sql",
			"parley/receive/savepoints.sql", "parley/receive/receive_named.sql", "parley/receive/receive_reply.sql",
			"parley/receive/pause.sql", "parley/receive/group_statements.sql", "parley/receive/lock_groups.sql",
			"parley/conversation/messages.sql", "parley/receive/wait_for_message.sql", "parley/activation/wait_statement.sql",
		},
	},
	{
		title: "Reading queues",
		intro: "Each queue has a view in schema `parley_queue`, called like the queue, in the columns of\n" +
			"[`parley.received_message`](#parleyreceived_message): `select * from parley_queue.shop`.",
		files: []string{"parley/views/queue_views.sql", "parley/views/queue_inspection.sql"},
	},
	{
		title: "Poison messages",
		intro: "Messages and conversations that are set aside, and their remedies: see [the page on poison messages](guides/poison.md).",
		files: []string{
			"parley/conversation/set_aside_conversations.sql", "parley/poison/poison.sql", "parley/poison/set_aside.sql",
			"parley/poison/poison_statements.sql", "parley/poison/retry_matching.sql", "parley/poison/reader_failures.sql",
			"parley/poison/poison_views.sql", "parley/poison/conversation_waits.sql",
		},
	},
	{
		title: "Ending conversations",
		files: []string{
			"parley/conversation/conversation_rights.sql", "parley/conversation/end_conversation.sql",
			"parley/conversation/end_conversations.sql", "parley/receive/receive_and_end.sql",
			"parley/conversation/break_conversation.sql",
		},
	},
	{
		title: "Conversations that are used again",
		intro: "See [conversations](guides/conversations.md).",
		files: []string{
			"parley/conversation/pooled_conversations.sql", "parley/conversation/warm_conversations.sql",
			"parley/views/pooled_conversations.sql",
		},
	},
	{
		title: "Quotas",
		intro: "See [queues](guides/queues.md#quotas).",
		files: []string{"parley/conversation/quotas.sql", "parley/views/queue_quotas.sql"},
	},
	{
		title: "Timers",
		files: []string{"parley/conversation/timers.sql", "parley/activation/fire_timers.sql"},
	},
	{
		title: "Activation",
		intro: "Reports of the daemon, `parley serve`, about its work.",
		files: []string{"parley/activation/queue_monitors.sql"},
	},
	{
		title: "External activation",
		intro: "Their purpose: [activation](guides/activation.md).",
		files: []string{
			"parley/activation/activation_statements.sql", "parley/activation/deliveries.sql", "parley/activation/delivery_claims.sql",
		},
	},
	{
		title: "Event notifications",
		files: []string{
			"parley/activation/event_notifications.sql", "parley/views/event_views.sql",
			"parley/activation/event_messages.sql",
		},
	},
	{
		title: "Permissions",
		files: []string{"parley/base/roles.sql", "parley/catalog/grant.sql"},
	},
	{
		title: "Peers",
		intro: "Brokers elsewhere that this database trusts: see [the page on security](guides/security.md).",
		files: []string{
			"parley/trust/peers.sql", "parley/trust/peer_statements.sql", "parley/trust/identities.sql",
			"parley/trust/peer_dialog_certificates.sql", "parley/trust/pairing.sql", "parley/trust/pairing_daemon.sql",
			"parley/trust/broker_certificates.sql",
		},
	},
	{
		title: "Switching the broker",
		intro: "The switches that `ALTER DATABASE ... SET` has in SQL Server. The page on [backup and restore](guides/backup.md) says when.",
		files: []string{
			"parley/transport/attach.sql", "parley/broker/broker_switches.sql",
			"parley/transport/destination_statements.sql",
		},
	},
	{
		title: "Diagnosis",
		intro: "The findings of `parley diagnose`; the page on [diagnosis](reference/diagnose.md) explains each finding.",
		files: []string{
			"parley/diagnosis/diagnosis_checks.sql", "parley/diagnosis/diagnose.sql",
			"parley/diagnosis/find_broker_faults.sql", "parley/diagnosis/find_definition_faults.sql",
			"parley/diagnosis/find_reader_faults.sql", "parley/diagnosis/find_conversation_faults.sql",
			"parley/diagnosis/find_old_transactions.sql", "parley/diagnosis/find_destination_faults.sql",
			"parley/diagnosis/check_broker.sql", "parley/diagnosis/repair_broker.sql",
			"parley/diagnosis/explain_conversation.sql", "parley/diagnosis/trace_conversation.sql",
			"parley/diagnosis/traces.sql", "parley/diagnosis/operator_actions.sql",
		},
	},
	{
		title: "Catalog",
		intro: "Everybody may see what exists.",
		files: []string{"parley/views/catalog_views.sql", "parley/views/route_views.sql"},
	},
	{
		title: "Conversations",
		intro: "Everybody sees the conversations of his own services and of roles that he is a member of; administrators see all.",
		files: []string{"parley/views/conversation_views.sql", "parley/views/transmission_queue.sql"},
	},
	{
		title: "Monitoring",
		intro: "[The page on monitoring](guides/monitoring.md) says how each number is made, and which to watch.",
		files: []string{
			"parley/views/performance_counters.sql", "parley/views/broker_metrics.sql", "parley/views/queue_activity.sql",
			"parley/views/conversation_activity.sql", "parley/views/passing_messages.sql",
			"parley/transport/daemon_reports.sql", "parley/views/endpoint_views.sql",
			"parley/views/transmission_destinations.sql",
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
			"Errors that arrive as messages, with negative codes, are listed in [the page on concepts](concepts/broker.md#errors-that-arrive).",
		files: []string{"parley/base/errors.sql"},
	},
	{
		title: "Mail",
		intro: "See [the page on mail](mail/README.md). Each function asks for a right of its own; an error has a SQLSTATE of class `PM`, " +
			"and `select * from parley_mail.errors` lists them.",
		files: []string{
			"mail/submission/submission.sql", "mail/submission/send_batch.sql", "mail/submission/stored_attachments.sql",
			"mail/submission/render.sql", "mail/base/rights.sql", "mail/settings/configuration.sql",
			"mail/settings/apply.sql", "mail/settings/directory_settings.sql", "mail/settings/quotas.sql",
			"mail/queues/queue_views.sql", "mail/operations/operations.sql", "mail/views/message_filter.sql",
			"mail/views/sorting.sql", "mail/views/find_queues.sql", "mail/views/waiting_messages.sql",
			"mail/views/message_views.sql", "mail/operations/message_operations.sql", "mail/operations/remove_messages.sql",
			"mail/operations/scheduled_messages.sql", "mail/views/export_messages.sql", "mail/services/kept_bodies.sql",
			"mail/services/parts.sql", "mail/queues/held_domains.sql", "mail/operations/test_address.sql",
			"mail/messages/tracking.sql", "mail/pressure/pressure.sql", "mail/pressure/pressure_views.sql",
			"mail/pressure/daemons.sql", "mail/views/counters.sql", "mail/operations/findings.sql", "mail/base/errors.sql",
		},
	},
	{
		title: "Integration engine",
		intro: "See [the page on its message box](internals/flow.md). Each function asks for a right of its own; an error has a SQLSTATE of " +
			"class `PF`, and `select * from parley_flow.errors` lists them.",
		files: []string{
			"flow/publish/forms.sql", "flow/requests/answer.sql", "flow/publish/quotas.sql", "flow/base/grants.sql",
			"flow/definitions/settings.sql",
			"flow/definitions/faults.sql", "flow/subscriptions/changes.sql", "flow/subscriptions/apply.sql", "flow/subscriptions/states.sql",
			"flow/messages/failure_codes.sql", "flow/operations/suspended.sql", "flow/operations/content.sql",
			"flow/operations/maintenance.sql", "flow/operations/findings.sql", "flow/operations/pressure.sql", "flow/operations/retentions.sql",
			"flow/views/messages.sql", "flow/views/ports.sql", "flow/views/counters.sql", "flow/views/track.sql", "flow/base/errors.sql",
			"flow/process/start.sql", "flow/process/activities.sql", "flow/operations/instances.sql", "flow/process/migration.sql",
			"flow/views/instances.sql",
		},
	},
}
