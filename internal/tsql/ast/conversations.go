package ast

// BeginDialog is BEGIN DIALOG CONVERSATION. Page: statements/begin-dialog-conversation-transact-sql.
type BeginDialog struct {
	StatementAt
	HasConversation bool   // the word CONVERSATION is written
	Handle          string // the variable that takes the handle, with its @
	From            Named
	To              Named
	Instance        Expression // the broker's identifier or 'CURRENT DATABASE', or nil
	Contract        Named      // empty where ON CONTRACT is left out
	// RelatedKind is RELATED_CONVERSATION or RELATED_CONVERSATION_GROUP, or empty.
	RelatedKind string
	Related     Expression
	Lifetime    Expression // in seconds, or nil
	Encryption  string     // ON, OFF, or empty
	Options     []string   // the settings above, in the order in which WITH has them
}

// BeginTimer is BEGIN CONVERSATION TIMER. Page: statements/begin-conversation-timer-transact-sql.
type BeginTimer struct {
	StatementAt
	Handle  Expression
	Timeout Expression // in seconds
}

// Send is SEND. Page: statements/send-transact-sql.
type Send struct {
	StatementAt
	Handles     []Expression
	Parens      bool // the handles stand in parentheses
	HasType     bool
	MessageType Named      // empty where MESSAGE TYPE is left out
	HasBody     bool       // parentheses are written
	Body        Expression // or nil
}

// Receive is RECEIVE. Page: statements/receive-transact-sql.
type Receive struct {
	StatementAt
	Top   *Top // or nil
	Items []SelectItem
	Queue Name
	Into  string // the table variable, with its @, or empty
	// Where compares conversation_handle or conversation_group_id with a value, or is nil.
	Where Condition
}

// GetGroup is GET CONVERSATION GROUP. Page: statements/get-conversation-group-transact-sql.
type GetGroup struct {
	StatementAt
	Variable string // with its @
	Queue    Name
}

// WaitFor is WAITFOR (RECEIVE or GET CONVERSATION GROUP). Page: language-elements/waitfor-transact-sql.
type WaitFor struct {
	StatementAt
	Statement Statement  // a Receive or a GetGroup
	Timeout   Expression // in milliseconds, or nil
}

// EndConversation is END CONVERSATION. Page: statements/end-conversation-transact-sql.
type EndConversation struct {
	StatementAt
	Handle      Expression
	Code        Expression // of WITH ERROR, or nil
	Description Expression // of WITH ERROR, or nil
	Cleanup     bool
}

// MoveConversation is MOVE CONVERSATION. Page: statements/move-conversation-transact-sql.
type MoveConversation struct {
	StatementAt
	Handle Expression
	Group  Expression
}
