// Package top is the live screen of a broker: its queues, the conversations at their heads, and which session waits for which.
//
// Every interval it reads once, by statements that lock nothing and whose cost does not grow with what waits. A reading that
// fails shows as a line of text over what the last one saw, and the next one tries again, so the screen outlives a restart
// of the server. The one thing it can change is the status of a queue, and it asks before.
package top
