package console

import "github.com/parley-broker/parley/operate"

// errorDescription asks for the text that the far side of a conversation receives when an operator ends it with an error.
var errorDescription = input{Name: "description", Label: "Description of the error", Value: "Ended by an operator", Kind: "text"}

var conversations = listing{
	path: "/conversations", title: "Conversations",
	about: "The sides of conversations that this database has, those that changed last first.",
	none:  "No conversation is open here.",
	from:  "parley.conversation_endpoints as x",
	columns: []column{
		{"Handle", "x.conversation_handle", code, "/conversations/%s"},
		{"Service", "x.service_name", text, ""},
		{"Far service", "x.far_service", text, ""},
		{"Side", "case x.is_initiator when 1 then 'initiator' else 'target' end", text, ""},
		{"State", "x.state_desc", state, ""},
		{"Since", "x.state_since", moment, ""},
		{"Begun", "x.begun_at", moment, ""},
	},
	filters: []filter{
		{name: "handle", label: "Handle", where: "x.conversation_handle = nullif(substring(? from '^[0-9a-fA-F-]{32,36}$'), '')::uuid"},
		{name: "service", label: "Service", where: "x.service_name = ?"},
		{name: "far", label: "Far service", where: "x.far_service = ?"},
		{name: "state", label: "State", where: "x.state_desc = ?", choices: []string{
			"CONVERSING", "STARTED_OUTBOUND", "STARTED_INBOUND", "DISCONNECTED_OUTBOUND", "DISCONNECTED_INBOUND", "ERROR", "CLOSED",
		}},
	},
	order: []sorting{
		{"coalesce(x.state_since, '-infinity')", "timestamptz", true},
		{"x.conversation_handle", "uuid", false},
	},
	key:      []string{"x.conversation_handle"},
	identity: "x.conversation_handle",
	actions: []action{{
		Name: "end-with-error", Label: "End with an error", IsGrave: true,
		Sentence: "ends this side; the far side receives an error message with this description",
		Inputs:   []input{errorDescription},
		run:      endWithError,
	}},
}

var poisoned = listing{
	path: "/failed", title: "Conversations that are set aside",
	about: "A message of theirs came back so often that nothing is received from them until somebody decides.",
	none:  "No conversation is set aside.",
	from:  "parley.poison_conversations as x",
	columns: []column{
		{"Conversation", "x.conversation_handle", code, "/conversations/%s"},
		{"Queue", "x.queue_name", text, "/queues/%s"},
		{"Service", "x.service_name", text, ""},
		{"Message type", "x.message_type_name", text, ""},
		{"Came back", "x.rollbacks", number, ""},
		{"Waiting", estimated("x.waiting_messages"), number, ""},
		{"Since", "x.set_aside_since", moment, ""},
		{"Error", "concat_ws(': ', x.sqlstate, x.error)", reading, ""},
	},
	filters: []filter{
		{name: "queue", label: "Queue", where: "x.queue_name = ?"},
		{name: "service", label: "Service", where: "x.service_name = ?"},
		{name: "sqlstate", label: "SQLSTATE", where: "x.sqlstate = ?"},
		{name: "error", label: "Error contains", where: "strpos(lower(x.error), lower(?)) > 0"},
	},
	order: []sorting{
		{"x.set_aside_since", "timestamptz", true},
		{"x.conversation_handle", "uuid", false},
	},
	key: []string{"x.conversation_handle"},
	actions: []action{
		{
			Name: "retry", Label: "Put back", Sentence: "puts its messages back, in their order, and forgets how often they failed",
			run: onConversation(putBack),
		},
		{
			Name: "discard-message", Label: "Discard the message", IsGrave: true,
			Sentence: "removes the message that came back for good; what waits behind it goes on",
			run:      onConversation(discardPoisonMessage),
		},
		{
			Name: "discard-conversation", Label: "Discard the conversation", IsGrave: true,
			Sentence: "removes all its messages for good and ends it with an error, which the far side receives",
			Inputs:   []input{errorDescription},
			run:      discardPoisonConversation,
		},
	},
}

