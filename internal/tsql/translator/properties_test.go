package translator_test

import "testing"

func TestTheCatalogAnswersAsScriptsAskIt(t *testing.T) {
	t.Parallel()
	play(t, []scenario{
		{"properties of objects and columns", `CREATE TABLE k (id int IDENTITY(5, 2) CONSTRAINT PK_k PRIMARY KEY, name nvarchar(10) NULL, twice AS id * 2)
GO
CREATE VIEW v AS SELECT id FROM k
GO
INSERT k (name) VALUES ('a'), ('b')
SELECT OBJECTPROPERTY(OBJECT_ID('k'), 'IsUserTable'), OBJECTPROPERTY(OBJECT_ID('v'), 'IsUserTable'), OBJECTPROPERTY(OBJECT_ID('v'), 'IsView'),
  OBJECTPROPERTY(OBJECT_ID('PK_k'), N'IsPrimaryKey'), OBJECTPROPERTY(OBJECT_ID('k'), 'TableHasPrimaryKey'), OBJECTPROPERTY(1, 'IsTable')
SELECT COL_NAME(OBJECT_ID('k'), 2), COLUMNPROPERTY(OBJECT_ID('k'), 'ID', 'IsIdentity'), COLUMNPROPERTY(OBJECT_ID('k'), 'name', 'AllowsNull'),
  COLUMNPROPERTY(OBJECT_ID('k'), 'twice', 'IsComputed'), COLUMNPROPERTY(OBJECT_ID('k'), 'none', 'IsComputed'), TYPE_NAME(TYPE_ID('int'))
SELECT IDENT_SEED('k'), IDENT_INCR('dbo.k'), IDENT_CURRENT('k'), IDENT_CURRENT('v')
SELECT OBJECT_DEFINITION(OBJECT_ID('v'))
SELECT name, seed_value, last_value FROM sys.identity_columns
SELECT c.name, i.key_ordinal FROM sys.index_columns i JOIN sys.columns c ON c.object_id = i.object_id AND c.column_id = i.column_id
SELECT TABLE_NAME, CONSTRAINT_NAME, CONSTRAINT_TYPE FROM INFORMATION_SCHEMA.TABLE_CONSTRAINTS
SELECT COLUMN_NAME, ORDINAL_POSITION FROM INFORMATION_SCHEMA.KEY_COLUMN_USAGE WHERE CONSTRAINT_NAME = 'pk_k'
SELECT name FROM sys.computed_columns
GO
DROP VIEW v
DROP TABLE k`, `(2)
1|0|1|1|1|NULL
name|1|1|1|NULL|int
5|2|7|NULL
CREATE VIEW v AS SELECT id FROM k
id|5|7
id|1
k|PK_k|PRIMARY KEY
id|1
twice`},
		{"foreign keys, defaults and triggers", `CREATE TABLE p (id int CONSTRAINT PK_p PRIMARY KEY)
CREATE TABLE c (id int CONSTRAINT FK_c REFERENCES p ON DELETE CASCADE, n int DEFAULT 7)
GO
CREATE TRIGGER t ON c AFTER INSERT, UPDATE AS RETURN
GO
SELECT CONSTRAINT_NAME, UNIQUE_CONSTRAINT_NAME, DELETE_RULE FROM INFORMATION_SCHEMA.REFERENTIAL_CONSTRAINTS
SELECT OBJECT_NAME(parent_object_id), OBJECT_NAME(referenced_object_id), parent_column_id FROM sys.foreign_key_columns
SELECT OBJECT_NAME(parent_object_id), parent_column_id FROM sys.default_constraints
SELECT e.type_desc FROM sys.trigger_events e JOIN sys.triggers t ON t.object_id = e.object_id ORDER BY e.type
SELECT definition FROM sys.sql_modules WHERE object_id = OBJECT_ID('t')
GO
DROP TABLE c, p`, `FK_c|PK_p|CASCADE
c|p|1
c|2
INSERT
UPDATE
CREATE TRIGGER t ON c AFTER INSERT, UPDATE AS RETURN`},
		{"the database and the role", `IF SERVERPROPERTY('ProductVersion') LIKE '16.%' AND SERVERPROPERTY('none') IS NULL PRINT 'a version'
IF DATABASEPROPERTYEX('master', 'Status') = 'ONLINE' AND DATABASEPROPERTYEX('none', 'Status') IS NULL PRINT 'online'
IF USER_ID() = DATABASE_PRINCIPAL_ID() AND SUSER_SID() IS NOT NULL AND USER_ID('no such role') IS NULL PRINT 'a role'
PRINT CONCAT(IS_MEMBER('db_owner'), IS_ROLEMEMBER('db_owner'), IS_SRVROLEMEMBER('public'), HAS_DBACCESS('master'))
PRINT ISNULL(CAST(IS_MEMBER('no such role') AS varchar), 'NULL')
IF @@VERSION LIKE 'Parley%' PRINT 'Parley'`, "a version\nonline\na role\n1111\nNULL\nParley"},
	})
}

func TestASessionKeepsItsContext(t *testing.T) {
	t.Parallel()
	play(t, []scenario{
		{"CONTEXT_INFO", "PRINT ISNULL(CONVERT(varchar(20), CONTEXT_INFO(), 1), 'NULL') SET CONTEXT_INFO 0x0102 PRINT CONVERT(varchar(20), CONTEXT_INFO(), 1)", "NULL\n0x0102"},
		{"SESSION_CONTEXT", `EXEC sp_set_session_context N'Key', 5
EXEC sys.sp_set_session_context @key = N'fixed', @value = N'x', @read_only = 1
PRINT CONCAT(CAST(SESSION_CONTEXT(N'key') AS int) + 1, CAST(SESSION_CONTEXT(N'fixed') AS nvarchar(5)))
EXEC sp_set_session_context N'fixed', N'y'
IF SESSION_CONTEXT(N'none') IS NULL PRINT 'none'`, "6x\nMsg 15664, 1: Cannot set key 'fixed' in the session context. The key has been set as read_only for this session.\nnone"},
		{"the messages of the system are listed", "SELECT text, severity FROM sys.messages WHERE message_id = 8134 AND language_id = 1033", "Divide by zero error encountered.|16"},
		{"there is one file group, as a script of a database asks for it", "IF NOT EXISTS (SELECT name FROM sys.filegroups WHERE is_default = 1 AND name = N'PRIMARY') PRINT 'none'\nSELECT name, type FROM sys.data_spaces", "PRIMARY|FG"},
		{"descriptions inform", "IF NOT EXISTS (SELECT * FROM sys.extended_properties WHERE name = N'MS_Description')\nEXEC sys.sp_addextendedproperty @name = N'MS_Description', @value = N'all orders', @level0type = N'SCHEMA', @level0name = N'dbo', @level1type = N'TABLE', @level1name = N'orders'", "sp_addextendedproperty has no effect: descriptions are those of COMMENT ON."},
		{"full-text search informs", "EXEC sp_fulltext_database @action = 'enable'", "sp_fulltext_database has no effect: full-text search is not there."},
		{"settings of the server inform", "EXEC sp_configure 'show advanced options', 1 RECONFIGURE", "sp_configure has no effect: PostgreSQL has its own settings for that.\nRECONFIGURE has no effect: the settings of the server are those of PostgreSQL."},
	})
}
