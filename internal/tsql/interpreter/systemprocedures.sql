CREATE PROCEDURE sp_addrolemember @rolename sysname, @membername sysname AS
DECLARE @statement nvarchar(max) = N'ALTER ROLE ' + QUOTENAME(@rolename) + N' ADD MEMBER ' + QUOTENAME(@membername)
EXECUTE (@statement)
RETURN CASE WHEN @@ERROR = 0 THEN 0 ELSE 1 END
GO
CREATE PROCEDURE sp_droprolemember @rolename sysname, @membername sysname AS
DECLARE @statement nvarchar(max) = N'ALTER ROLE ' + QUOTENAME(@rolename) + N' DROP MEMBER ' + QUOTENAME(@membername)
EXECUTE (@statement)
RETURN CASE WHEN @@ERROR = 0 THEN 0 ELSE 1 END
GO
CREATE PROCEDURE sp_addrole @rolename sysname, @ownername sysname = NULL AS
DECLARE @statement nvarchar(max) = N'CREATE ROLE ' + QUOTENAME(@rolename) + ISNULL(N' AUTHORIZATION ' + QUOTENAME(@ownername), N'')
EXECUTE (@statement)
RETURN CASE WHEN @@ERROR = 0 THEN 0 ELSE 1 END
GO
CREATE PROCEDURE sp_droprole @rolename sysname AS
DECLARE @statement nvarchar(max) = N'DROP ROLE ' + QUOTENAME(@rolename)
EXECUTE (@statement)
RETURN CASE WHEN @@ERROR = 0 THEN 0 ELSE 1 END
GO
CREATE PROCEDURE sp_adduser @loginame sysname, @name_in_db sysname = NULL, @grpname sysname = NULL AS
DECLARE @statement nvarchar(max), @name sysname = ISNULL(@name_in_db, @loginame)
SET @statement = N'CREATE USER ' + QUOTENAME(@name) + N' FOR LOGIN ' + QUOTENAME(@loginame)
EXECUTE (@statement)
IF @@ERROR <> 0 RETURN 1
IF @grpname IS NULL RETURN 0
SET @statement = N'ALTER ROLE ' + QUOTENAME(@grpname) + N' ADD MEMBER ' + QUOTENAME(@name)
EXECUTE (@statement)
RETURN CASE WHEN @@ERROR = 0 THEN 0 ELSE 1 END
GO
CREATE PROCEDURE sp_grantdbaccess @loginame sysname, @name_in_db sysname = NULL AS
DECLARE @statement nvarchar(max)
SET @statement = N'CREATE USER ' + QUOTENAME(ISNULL(@name_in_db, @loginame)) + N' FOR LOGIN ' + QUOTENAME(@loginame)
EXECUTE (@statement)
RETURN CASE WHEN @@ERROR = 0 THEN 0 ELSE 1 END
GO
CREATE PROCEDURE sp_dropuser @name_in_db sysname AS
DECLARE @statement nvarchar(max) = N'DROP USER ' + QUOTENAME(@name_in_db)
EXECUTE (@statement)
RETURN CASE WHEN @@ERROR = 0 THEN 0 ELSE 1 END
GO
CREATE PROCEDURE sp_revokedbaccess @name_in_db sysname AS
DECLARE @statement nvarchar(max) = N'DROP USER ' + QUOTENAME(@name_in_db)
EXECUTE (@statement)
RETURN CASE WHEN @@ERROR = 0 THEN 0 ELSE 1 END
GO
CREATE PROCEDURE sp_addlogin @loginame sysname, @passwd sysname = NULL, @defdb sysname = NULL, @deflanguage sysname = NULL AS
DECLARE @statement nvarchar(max)
SET @statement = N'CREATE LOGIN ' + QUOTENAME(@loginame) + N' WITH PASSWORD = N' + QUOTENAME(ISNULL(@passwd, N''), '''')
EXECUTE (@statement)
RETURN CASE WHEN @@ERROR = 0 THEN 0 ELSE 1 END
GO
CREATE PROCEDURE sp_droplogin @loginame sysname AS
DECLARE @statement nvarchar(max) = N'DROP LOGIN ' + QUOTENAME(@loginame)
EXECUTE (@statement)
RETURN CASE WHEN @@ERROR = 0 THEN 0 ELSE 1 END
GO
CREATE PROCEDURE sp_grantlogin @loginame sysname AS
DECLARE @statement nvarchar(max) = N'CREATE LOGIN ' + QUOTENAME(@loginame) + N' FROM WINDOWS'
EXECUTE (@statement)
RETURN CASE WHEN @@ERROR = 0 THEN 0 ELSE 1 END
GO
CREATE PROCEDURE sp_changedbowner @loginame sysname, @map varchar(5) = NULL AS
DECLARE @statement nvarchar(max)
SET @statement = N'ALTER AUTHORIZATION ON DATABASE::' + QUOTENAME(DB_NAME()) + N' TO ' + QUOTENAME(@loginame)
EXECUTE (@statement)
RETURN CASE WHEN @@ERROR = 0 THEN 0 ELSE 1 END
GO
CREATE PROCEDURE sp_helptext @objname nvarchar(776) AS
SET NOCOUNT ON
DECLARE @text nvarchar(max) = OBJECT_DEFINITION(OBJECT_ID(@objname))
IF @text IS NULL
BEGIN
  RAISERROR('The object ''%s'' does not exist in this database or has no text.', 16, 1, @objname)
  RETURN 1
END
SELECT value AS [Text] FROM STRING_SPLIT(@text, NCHAR(10))
GO
CREATE PROCEDURE sp_configure @configname varchar(35) = NULL, @configvalue int = NULL AS
PRINT 'sp_configure has no effect: PostgreSQL has its own settings for that.'
GO
CREATE PROCEDURE sp_dboption @dbname sysname = NULL, @optname varchar(35) = NULL, @optvalue varchar(10) = NULL AS
PRINT 'sp_dboption has no effect: PostgreSQL has its own settings for that.'
GO
CREATE PROCEDURE sp_updatestats @resample char(8) = 'NO' AS
PRINT 'sp_updatestats has no effect: PostgreSQL has its own settings for that.'
GO
CREATE PROCEDURE sp_recompile @objname nvarchar(776) AS
PRINT 'sp_recompile has no effect: PostgreSQL has its own settings for that.'
GO
CREATE PROCEDURE sp_tableoption @TableNamePattern nvarchar(776), @OptionName varchar(35), @OptionValue varchar(12) AS
PRINT 'sp_tableoption has no effect: PostgreSQL has its own settings for that.'
GO
CREATE PROCEDURE sp_db_vardecimal_storage_format @dbname sysname = NULL, @vardecimal_storage_format varchar(3) = NULL AS
PRINT 'sp_db_vardecimal_storage_format has no effect: PostgreSQL has its own settings for that.'
GO
CREATE PROCEDURE sp_fulltext_database @action varchar(20) AS
PRINT 'sp_fulltext_database has no effect: full-text search is not there.'
GO
CREATE PROCEDURE sp_addextendedproperty @name sysname, @value sql_variant = NULL,
  @level0type varchar(128) = NULL, @level0name sysname = NULL,
  @level1type varchar(128) = NULL, @level1name sysname = NULL,
  @level2type varchar(128) = NULL, @level2name sysname = NULL AS
PRINT 'sp_addextendedproperty has no effect: descriptions are those of COMMENT ON.'
GO
CREATE PROCEDURE sp_updateextendedproperty @name sysname, @value sql_variant = NULL,
  @level0type varchar(128) = NULL, @level0name sysname = NULL,
  @level1type varchar(128) = NULL, @level1name sysname = NULL,
  @level2type varchar(128) = NULL, @level2name sysname = NULL AS
PRINT 'sp_updateextendedproperty has no effect: descriptions are those of COMMENT ON.'
GO
CREATE PROCEDURE sp_dropextendedproperty @name sysname,
  @level0type varchar(128) = NULL, @level0name sysname = NULL,
  @level1type varchar(128) = NULL, @level1name sysname = NULL,
  @level2type varchar(128) = NULL, @level2name sysname = NULL AS
PRINT 'sp_dropextendedproperty has no effect: descriptions are those of COMMENT ON.'
GO
CREATE PROCEDURE sp_getapplock @Resource nvarchar(255), @LockMode varchar(32), @LockOwner varchar(32) = 'Transaction',
  @LockTimeout int = NULL, @DbPrincipal sysname = 'public' AS
RETURN 0
GO
CREATE PROCEDURE sp_releaseapplock @Resource nvarchar(255), @LockOwner varchar(32) = 'Transaction',
  @DbPrincipal sysname = 'public' AS
RETURN 0
GO
CREATE PROCEDURE sp_set_session_context @key sysname, @value sql_variant, @read_only bit = 0 AS
RETURN 0
GO
CREATE PROCEDURE sp_rename @objname nvarchar(1035), @newname sysname, @objtype varchar(13) = NULL AS
RETURN 0
GO
CREATE PROCEDURE sp_who @loginame sysname = NULL AS
DECLARE @spid int = CASE WHEN @loginame NOT LIKE '%[^0-9]%' THEN TRY_CONVERT(int, @loginame) END
IF @spid IS NULL AND UPPER(@loginame) <> N'ACTIVE' AND SUSER_ID(@loginame) IS NULL
BEGIN
  RAISERROR(15007, -1, -1, @loginame)
  RETURN 1
END
SELECT p.spid, p.ecid, p.status, p.loginame, p.hostname, CONVERT(char(5), p.blocked) AS blk, d.name AS dbname, p.cmd, p.request_id
FROM sys.sysprocesses AS p LEFT JOIN sys.databases AS d ON d.database_id = p.dbid
WHERE @loginame IS NULL OR p.spid = @spid OR @spid IS NULL AND p.loginame = @loginame
  OR UPPER(@loginame) = N'ACTIVE' AND p.cmd <> N'AWAITING COMMAND'
ORDER BY p.spid
RETURN 0
GO
CREATE PROCEDURE sp_who2 @loginame sysname = NULL AS
DECLARE @spid int = CASE WHEN @loginame NOT LIKE '%[^0-9]%' THEN TRY_CONVERT(int, @loginame) END
IF @spid IS NULL AND UPPER(@loginame) <> N'ACTIVE' AND SUSER_ID(@loginame) IS NULL
BEGIN
  RAISERROR(15007, -1, -1, @loginame)
  RETURN 1
END
SELECT CONVERT(char(5), p.spid) AS SPID, p.status AS Status, p.loginame AS Login,
  CASE p.hostname WHEN N'' THEN N'  .' ELSE p.hostname END AS HostName,
  CASE p.blocked WHEN 0 THEN N'  .' ELSE CONVERT(nvarchar(5), p.blocked) END AS BlkBy, d.name AS DBName, p.cmd AS Command,
  p.cpu AS CPUTime, p.physical_io AS DiskIO, p.last_batch AS LastBatch, p.program_name AS ProgramName, CONVERT(char(5), p.spid) AS [SPID],
  p.request_id AS REQUESTID
FROM sys.sysprocesses AS p LEFT JOIN sys.databases AS d ON d.database_id = p.dbid
WHERE @loginame IS NULL OR p.spid = @spid OR @spid IS NULL AND p.loginame = @loginame
  OR UPPER(@loginame) = N'ACTIVE' AND p.cmd <> N'AWAITING COMMAND'
ORDER BY p.spid
RETURN 0
