package ast

// MessageType is CREATE or ALTER MESSAGE TYPE. Page: statements/create-message-type-transact-sql.
type MessageType struct {
	StatementAt
	Verb       string // CREATE or ALTER
	Name       Name
	Owner      string // AUTHORIZATION, or empty
	Validation string // NONE, EMPTY, WELL_FORMED_XML, VALID_XML, or empty
	Collection Name   // the schema collection of VALID_XML
}

// Contract is CREATE CONTRACT. Page: statements/create-contract-transact-sql.
type Contract struct {
	StatementAt
	Name     Name
	Owner    string
	Messages []*ContractMessage
}

// ContractMessage is a message type of a contract.
type ContractMessage struct {
	Place
	Type   string
	SentBy string // INITIATOR, TARGET or ANY
}

// Queue is CREATE or ALTER QUEUE. Page: statements/create-queue-transact-sql.
type Queue struct {
	StatementAt
	Verb       string // CREATE or ALTER
	Name       Name
	HasWith    bool
	Options    []*QueueOption
	Filegroup  string // ON filegroup, or empty
	Operation  string // REBUILD, REORGANIZE or MOVE TO of ALTER, or empty
	Parameters []*Option
}

// QueueOption is STATUS, RETENTION, ACTIVATION (...) or POISON_MESSAGE_HANDLING (...) of a queue.
type QueueOption struct {
	Place
	Name string // STATUS, RETENTION, ACTIVATION, POISON_MESSAGE_HANDLING
	On   bool   // of all but ACTIVATION
	// Activation has the settings in the parentheses of ACTIVATION.
	Activation []*ActivationOption
}

// ActivationOption is STATUS, PROCEDURE_NAME, MAX_QUEUE_READERS, EXECUTE AS or DROP of a queue's activation.
type ActivationOption struct {
	Place
	Name      string // STATUS, PROCEDURE_NAME, MAX_QUEUE_READERS, EXECUTE AS, DROP
	On        bool   // of STATUS
	Procedure Name
	Readers   int
	// As is SELF or OWNER, or USER for the user of UserName.
	As       string
	UserName Expression
}

// Service is CREATE or ALTER SERVICE. Page: statements/create-service-transact-sql.
type Service struct {
	StatementAt
	Verb      string // CREATE or ALTER
	Name      Name
	Owner     string
	Queue     Name // empty where ALTER does not name it
	Contracts []*ServiceContract
}

// ServiceContract is a contract of a service.
type ServiceContract struct {
	Place
	Change string // ADD or DROP of ALTER SERVICE, or empty
	Name   string
}

// Route is CREATE or ALTER ROUTE. Page: statements/create-route-transact-sql.
type Route struct {
	StatementAt
	Verb    string // CREATE or ALTER
	Name    Name
	Owner   string
	Options []*Option // SERVICE_NAME, BROKER_INSTANCE, LIFETIME, ADDRESS, MIRROR_ADDRESS
}

// Binding is CREATE or ALTER REMOTE SERVICE BINDING. Page: statements/create-remote-service-binding-transact-sql.
type Binding struct {
	StatementAt
	Verb    string // CREATE or ALTER
	Name    Name
	Owner   string
	Service Expression // TO SERVICE 'name', nil for ALTER
	Options []*Option  // USER, ANONYMOUS
}

// Priority is CREATE or ALTER BROKER PRIORITY. Page: statements/create-broker-priority-transact-sql.
type Priority struct {
	StatementAt
	Verb    string // CREATE or ALTER
	Name    Name
	Options []*Option // CONTRACT_NAME, LOCAL_SERVICE_NAME, REMOTE_SERVICE_NAME, PRIORITY_LEVEL
	HasSet  bool      // the parentheses with the settings are written
}

// Endpoint is CREATE or ALTER ENDPOINT. Page: statements/create-endpoint-transact-sql.
type Endpoint struct {
	StatementAt
	Verb     string // CREATE or ALTER
	Name     Name
	Owner    string
	Options  []*Option // STATE and others
	Protocol string    // TCP, HTTP, or empty
	Address  []*Option // LISTENER_PORT, LISTENER_IP
	Payload  string    // SERVICE_BROKER, TSQL, DATABASE_MIRRORING, or empty
	Settings []*Option // AUTHENTICATION, ENCRYPTION, MESSAGE_FORWARDING and others
}

// EventNotification is CREATE EVENT NOTIFICATION. Page: statements/create-event-notification-transact-sql.
type EventNotification struct {
	StatementAt
	Name     Name
	On       string // SERVER, DATABASE or QUEUE
	Queue    Name
	FanIn    bool
	Events   []string
	Service  Expression
	Instance Expression
}
