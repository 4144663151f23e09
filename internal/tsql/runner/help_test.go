package runner_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/parleytest"
)

// inOwn writes DB for the name of the database of a test.
func inOwn(text string, config *pgx.ConnConfig) string {
	return strings.ReplaceAll(text, config.Database, "DB")
}

const helped = `SET NOCOUNT ON
CREATE TABLE part (id int IDENTITY(5, 2) CONSTRAINT PK_part PRIMARY KEY, code varchar(8) NOT NULL CONSTRAINT UQ_code UNIQUE,
  price decimal(9, 2) CONSTRAINT DF_price DEFAULT 1, twice AS price * 2, CONSTRAINT CK_price CHECK (price > 0))
CREATE INDEX IX_price ON part (price DESC, code)
CREATE TABLE line (part int CONSTRAINT FK_line REFERENCES part ON DELETE CASCADE)
CREATE TABLE note (n nvarchar(10))
CREATE TYPE phone FROM varchar(20) NOT NULL
GO
CREATE VIEW cheap AS SELECT code FROM part
GO
CREATE PROCEDURE shows AS PRINT 1`

// sp_help describes a table in the result sets of the documentation.
func TestHelpDescribesATable(t *testing.T) {
	t.Parallel()
	config := parleytest.Database(t).Config().ConnConfig
	play := open(t, config)
	expect(t, "the tables", play(helped), "")
	expect(t, "of a table", inOwn(play("EXEC sp_help 'dbo.part'"), config), `Name Owner Type Created_datetime
part dbo user table 1900-01-01 00:00:00.000
Column_name Type Computed Length Prec Scale Nullable TrimTrailingBlanks FixedLenNullInSource Collation
id int no 4 10 0 no (n/a) (n/a) NULL
code varchar no 8 no no no SQL_Latin1_General_CP1_CI_AS
price decimal no 5 9 2 yes (n/a) (n/a) NULL
twice decimal yes 9 11 2 yes (n/a) (n/a) NULL
Identity Seed Increment Not For Replication
id 5 2 0
RowGuidCol
No rowguidcol column defined.
Data_located_on_filegroup
PRIMARY
index_name index_description index_keys
IX_price nonclustered located on PRIMARY price(-), code
PK_part clustered, unique, primary key located on PRIMARY id
UQ_code nonclustered, unique, unique key located on PRIMARY code
constraint_type constraint_name delete_action update_action status_enabled status_for_replication constraint_keys
CHECK on column price CK_price (n/a) (n/a) Enabled Is_For_Replication (price > (0)::numeric)
DEFAULT on column price DF_price (n/a) (n/a) (n/a) (n/a) (1)::numeric(9,2)
PRIMARY KEY (clustered) PK_part (n/a) (n/a) (n/a) (n/a) id
UNIQUE (non-clustered) UQ_code (n/a) (n/a) (n/a) (n/a) code
Table is referenced by foreign key
DB.dbo.line: FK_line
No views with schema binding reference table 'dbo.part'.`)
	expect(t, "of its other half", inOwn(play("EXEC sp_helpconstraint 'line'\nEXEC sp_helpindex 'line'"), config), `Object Name
line
constraint_type constraint_name delete_action update_action status_enabled status_for_replication constraint_keys
FOREIGN KEY FK_line Cascade No Action Enabled Is_For_Replication part
REFERENCES DB.dbo.part (id)
No foreign keys reference table 'line', or you do not have permissions on referencing tables.
The object 'line' does not have any indexes, or you do not have permissions.`)
}

