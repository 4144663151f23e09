package parley

// Events of a queue that a service can be notified of.
const (
	EventQueueActivation     = "QUEUE_ACTIVATION"      // messages wait that nobody receives
	EventBrokerQueueDisabled = "BROKER_QUEUE_DISABLED" // by poison message handling
)

// PostEventNotificationContract is the contract that a service must accept to be notified, and EventNotificationMessageType
// the type of what it gets: XML with the element EVENT_INSTANCE.
const (
	PostEventNotificationContract = "http://schemas.microsoft.com/SQL/Notifications/PostEventNotification"
	EventNotificationMessageType  = "http://schemas.microsoft.com/SQL/Notifications/EventNotification"
)
