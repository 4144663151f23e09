package translator_test

import "testing"

func TestErrorsThatScriptsMeetHaveTheirNumbers(t *testing.T) {
	t.Parallel()
	play(t, []scenario{
		{
			"a unique index over rows that are there twice is 1505", "CREATE TABLE k (a int, b int) INSERT k VALUES (1, 2), (1, 2) CREATE UNIQUE INDEX ux ON k (a, b) DROP TABLE k",
			"(2)\nMsg 1505, 1: The CREATE UNIQUE INDEX statement terminated because a duplicate key was found for the object name 'dbo.k' and the index name 'ux'. The duplicate key value is (1, 2).",
		},
		{
			"an object that others need is 3729", "CREATE SCHEMA sales\nGO\nCREATE TABLE sales.t (a int)\nGO\nDROP SCHEMA sales\nGO\nDROP TABLE sales.t DROP SCHEMA sales",
			"Msg 3729, 1: Cannot drop schema 'sales' because it is being referenced by object 'sales.t'.",
		},
		{"PRINT takes no subquery", "PRINT 'not reached'\nPRINT (SELECT 1)", "Msg 1046, 2: Subqueries are not allowed in this context. Only scalar expressions are allowed."},
		{"a substitute has the type of its directive, NULL each", "RAISERROR ('%s and %d', 16, 1, 'x', 'y') RAISERROR ('%s', 16, 1, 5) RAISERROR ('%*d', 16, 1, 'x', 5) RAISERROR ('%s %d', 16, 1, NULL, NULL)", "Msg 2786, 1: The data type of substitution parameter 2 does not match the expected type of the format specification.\nMsg 2786, 1: The data type of substitution parameter 1 does not match the expected type of the format specification.\nMsg 2786, 1: The data type of substitution parameter 1 does not match the expected type of the format specification.\nMsg 50000, 1: (null) (null)"},
		{"a long message of RAISERROR ends in three points", "DECLARE @m nvarchar(max) = REPLICATE(CAST(N'x' AS nvarchar(max)), 2048) BEGIN TRY RAISERROR (@m, 16, 1) END TRY BEGIN CATCH PRINT CONCAT(LEN(ERROR_MESSAGE()), RIGHT(ERROR_MESSAGE(), 4)) END CATCH SET @m = LEFT(@m, 2047) BEGIN TRY RAISERROR (@m, 16, 1) END TRY BEGIN CATCH PRINT CONCAT(LEN(ERROR_MESSAGE()), RIGHT(ERROR_MESSAGE(), 4)) END CATCH", "2047x...\n2047xxxx"},
		{"a percent sign of RAISERROR begins a directive", "RAISERROR ('50% what %d', 16, 1, 5) RAISERROR ('50%% of %d', 16, 1, 5)", "Msg 2787, 1: Invalid format specification: '% what %d'.\nMsg 50000, 1: 50% of 5"},
		{"a text in place of a name is 203 where it is too long for one", "DECLARE @s nvarchar(400) = 'no such'\nEXEC @s\nSET @s = REPLICATE('x ', 70)\nEXEC @s", "Msg 2812, 2: Could not find stored procedure 'no such'.\nMsg 203, 4: The name 'x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x ' is not a valid identifier."},
		{"SET LANGUAGE says so", "SET LANGUAGE us_english", "Msg 5703, 0: Changed language setting to us_english."},
	})
}