// sp_help lists all objects and types, and describes types and what has no columns.
func TestHelpListsObjectsAndTypes(t *testing.T) {
	t.Parallel()
	config := parleytest.EmptyDatabase(t).Config().ConnConfig
	play := open(t, config)
	expect(t, "the tables", play(helped), "")
	for _, c := range []struct{ rule, script, want string }{
		{"all", "EXEC sp_help", `Name Owner Object_type
cheap dbo view
line dbo user table
note dbo user table
part dbo user table
UQ_code dbo unique key cns
shows dbo stored procedure
PK_part dbo primary key cns
FK_line dbo foreign key cns
DF_price dbo default (maybe cns)
CK_price dbo check cns
User_type Storage_type Length Prec Scale Nullable Default_Name Rule_Name Collation
phone varchar 20 0 0 no none none SQL_Latin1_General_CP1_CI_AS`},
		{"a type", "EXEC sp_help phone", "Type_name Storage_type Length Prec Scale Nullable Default_name Rule_name Collation\nphone varchar 20 0 0 no none none SQL_Latin1_General_CP1_CI_AS"},
		{"a procedure", "EXEC sp_help shows", "Name Owner Type Created_datetime\nshows dbo stored procedure 1900-01-01 00:00:00.000"},
		{"a procedure with parameters", "CREATE PROCEDURE takes @a int, @b nvarchar(10) = N'x', @c decimal(9,2) OUTPUT, @d phone, @e varchar(max), @f sysname WITH EXECUTE AS OWNER, RECOMPILE AS SELECT 1\nGO\nEXEC sp_help takes\nSELECT is_recompiled, execute_as_principal_id FROM sys.sql_modules WHERE object_id = OBJECT_ID('takes')\nDROP PROCEDURE takes", `Name Owner Type Created_datetime
takes dbo stored procedure 1900-01-01 00:00:00.000
Parameter_name Type Length Prec Scale Param_order Collation
@a int 4 10 0 1 NULL
@b nvarchar 20 10 NULL 2 SQL_Latin1_General_CP1_CI_AS
@c decimal 5 9 2 3 NULL
@d phone 20 20 NULL 4 SQL_Latin1_General_CP1_CI_AS
@e varchar -1 -1 NULL 5 SQL_Latin1_General_CP1_CI_AS
@f sysname 256 128 NULL 6 SQL_Latin1_General_CP1_CI_AS
is_recompiled execute_as_principal_id
1 -2`},
		{"a table without anything", "EXEC sp_helpconstraint note, 'nomsg'", "No constraints are defined on object 'note', or you do not have permissions.\nNo foreign keys reference table 'note', or you do not have permissions on referencing tables."},
		{"nothing", "DECLARE @r int\nEXEC @r = sp_help 'nothing'\nPRINT @r", "Msg 15009, Level 16, State 1, Procedure sp_help, Line 27\nThe object 'nothing' does not exist in database 'DB' or is invalid for this operation.\n1"},
		{"of another database", "EXEC sp_help 'other.dbo.part'", "Msg 15250, Level 16, State 1, Procedure sp_help, Line 21\nThe database name component of the object qualifier must be the name of the current database."},
	} {
		expect(t, c.rule, inOwn(play(c.script), config), c.want)
	}
}

// The functions of the broker are no modules of a database, although comments of some begin like statements of T-SQL.
func TestModulesOfTheCatalogAreThoseOfTSQL(t *testing.T) {
	t.Parallel()
	play := open(t, parleytest.Database(t).Config().ConnConfig)
	expect(t, "none", play("SELECT COUNT(*) FROM sys.sql_modules"), "0\n(1 rows affected)")
	expect(t, "one", play("CREATE VIEW v AS SELECT 1 AS n\nGO\nSELECT OBJECT_NAME(object_id) FROM sys.sql_modules"), "v\n(1 rows affected)")
}

// sp_who shows sessions with their database, all or those of a login, of a number, or that do something.
func TestWhoShowsSessions(t *testing.T) {
	t.Parallel()
	config := parleytest.EmptyDatabase(t).Config().ConnConfig
	idle, play := open(t, config), open(t, config)
	idle("SELECT COUNT(*) FROM sys.tables")
	expect(t, "sessions of the database", inOwn(play(`SET NOCOUNT ON
CREATE TABLE #who (spid smallint, ecid smallint, status nchar(30), loginame nchar(128), hostname nchar(128), blk char(5), dbname nchar(128),
  cmd nchar(16), request_id int)
DECLARE @own varchar(9) = @@SPID, @login sysname = SUSER_SNAME()
INSERT #who EXEC sp_who
SELECT RTRIM(dbname) AS d, RTRIM(cmd) AS c, COUNT(*) AS n FROM #who WHERE dbname = DB_NAME() GROUP BY dbname, cmd ORDER BY cmd
DELETE #who
INSERT #who EXEC sp_who 'active'
SELECT COUNT(*) AS n FROM #who WHERE dbname = DB_NAME()
DELETE #who
INSERT #who EXEC sp_who @own
SELECT COUNT(*) AS n FROM #who WHERE spid = @@SPID AND RTRIM(loginame) = @login
DELETE #who
INSERT #who EXEC sp_who @login
SELECT COUNT(*) AS n FROM #who WHERE dbname = DB_NAME()
EXEC sp_who 'nobody there'
SELECT DB_NAME(database_id) AS d FROM sys.dm_exec_sessions WHERE session_id = @@SPID`), config), `d c n
DB AWAITING COMMAND 1
DB SELECT 1
n
1
n
1
n
2
Msg 15007, Level 16, State 1, Procedure sp_who, Line 5
'nobody there' is not a valid login or you do not have permission.
d
DB`)
}

