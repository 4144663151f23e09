// Package transport has the seam over which messages leave a database and come into one: a [Deliverer] takes batches of runs.
//
// Terms. A run is a piece of one direction of one conversation, with numbers that follow each other. A batch is what one speaker
// transmits at once: runs of any number of conversations, in any order, but those of one conversation in order of their numbers. A
// fragment is a part of a message that is too large to travel in a run; all of its fragments go before the run that stands for it.
// The passage of a batch records what it has come through: whose link it arrived on, and how much further it may be forwarded.
//
// Owner of the truth: the databases at the two ends. The sending one keeps each message until a result reports that the far side has it;
// the receiving one knows by instance, epoch, term and numbers what is new, what is a duplicate and what is too early. A part that stands
// between them keeps nothing that matters: it may lose, repeat, delay and reorder.
//
// Guarantees of every Deliverer:
//   - A result comes from the database that took the run in, or from a broker that knows that none behind it does. It is never made up.
//   - Results and an error exclude each other. An error means that the outcome is unknown: any part of the batch may have been
//     taken. Send it again later; nothing is done twice by that.
//   - The answer to a batch of n runs is n results, in the order of the runs.
//   - Several calls may be under way at once, and none waits for the answer to another, except where memory is bounded.
//   - Nothing that was passed in is changed, or read after the call returns.
package transport
