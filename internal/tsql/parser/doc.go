// Package parser makes the syntax tree of a batch of T-SQL, by recursive descent.
//
// Each token is taken by a rule, or it is an error: nothing is passed over. One error refuses the whole batch, as SQL
// Server does, with its number, state, severity, line and column, and with the tokens that would have fitted. The
// parser resolves no names; GO and $(variables) belong to the script around the batch.
package parser
