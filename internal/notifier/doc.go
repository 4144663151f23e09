// Package notifier receives what a database notifies on channel parley, and wakes those in this process who wait for it.
//
// Terms. A notification carries a payload: the id of a queue or of a destination that has got a message, or a word. A wake-up is a signal
// in this process; wake-ups that nobody has taken yet are merged into one. A scan reads the database without a notification.
//
// Notifications are hints. They may be lost with the connection, and a sender that asked whether to notify just before it was asked to
// notifies nobody. So whoever waits scans too: at the begin of each connection ([Subscription.Missed]), for a while after senders were
// asked, and at long intervals always.
package notifier
