package runner_test

var documentedControl = []page{
	{"language-elements/try-catch: A", `
CREATE PROCEDURE usp_GetErrorInfo AS
SELECT ERROR_NUMBER() AS ErrorNumber, ERROR_SEVERITY() AS ErrorSeverity, ERROR_STATE() AS ErrorState, ERROR_PROCEDURE() AS ErrorProcedure,
  ERROR_LINE() AS ErrorLine, ERROR_MESSAGE() AS ErrorMessage
GO
BEGIN TRY
  EXECUTE ('SELECT 1/0')
END TRY
BEGIN CATCH
  EXECUTE usp_GetErrorInfo
END CATCH
DROP PROCEDURE usp_GetErrorInfo`, `
ErrorNumber ErrorSeverity ErrorState ErrorProcedure ErrorLine ErrorMessage
8134 16 1 NULL 1 Divide by zero error encountered.`},
	{"language-elements/try-catch: names of objects", `
BEGIN TRY
  SELECT * FROM NonexistentTable
END TRY
BEGIN CATCH
  SELECT ERROR_NUMBER() AS ErrorNumber
END CATCH
GO
CREATE PROCEDURE usp_ExampleProc AS SELECT * FROM NonexistentTable
GO
BEGIN TRY
  EXECUTE usp_ExampleProc
END TRY
BEGIN CATCH
  SELECT ERROR_NUMBER() AS ErrorNumber, ERROR_MESSAGE() AS ErrorMessage
END CATCH
DROP PROCEDURE usp_ExampleProc`, `
Msg 208, Level 16, State 1, Line 2
Invalid object name 'NonexistentTable'.
ErrorNumber ErrorMessage
208 Invalid object name 'NonexistentTable'.`},
	{"language-elements/throw: A", "THROW 51000, 'The record does not exist.', 1;", `
Msg 51000, Level 16, State 1, Line 1
The record does not exist.`},
	{"language-elements/throw: B", `
CREATE TABLE TestRethrow (ID int CONSTRAINT PK_TestRethrow PRIMARY KEY)
BEGIN TRY
    INSERT TestRethrow (ID) VALUES (1);
    INSERT TestRethrow (ID) VALUES (1);
END TRY
BEGIN CATCH
    PRINT 'In catch block.';
    THROW;
END CATCH
GO
DROP TABLE TestRethrow`, `
In catch block.
Msg 2627, Level 14, State 1, Line 4
Violation of PRIMARY KEY constraint 'PK_TestRethrow'. Cannot insert duplicate key in object 'dbo.TestRethrow'. The duplicate key value is (1).`},
	{"language-elements/raiserror: -1 is the severity of the message", "RAISERROR (15023, -1, -1, 'anna');", `
Msg 15023, Level 16, State 1, Line 1
User, group, or role 'anna' already exists in the current database.`},
	{"language-elements/raiserror: substitutes", `
RAISERROR (N'This is message %s %d.', 10, 1, N'number', 5);
RAISERROR (N'<<%*.*s>>', 10, 1, 7, 3, N'abcde');
RAISERROR (N'<<%7.3s>>', 10, 1, N'abcde');`, `
This is message number 5.
<< abc>>
<< abc>>`},
	{"language-elements/raiserror: A", `
BEGIN TRY
  RAISERROR ('Error raised in TRY block.', 16, 1);
END TRY
BEGIN CATCH
  DECLARE @ErrorMessage nvarchar(4000), @ErrorSeverity int, @ErrorState int
  SELECT @ErrorMessage = ERROR_MESSAGE(), @ErrorSeverity = ERROR_SEVERITY(), @ErrorState = ERROR_STATE()
  RAISERROR (@ErrorMessage, @ErrorSeverity, @ErrorState);
END CATCH`, `
Msg 50000, Level 16, State 1, Line 7
Error raised in TRY block.`},
	{"statements/set-xact-abort", `
CREATE TABLE t1 (a int NOT NULL PRIMARY KEY)
CREATE TABLE t2 (a int NOT NULL REFERENCES t1 (a))
GO
INSERT INTO t1 VALUES (1), (3), (4), (6)
GO
BEGIN TRANSACTION
INSERT INTO t2 VALUES (1)
INSERT INTO t2 VALUES (2) -- Foreign key error.
INSERT INTO t2 VALUES (3)
COMMIT TRANSACTION
GO
SET XACT_ABORT ON
GO
BEGIN TRANSACTION
INSERT INTO t2 VALUES (4)
INSERT INTO t2 VALUES (5) -- Foreign key error.
INSERT INTO t2 VALUES (6)
COMMIT TRANSACTION
GO
SELECT * FROM t2
DECLARE @XACT_ABORT varchar(3) = 'OFF'
IF (16384 & @@OPTIONS) = 16384 SET @XACT_ABORT = 'ON'
SELECT @XACT_ABORT AS XACT_ABORT
DROP TABLE t2, t1`, `
Msg 547, Level 16, State 0, Line 3
The INSERT statement conflicted with the FOREIGN KEY constraint "FK__t2__a". The conflict occurred in database "DB", table "dbo.t1", column 'a'.
The statement has been terminated.
Msg 547, Level 16, State 0, Line 3
The INSERT statement conflicted with the FOREIGN KEY constraint "FK__t2__a". The conflict occurred in database "DB", table "dbo.t1", column 'a'.
a
1
3
XACT_ABORT
ON`},
	{"statements/set-implicit-transactions", `
CREATE TABLE t1 (a int)
GO
INSERT INTO t1 VALUES (11)
PRINT N'[A.03] ' + CAST(@@TRANCOUNT AS nvarchar(10))
SET IMPLICIT_TRANSACTIONS ON
GO
INSERT INTO t1 VALUES (21)
INSERT INTO t1 VALUES (22)
PRINT N'[B.03] ' + CAST(@@TRANCOUNT AS nvarchar(10))
COMMIT TRANSACTION
PRINT N'[B.04] ' + CAST(@@TRANCOUNT AS nvarchar(10))
GO
BEGIN TRANSACTION
INSERT INTO t1 VALUES (31)
PRINT N'[C.03] ' + CAST(@@TRANCOUNT AS nvarchar(10))
COMMIT TRANSACTION
PRINT N'[C.04] ' + CAST(@@TRANCOUNT AS nvarchar(10))
COMMIT TRANSACTION
PRINT N'[C.05] ' + CAST(@@TRANCOUNT AS nvarchar(10))
GO
INSERT INTO t1 VALUES (41)
BEGIN TRANSACTION
INSERT INTO t1 VALUES (42)
PRINT N'[D.03] ' + CAST(@@TRANCOUNT AS nvarchar(10))
COMMIT TRANSACTION
PRINT N'[D.04] ' + CAST(@@TRANCOUNT AS nvarchar(10))
COMMIT TRANSACTION
PRINT N'[D.05] ' + CAST(@@TRANCOUNT AS nvarchar(10))
SET IMPLICIT_TRANSACTIONS OFF
DROP TABLE t1`, `
[A.03] 0
[B.03] 1
[B.04] 0
[C.03] 2
[C.04] 1
[C.05] 0
[D.03] 2
[D.04] 1
[D.05] 0`},
	{"errors of a call stand in the procedure, before its first line", `
CREATE PROCEDURE p @a int, @b int = 5 OUTPUT AS SET @b = @a * 2 RETURN @a
GO
CREATE PROCEDURE bare AS RETURN 0
GO
EXEC p
EXEC p 1, 2, 3
EXEC p @z = 1
BEGIN TRY EXEC p END TRY BEGIN CATCH PRINT CONCAT(ERROR_PROCEDURE(), ' ', ERROR_LINE()) END CATCH
EXEC sp_executesql N'SELECT @a AS a', N'@a int'
EXEC sp_executesql N'SELECT 1', '@a int'
GO
EXEC bare 1
GO
EXEC p 'x'
GO
DROP PROCEDURE p, bare`, `
Msg 201, Level 16, State 4, Procedure p, Line 0
Procedure or function 'p' expects parameter '@a', which was not supplied.
Msg 8144, Level 16, State 2, Procedure p, Line 0
Procedure or function p has too many arguments specified.
Msg 8145, Level 16, State 1, Procedure p, Line 0
@z is not a parameter for procedure p.
p 0
Msg 8178, Level 16, State 1, Line 5
The parameterized query '(@a int)SELECT @a AS a' expects the parameter '@a', which was not supplied.
Msg 214, Level 16, State 3, Procedure sp_executesql, Line 1
Procedure expects parameter '@parameters' of type 'ntext/nchar/nvarchar'.
Msg 8146, Level 16, State 2, Procedure bare, Line 0
Procedure bare has no parameters and arguments were supplied.
Msg 8114, Level 16, State 5, Procedure p, Line 0
Error converting data type varchar to int.`},
	{"a word without quotes is a text, as an argument and as a default", `
CREATE PROCEDURE says @what varchar(20) = Nothing AS PRINT @what
GO
EXEC says
EXEC says Something
EXEC sp_helptext says
PRINT OBJECT_DEFINITION(OBJECT_ID('says'))
SELECT definition FROM sys.sql_modules WHERE object_id = OBJECT_ID('says')
DROP PROCEDURE says`, `
Nothing
Something
Text
CREATE PROCEDURE says @what varchar(20) = Nothing AS PRINT @what
CREATE PROCEDURE says @what varchar(20) = Nothing AS PRINT @what
definition
CREATE PROCEDURE says @what varchar(20) = Nothing AS PRINT @what`},
	{"columns and types have their sizes", `
CREATE TYPE Phone FROM varchar(20) NOT NULL
CREATE TYPE Ids AS TABLE (id int)
CREATE TABLE cc (b nvarchar(50), c decimal(8,2), d datetime2(3), e varchar(max), f bit NOT NULL, h time, l decimal)
GO
SELECT name, system_type_id, is_table_type FROM sys.types WHERE is_user_defined = 1
IF TYPE_ID('dbo.Ids') IS NOT NULL AND TYPE_ID('x.Phone') IS NULL PRINT TYPE_NAME(TYPE_ID('Ids'))
SELECT c.name, t.name AS type, c.max_length, c.precision, c.scale, c.is_nullable FROM sys.columns c JOIN sys.types t
ON t.user_type_id = c.user_type_id WHERE c.object_id = OBJECT_ID('dbo.cc') ORDER BY column_id
SELECT COLUMN_NAME, CHARACTER_MAXIMUM_LENGTH AS length, CHARACTER_OCTET_LENGTH AS octets, NUMERIC_PRECISION AS p, NUMERIC_SCALE AS s,
  DATETIME_PRECISION AS d FROM INFORMATION_SCHEMA.COLUMNS WHERE TABLE_NAME = 'cc' ORDER BY ORDINAL_POSITION
SELECT COL_LENGTH('cc', 'b') AS b, COL_LENGTH('dbo.cc', 'E') AS e, COL_LENGTH('cc', 'none') AS none
DROP TABLE cc
DROP TYPE Phone
DROP TYPE Ids`, `
name system_type_id is_table_type
Phone 167 0
Ids 243 1
Ids
name type max_length precision scale is_nullable
b nvarchar 100 0 0 1
c decimal 5 8 2 1
d datetime2 7 23 3 1
e varchar -1 0 0 1
f bit 1 1 0 0
h time 5 16 7 1
l decimal 9 18 0 1
COLUMN_NAME length octets p s d
b 50 100 NULL NULL NULL
c NULL NULL 8 2 NULL
d NULL NULL NULL NULL 3
e -1 -1 NULL NULL NULL
f NULL NULL NULL NULL NULL
h NULL NULL NULL NULL 7
l NULL NULL 18 0 NULL
b e none
100 -1 NULL`},
}