var setAsideMessages = listing{
	path: "/failed/messages", title: "Messages of simple queues that are set aside",
	about: "They came back so often that nobody takes them until somebody decides.",
	none:  "No message of a simple queue is set aside.",
	from:  "parley.set_aside_messages as x",
	columns: []column{
		{"Queue", "x.queue_name", text, "/queues/%s"},
		{"Message", "x.message_id", code, "/failed/messages/" + ofKey},
		{"Key", "x.key", text, ""},
		{"Came back", "x.rollbacks", number, ""},
		{"Put at", "x.enqueued_at", moment, ""},
		{"Set aside", "x.set_aside_at", moment, ""},
		{"Bytes", "octet_length(x.body)", size, ""},
		{"Error", "concat_ws(': ', x.sqlstate, x.error)", reading, ""},
	},
	filters: []filter{
		{name: "queue", label: "Queue", where: "x.queue_name = ?"},
		{name: "key", label: "Key", where: "x.key = ?"},
		{name: "error", label: "Error contains", where: "strpos(lower(x.error), lower(?)) > 0"},
	},
	order: []sorting{
		{"x.set_aside_at", "timestamptz", true},
		{"x.queue_name", "text", false},
		{"x.message_id", "bigint", false},
	},
	key: []string{"x.queue_name", "x.message_id"},
	actions: []action{
		{
			Name: "retry", Label: "Put back", Sentence: "puts it back to where it was, and forgets how often it failed",
			run: onMessage(operate.RetryMessage),
		},
		{
			Name: "discard", Label: "Discard", IsGrave: true, Sentence: "removes it for good",
			run: onMessage(discardMessage),
		},
	},
}

var failing = listing{
	path: "/failed/failing", title: "Conversations that fail and are tried again",
	about: "The last attempt at their message failed; they are not set aside yet.",
	none:  "Nothing that was reported fails now.",
	from:  "parley.failing_conversations as x",
	columns: []column{
		{"Conversation", "x.conversation_handle", code, "/conversations/%s"},
		{"Queue", "x.queue_name", text, "/queues/%s"},
		{"Service", "x.service_name", text, ""},
		{"Message type", "x.message_type_name", text, ""},
		{"Came back", "x.rollbacks", number, ""},
		{"Attempts", "x.attempts", number, ""},
		{"Next", "x.retry_at", moment, ""},
		{"Last", "x.error_time", moment, ""},
		{"Error", "concat_ws(': ', x.sqlstate, x.error)", reading, ""},
	},
	filters: []filter{
		{name: "queue", label: "Queue", where: "x.queue_name = ?"},
		{name: "service", label: "Service", where: "x.service_name = ?"},
		{name: "error", label: "Error contains", where: "strpos(lower(x.error), lower(?)) > 0"},
	},
	order: []sorting{
		{"coalesce(x.error_time, '-infinity')", "timestamptz", true},
		{"x.conversation_handle", "uuid", false},
	},
	key:      []string{"x.conversation_handle"},
	identity: "x.conversation_handle",
	actions: []action{{
		Name: "set-aside", Label: "Set aside", Sentence: "is received no more until somebody decides about it",
		run: onConversation(setConversationAside),
	}},
}

var failingMessages = listing{
	path: "/failed/failing-messages", title: "Messages of simple queues that fail and are tried again",
	about: "The last attempt at them failed; they are not set aside yet.",
	none:  "No message of a simple queue that was reported fails now.",
	from:  "parley.failing_messages as x",
	columns: []column{
		{"Queue", "x.queue_name", text, "/queues/%s"},
		{"Message", "x.message_id", code, ""},
		{"Key", "x.key", text, ""},
		{"Attempts", "x.attempts", number, ""},
		{"Next", "x.retry_at", moment, ""},
		{"Last", "x.error_time", moment, ""},
		{"Error", "concat_ws(': ', x.sqlstate, x.error)", reading, ""},
	},
	filters: []filter{
		{name: "queue", label: "Queue", where: "x.queue_name = ?"},
		{name: "error", label: "Error contains", where: "strpos(lower(x.error), lower(?)) > 0"},
	},
	order: []sorting{
		{"coalesce(x.error_time, '-infinity')", "timestamptz", true},
		{"x.queue_name", "text", false},
		{"x.message_id", "bigint", false},
	},
	key: []string{"x.queue_name", "x.message_id"},
	actions: []action{
		{
			Name: "set-aside", Label: "Set aside", Sentence: "is taken no more until somebody decides about it",
			run: onMessage(setMessageAside),
		},
		{
			Name: "withdraw", Label: "Withdraw", IsGrave: true, Sentence: "is removed for good",
			run: onMessage(cancelMessage),
		},
	},
}

