package runner_test

// A risk is a case in which the fast answer is wrong, with a script that shows the right one. Each has objects of its own.
type risk struct {
	number       int
	rule         string
	script, want string
}

// The cases of transactions, errors and control flow; risks_broker_test.go and risks_values_test.go have the others.
var risksOfControl = []risk{
	{1, "savepoints of statements do not count, COMMIT counts down, ROLLBACK ends all", `
CREATE TABLE r1 (id int CONSTRAINT PK_r1 PRIMARY KEY)
BEGIN TRAN
BEGIN TRAN
INSERT r1 VALUES (1)
INSERT r1 VALUES (1)
SAVE TRAN s
INSERT r1 VALUES (2)
ROLLBACK TRAN s
PRINT @@TRANCOUNT
COMMIT
PRINT @@TRANCOUNT
SELECT id FROM r1
BEGIN TRAN
ROLLBACK
PRINT @@TRANCOUNT
SELECT id FROM r1`, `
Msg 2627, Level 14, State 1, Line 5
Violation of PRIMARY KEY constraint 'PK_r1'. Cannot insert duplicate key in object 'dbo.r1'. The duplicate key value is (1).
The statement has been terminated.
2
1
id
1
0
id`},
	{2, "ROLLBACK in a procedure ends the caller's transaction, is 266, and the batch goes on", `
CREATE TABLE r2 (id int)
GO
CREATE PROCEDURE r2p AS INSERT r2 VALUES (2) ROLLBACK
GO
BEGIN TRAN
INSERT r2 VALUES (1)
EXEC r2p
PRINT @@TRANCOUNT
INSERT r2 VALUES (3)
SELECT id FROM r2`, `
Msg 266, Level 16, State 2, Procedure r2p, Line 0
Transaction count after EXECUTE indicates a mismatching number of BEGIN and COMMIT statements. Previous count = 1, current count = 0.
0
id
3`},
	{3, "an error of a statement undoes it alone", `
CREATE TABLE r3 (id int NOT NULL CONSTRAINT PK_r3 PRIMARY KEY, n int CONSTRAINT CK_r3 CHECK (n > 0))
GO
BEGIN TRAN
INSERT r3 VALUES (1, 1)
INSERT r3 VALUES (2, 1), (1, 1)
PRINT @@ERROR
INSERT r3 VALUES (3, 0)
PRINT @@ERROR
INSERT r3 VALUES (NULL, 1)
PRINT @@ERROR
UPDATE r3 SET n = 1 / (id - 1)
PRINT @@ERROR
COMMIT
SELECT id, n FROM r3`, `
Msg 2627, Level 14, State 1, Line 3
Violation of PRIMARY KEY constraint 'PK_r3'. Cannot insert duplicate key in object 'dbo.r3'. The duplicate key value is (1).
The statement has been terminated.
2627
Msg 547, Level 16, State 0, Line 5
The INSERT statement conflicted with the CHECK constraint "CK_r3". The conflict occurred in database "DB", table "dbo.r3", column 'n'.
The statement has been terminated.
547
Msg 515, Level 16, State 2, Line 7
Cannot insert the value NULL into column 'id', table 'DB.dbo.r3'; column does not allow nulls. INSERT fails.
The statement has been terminated.
515
Msg 8134, Level 16, State 1, Line 9
Divide by zero error encountered.
The statement has been terminated.
8134
id n
1 1`},
	{4, "a conversion error ends batch and transaction, and dooms in TRY", `
CREATE TABLE r4 (id int, name varchar(10))
INSERT r4 VALUES (1, 'x')
GO
BEGIN TRAN
UPDATE r4 SET id = 2
UPDATE r4 SET id = name
PRINT 'not reached'
GO
PRINT @@TRANCOUNT
SELECT id FROM r4
BEGIN TRAN
BEGIN TRY
  UPDATE r4 SET id = name
END TRY
BEGIN CATCH
  PRINT CONCAT(ERROR_NUMBER(), ' ', XACT_STATE())
END CATCH
ROLLBACK`, `
Msg 245, Level 16, State 1, Line 3
Conversion failed when converting the varchar value 'x' to data type int.
0
id
1
245 -1`},
	{5, "a doomed transaction reads what it wrote, and ends with its batch", `
CREATE TABLE r5 (id int)
GO
BEGIN TRAN
INSERT r5 VALUES (1)
SAVE TRAN s
BEGIN TRY
  DECLARE @i int = 'x'
END TRY
BEGIN CATCH
  SELECT id FROM r5
  BEGIN TRY INSERT r5 VALUES (2) END TRY BEGIN CATCH PRINT ERROR_NUMBER() END CATCH
  BEGIN TRY ROLLBACK TRAN s END TRY BEGIN CATCH PRINT ERROR_NUMBER() END CATCH
  BEGIN TRY COMMIT END TRY BEGIN CATCH PRINT ERROR_NUMBER() END CATCH
  PRINT XACT_STATE()
END CATCH
GO
SELECT COUNT(*) AS n FROM r5`, `
id
1
3930
3931
3930
-1
Msg 3998, Level 16, State 1, Line 1
Uncommittable transaction is detected at the end of the batch. The transaction is rolled back.
n
0`},
	{7, "RAISERROR does not obey XACT_ABORT, THROW does, and severities to 10 are no errors", `
SET XACT_ABORT ON
BEGIN TRAN
BEGIN TRY RAISERROR('a', 10, 1) PRINT @@ERROR END TRY BEGIN CATCH PRINT 'not reached' END CATCH
RAISERROR('b', 16, 1)
PRINT @@TRANCOUNT;
THROW 50001, 'c', 1
PRINT 'not reached'
GO
PRINT @@TRANCOUNT
SET XACT_ABORT OFF`, `
a
0
Msg 50000, Level 16, State 1, Line 4
b
1
Msg 50001, Level 16, State 1, Line 6
c
0`},
	{8, "a missing object is caught one level up, not at its own", `
BEGIN TRY
  SELECT * FROM r8_missing
END TRY
BEGIN CATCH
  PRINT 'not reached'
END CATCH
GO
CREATE PROCEDURE r8 AS SELECT * FROM r8_missing
GO
BEGIN TRY
  EXEC r8
END TRY
BEGIN CATCH
  PRINT CONCAT(ERROR_NUMBER(), ' ', ERROR_PROCEDURE())
END CATCH`, `
Msg 208, Level 16, State 1, Line 2
Invalid object name 'r8_missing'.
208 r8`},
	{10, "each statement has its row count", `
CREATE TABLE r10 (id int)
DECLARE @i int
INSERT r10 VALUES (1), (2), (3)
IF @@ROWCOUNT = 3 PRINT @@ROWCOUNT
SET @i = 1
PRINT @@ROWCOUNT
DECLARE @j int = 2
PRINT @@ROWCOUNT
PRINT 'x'
PRINT @@ROWCOUNT
SELECT @i = id FROM r10
BEGIN TRAN
PRINT @@ROWCOUNT
COMMIT
SELECT @i = id FROM r10
SET XACT_ABORT OFF
PRINT @@ROWCOUNT
EXEC('SET NOCOUNT ON UPDATE r10 SET id = 1 WHERE id < 3')
PRINT @@ROWCOUNT`, "0\n1\n1\nx\n0\n0\n0\n2"},
	{11, "an assignment without a row keeps the value, several rows give the last, a subquery without one NULL", `
CREATE TABLE r11 (id int PRIMARY KEY)
INSERT r11 VALUES (1), (2)
DECLARE @i int = 9
SELECT @i = id FROM r11 WHERE id = 7
PRINT @i
SELECT @i = id FROM r11 ORDER BY id
PRINT @i
SET @i = (SELECT id FROM r11 WHERE id = 7)
PRINT ISNULL(CAST(@i AS varchar(9)), 'null')
SET @i = 9
SET @i = (SELECT id FROM r11)
PRINT @i`, `
9
2
null
Msg 512, Level 16, State 1, Line 11
Subquery returned more than 1 value. This is not permitted when the subquery follows =, !=, <, <= , >, >= or when the subquery is used as an expression.
9`},
	{20, "a rollback undoes #tables, and neither rows nor identity of a table variable", `
DECLARE @t TABLE (id int IDENTITY, n int)
CREATE TABLE #t (n int)
INSERT #t VALUES (1)
BEGIN TRAN
INSERT @t VALUES (7)
INSERT #t VALUES (2)
ROLLBACK
INSERT @t VALUES (8)
SELECT id, n FROM @t
SELECT n FROM #t
EXEC('SELECT n FROM #t')
EXEC('SELECT n FROM @t')`, `
id n
1 7
2 8
n
1
n
1
Msg 1087, Level 15, State 2, Line 1
Must declare the table variable "@t".`},
	{21, "DECLARE in a loop makes the variable once; with a value it assigns each time", `
DECLARE @i int = 0
WHILE @i < 2
BEGIN
  DECLARE @kept varchar(10), @set varchar(10) = ''
  DECLARE @t TABLE (n int)
  SET @kept = ISNULL(@kept, '') + 'k'
  SET @set = @set + 's'
  INSERT @t VALUES (1)
  SET @i += 1
END
PRINT @kept
PRINT @set
SELECT COUNT(*) AS n FROM @t`, "kk\ns\nn\n2"},
	{22, "a trigger fires once for each statement, in its transaction, with XACT_ABORT", `
CREATE TABLE r22 (id int IDENTITY(10, 1), n int)
CREATE TABLE r22_log (id int IDENTITY(500, 1), rows int, depth int)
GO
CREATE TRIGGER r22_t ON r22 AFTER INSERT, UPDATE AS
  INSERT r22_log SELECT COUNT(*), @@TRANCOUNT FROM inserted
  IF @@OPTIONS & 16384 = 16384 PRINT 'XACT_ABORT is ON'
  IF EXISTS (SELECT 1 FROM inserted WHERE n < 0) ROLLBACK
GO
INSERT r22 VALUES (1), (2)
PRINT CONCAT(SCOPE_IDENTITY(), ' ', @@IDENTITY)
UPDATE r22 SET n = 3 WHERE n > 99
SELECT rows, depth FROM r22_log
GO
BEGIN TRAN
UPDATE r22 SET n = -1
PRINT 'not reached'
GO
SELECT @@TRANCOUNT AS c, MIN(n) AS n FROM r22
SELECT COUNT(*) AS n FROM r22_log`, `
XACT_ABORT is ON
11 500
XACT_ABORT is ON
rows depth
2 1
0 1
XACT_ABORT is ON
Msg 3609, Level 16, State 1, Line 2
The transaction ended in the trigger. The batch has been aborted.
c n
0 1
n
2`},
	{25, "cursors are global, read at OPEN, and closed by a rollback unless they are static", `
CREATE PROCEDURE r25p AS DECLARE r25c CURSOR FOR SELECT n FROM r25 OPEN r25c
GO
CREATE TABLE r25 (n int PRIMARY KEY)
INSERT r25 VALUES (1), (2)
EXEC r25p
DECLARE @n int, @t TABLE (n int)
FETCH NEXT FROM r25c INTO @n
PRINT CONCAT(@n, ' ', @@FETCH_STATUS)
DECLARE filled CURSOR STATIC FOR SELECT n FROM @t
INSERT @t VALUES (7)
OPEN filled
FETCH filled INTO @n
PRINT CONCAT(@n, ' ', @@FETCH_STATUS)
FETCH filled INTO @n
PRINT CONCAT(@n, ' ', @@FETCH_STATUS)
BEGIN TRAN
ROLLBACK
FETCH FIRST FROM filled INTO @n
PRINT @n
FETCH r25c INTO @n
GO
DEALLOCATE r25c
DEALLOCATE filled`, `
1 0
7 0
7 -1
7
Msg 16917, Level 16, State 1, Line 18
Cursor is not open.`},
	{26, "variables end at GO, #tables and SET options do not, those of a procedure end with it", `
CREATE TABLE #r26 (n int)
SET DATEFIRST 3
DECLARE @i int = 1
GO
INSERT #r26 VALUES (1)
PRINT @@DATEFIRST
GO
PRINT @i
GO
CREATE PROCEDURE r26 AS SET DATEFIRST 5 PRINT @@DATEFIRST
PRINT 'belongs to it'
GO
EXEC r26
PRINT @@DATEFIRST
SET DATEFIRST 7
GO
PRINT 'a'
CREATE PROCEDURE r26b AS PRINT 'b'`, `
3
Msg 137, Level 15, State 2, Line 1
Must declare the scalar variable "@i".
5
belongs to it
3
Msg 111, Level 15, State 1, Line 2
'CREATE PROCEDURE' must be the first statement in a query batch.`},
	{28, "a syntax error refuses the batch, a missing object counts when it is reached", `
PRINT 'not reached'
SELECT 1 +
GO
PRINT 'reached'
IF 1 = 0 SELECT * FROM r28_missing
PRINT 'too'
SELECT * FROM r28_missing
PRINT 'not reached'`, `
Msg 102, Level 15, State 1, Line 2
Incorrect syntax near '+'.
reached
too
Msg 208, Level 16, State 1, Line 4
Invalid object name 'r28_missing'.`},
	{29, "text that is executed is a batch of its own", `
EXEC('CREATE TABLE #r29 (n int) SET DATEFIRST 2 PRINT @@DATEFIRST')
PRINT @@DATEFIRST
EXEC('USE postgres PRINT DB_NAME()')
IF DB_NAME() = 'postgres' PRINT 'USE stays' ELSE PRINT 'USE ends'
EXEC sp_executesql N'PRINT 1 SELECT * FROM r29_missing'
PRINT @@ERROR
SELECT * FROM #r29`, `
2
7
Changed database context to 'postgres'.
postgres
USE ends
1
Msg 208, Level 16, State 1, Line 1
Invalid object name 'r29_missing'.
208
Msg 208, Level 16, State 1, Line 7
Invalid object name '#r29'.`},
}
