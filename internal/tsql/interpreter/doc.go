// Package interpreter runs batches of T-SQL, statement by statement. It owns variables, control flow, errors and the rules of
// transactions: which errors end a statement, a module or the batch, and which doom the transaction. Statements with tables are
// compiled by a Translator; what the database does with a transaction is behind Connection.
//
// A batch is compiled as a whole before any of it runs: to instructions in a row with jumps, so that GOTO, loops, TRY and CATCH are
// numbers. An error finds its CATCH by the region of its instruction, then by those of the callers.
package interpreter