// The messages of a queue are the rows of the table inside it, as monitoring counts them; a queue has one number in all views.
func TestPartitionsCountTheMessagesOfAQueue(t *testing.T) {
	t.Parallel()
	play := open(t, parleytest.Database(t).Config().ConnConfig)
	expect(t, "two ways to the same number", play(`SET NOCOUNT ON
CREATE QUEUE Jobs
CREATE SERVICE Boss ON QUEUE Jobs
CREATE SERVICE Worker ON QUEUE Jobs ([DEFAULT])
DECLARE @h uniqueidentifier
BEGIN DIALOG @h FROM SERVICE Boss TO SERVICE 'Worker' WITH ENCRYPTION = OFF
;SEND ON CONVERSATION @h (N'1')
;SEND ON CONVERSATION @h (N'2')
SELECT q.name AS q, p.rows AS r, o.type AS t FROM sys.objects AS o JOIN sys.partitions AS p ON p.object_id = o.object_id
  JOIN sys.objects AS q ON o.parent_object_id = q.object_id WHERE p.index_id = 1 AND q.name = 'Jobs'
SELECT q.name AS q, p.rows AS r, i.internal_type_desc AS d FROM sys.service_queues AS q
  JOIN sys.internal_tables AS i ON i.parent_id = q.object_id
  JOIN sys.partitions AS p ON p.object_id = i.object_id AND p.index_id IN (0, 1) WHERE q.is_ms_shipped = 0
SELECT COUNT(*) AS n FROM sys.tables
CREATE SERVICE Notes ON QUEUE Jobs ([http://schemas.microsoft.com/SQL/Notifications/PostEventNotification])
CREATE EVENT NOTIFICATION Gone ON QUEUE Jobs FOR BROKER_QUEUE_DISABLED TO SERVICE 'Notes', 'current database'
SELECT OBJECT_NAME(q.object_id) AS q, s.name AS s, OBJECT_NAME(n.parent_id) AS n FROM sys.service_queues AS q
  JOIN sys.services AS s ON s.service_queue_id = q.object_id CROSS JOIN sys.event_notifications AS n
  WHERE q.object_id = OBJECT_ID('Jobs') ORDER BY s.name`), `q r t
Jobs 2 IT
q r d
Jobs 2 QUEUE_MESSAGES
n
0
q s n
Jobs Boss Jobs
Jobs Notes Jobs
Jobs Worker Jobs`)
}

// sys.partitions has a row for the heap or the clustered index of each table and for each other index, with the rows of now.
func TestPartitionsCountRows(t *testing.T) {
	t.Parallel()
	play := open(t, parleytest.Database(t).Config().ConnConfig)
	expect(t, "heaps, clustered and other indexes", play(`SET NOCOUNT ON
CREATE TABLE heap (n int)
CREATE INDEX IX ON heap (n)
CREATE TABLE keyed (n int PRIMARY KEY, m int CONSTRAINT UQ UNIQUE)
INSERT heap VALUES (1), (2), (3)
BEGIN TRAN
INSERT keyed VALUES (1, 1)
SELECT OBJECT_NAME(p.object_id) AS o, p.index_id AS i, p.rows AS r, x.type_desc AS t FROM sys.partitions AS p
  JOIN sys.indexes AS x ON x.object_id = p.object_id AND x.index_id = p.index_id
  WHERE p.object_id IN (OBJECT_ID('heap'), OBJECT_ID('keyed')) ORDER BY o, i
SELECT SUM(row_count) AS n FROM sys.dm_db_partition_stats WHERE object_id = OBJECT_ID('heap') AND index_id < 2
SELECT rows FROM sysindexes WHERE id = OBJECT_ID('keyed') AND indid = 1
ROLLBACK`), `o i r t
heap 0 3 HEAP
heap 2 3 NONCLUSTERED
keyed 1 1 CLUSTERED
keyed 2 1 NONCLUSTERED
n
3
rows
1`)
}

// Functions of the catalog are asked for each row, also where the rows do not go to the client.
func TestFunctionsOfTheCatalogReadRowsOfTheDatabase(t *testing.T) {
	t.Parallel()
	config := parleytest.Database(t).Config().ConnConfig
	expect(t, "in INSERT, UNION, EXISTS and GROUP BY", inOwn(script(t, config, `SET NOCOUNT ON
CREATE TABLE o (object_id int, name sysname NULL)
CREATE TABLE of_call (a1 int)
INSERT o SELECT object_id, OBJECT_SCHEMA_NAME(object_id) + '.' + OBJECT_NAME(object_id) + '.' + COL_NAME(object_id, 1) FROM sys.tables
  WHERE name IN ('o', 'of_call')
SELECT name FROM o UNION SELECT TYPE_NAME(56) FROM o ORDER BY name
SELECT COUNT(*) AS n FROM sys.databases AS d WHERE EXISTS (SELECT 1 FROM o WHERE DB_NAME(d.database_id) = DB_NAME())
SELECT SCHEMA_NAME(schema_id) AS s, COUNT(*) AS n FROM sys.tables WHERE name = 'o' GROUP BY SCHEMA_NAME(schema_id)`), config), `name
dbo.o.object_id
dbo.of_call.a1
int
n
1
s n
dbo 1`)
}
