// Package top is the live screen of a broker: its queues, the conversations at their heads, and who waits for whom.
//
// Every interval it looks once, by statements that lock nothing and whose cost does not grow with what waits. A look that
// fails shows as a line of text over what the last one saw, and the next look tries again, so the screen outlives a restart
// of the server. The one thing it can change is the status of a queue, and it asks before.
package top