var delayedMessages = listing{
	path: "/delayed", title: "Messages of simple queues that are not due yet",
	about: "Nobody can take them before their time.",
	none:  "No message of a simple queue waits for its time.",
	from:  "parley.delayed_messages as x",
	columns: []column{
		{"Queue", "x.queue_name", text, "/queues/%s"},
		{"Number", "x.delayed_id", code, ""},
		{"Due", "x.due_at", moment, ""},
		{"Key", "x.key", text, ""},
		{"Priority", "x.priority", number, ""},
		{"Bytes", "octet_length(x.body)", size, ""},
	},
	filters: []filter{
		{name: "queue", label: "Queue", where: "x.queue_name = ?"},
		{name: "key", label: "Key", where: "x.key = ?"},
	},
	order: []sorting{
		{"x.due_at", "timestamptz", false},
		{"x.delayed_id", "bigint", false},
	},
	key: []string{"x.queue_name", "x.delayed_id"},
	actions: []action{
		{
			Name: "now", Label: "Make due now", Sentence: "can be taken from now on",
			run: onMessage(deliverMessageNow),
		},
		{
			Name: "withdraw", Label: "Withdraw", IsGrave: true, Sentence: "is removed for good",
			run: onMessage(withdrawMessage),
		},
	},
}

var delayedSends = listing{
	path: "/delayed/sends", title: "Messages of conversations that are not due yet",
	about: "They are sent at their time.",
	none:  "No message of a conversation waits for its time.",
	from:  "parley.delayed_sends as x",
	columns: []column{
		{"Conversation", "x.conversation_handle", code, "/conversations/%s"},
		{"Number", "x.delayed_id", code, ""},
		{"Due", "x.due_at", moment, ""},
		{"From", "x.service_name", text, ""},
		{"To", "x.far_service", text, ""},
		{"Message type", "x.message_type_name", text, ""},
		{"Bytes", "octet_length(x.body)", size, ""},
	},
	filters: []filter{
		{name: "queue", label: "Queue", where: "x.queue_name = ?"},
		{name: "service", label: "From", where: "x.service_name = ?"},
	},
	order: []sorting{{"x.due_at", "timestamptz", false}, {"x.delayed_id", "bigint", false}},
	key:   []string{"x.conversation_handle", "x.delayed_id"},
	actions: []action{
		{
			Name: "now", Label: "Make due now", Sentence: "is sent now",
			run: onDelayedSend(sendNow),
		},
		{
			Name: "withdraw", Label: "Withdraw", IsGrave: true, Sentence: "is not sent at all",
			run: onDelayedSend(withdrawSend),
		},
	},
}

var operatorActions = listing{
	path: "/actions", title: "Actions",
	about: "Changes that people made by the console, the newest first.",
	none:  "Nobody has changed anything by the console yet.",
	from:  "parley.operator_actions as x",
	columns: []column{
		{"When", "x.done_at", moment, ""},
		{"Role", "x.role_name", text, ""},
		{"What", "x.operation", text, ""},
		{"Objects", "x.object_count", number, ""},
		{"Names", "array_to_string(x.objects, ', ')", reading, ""},
		{"Result", "x.detail", reading, ""},
	},
	filters: []filter{
		{name: "role", label: "Role", where: "x.role_name = ?"},
		{name: "operation", label: "What contains", where: "strpos(lower(x.operation), lower(?)) > 0"},
	},
	order: []sorting{{"x.action_id", "bigint", true}},
}
