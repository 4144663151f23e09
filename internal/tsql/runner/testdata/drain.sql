-- A queue is filled, and procedures drain it: by one message, by batches, by cursors over sets, by sets of documents and of packed bytes.
IF EXISTS (SELECT * FROM sys.databases WHERE NAME = 'Waterworks')
  DROP DATABASE Waterworks;
GO
CREATE DATABASE Waterworks
ON (NAME = Waterworks, FILENAME = 'D:\waterworks.mdf', SIZE = 4GB)
LOG ON (NAME = Waterworks_log, FILENAME = 'E:\waterworks.ldf', SIZE = 10GB);
GO
USE Waterworks;
GO
CREATE QUEUE Spring;
CREATE QUEUE Basin;
CREATE SERVICE Spring ON QUEUE Spring;
CREATE SERVICE Basin ON QUEUE Basin ([DEFAULT]);
GO
CREATE PROCEDURE FillBasin @dialogs int, @each int, @content varbinary(max) AS
BEGIN
  SET NOCOUNT ON;
  DECLARE @pending int;
  SELECT @pending = 0;
  DECLARE @dialog uniqueidentifier;
  BEGIN TRANSACTION;
  WHILE @dialogs > 0
  BEGIN
    BEGIN DIALOG CONVERSATION @dialog FROM SERVICE Spring TO SERVICE N'Basin', 'current database' WITH ENCRYPTION = OFF;
    DECLARE @sent int;
    SELECT @sent = 0;
    WHILE @sent < @each
    BEGIN
      SEND ON CONVERSATION @dialog (@content);
      SELECT @sent = @sent + 1, @pending = @pending + 1;
      IF @pending >= 5
      BEGIN
        COMMIT;
        SELECT @pending = 0;
        BEGIN TRANSACTION;
      END
    END
    SELECT @dialogs = @dialogs - 1
  END
  COMMIT;
END
GO
CREATE PROCEDURE DrainOne AS
BEGIN
  SET NOCOUNT ON;
  DECLARE @dialog uniqueidentifier, @kind sysname, @content varbinary(max);
  WHILE 1 = 1
  BEGIN
    BEGIN TRANSACTION;
    WAITFOR (
      RECEIVE TOP (1) @dialog = conversation_handle, @kind = message_type_name, @content = message_body FROM Basin
    ), TIMEOUT 200;
    IF @@ROWCOUNT = 0 BEGIN COMMIT; BREAK; END
    IF @kind = N'DEFAULT'
      SEND ON CONVERSATION @dialog (@content);
    ELSE IF @kind = N'http://schemas.microsoft.com/SQL/ServiceBroker/EndDialog'
      END CONVERSATION @dialog;
    ELSE IF @kind = N'http://schemas.microsoft.com/SQL/ServiceBroker/Error'
    BEGIN
      -- The variables are declared once, however often the loop comes here.
      DECLARE @handle nvarchar(100), @reason nvarchar(4000);
      SELECT @handle = CAST(@dialog AS nvarchar(100)), @reason = CAST(@content AS nvarchar(4000));
      RAISERROR (N'%s ended with %s', 10, 1, @handle, @reason) WITH LOG;
      END CONVERSATION @dialog;
    END
    COMMIT;
  END
END
GO
DECLARE @content varbinary(max);
SELECT @content = CAST(N'<drop/>' AS varbinary(max));
EXEC FillBasin 100, 100, @content;
GO
DECLARE @count float, @begun datetime, @ended datetime;
SELECT @count = COUNT(*) FROM Basin;
SELECT @begun = GETDATE();
EXEC DrainOne;
SELECT @ended = GETDATE();
SELECT @begun AS begun, @ended AS ended, @count AS messages, DATEDIFF(second, @begun, @ended) AS seconds,
  @count / DATEDIFF(millisecond, @begun, @ended) * 1000 AS rate;
GO
CREATE PROCEDURE DrainBatches AS
BEGIN
  SET NOCOUNT ON;
  DECLARE @dialog uniqueidentifier, @kind sysname, @content varbinary(max);
  DECLARE @taken int = 0;
  BEGIN TRANSACTION;
  WHILE 1 = 1
  BEGIN
    WAITFOR (
      RECEIVE TOP (1) @dialog = conversation_handle, @kind = message_type_name, @content = message_body FROM Basin
    ), TIMEOUT 200;
    IF @@ROWCOUNT = 0 BREAK;
    IF @kind = N'DEFAULT'
      SEND ON CONVERSATION @dialog (@content);
    ELSE IF @kind = N'http://schemas.microsoft.com/SQL/ServiceBroker/EndDialog'
      END CONVERSATION @dialog;
    ELSE IF @kind = N'http://schemas.microsoft.com/SQL/ServiceBroker/Error'
    BEGIN
      -- The variables are declared once, however often the loop comes here.
      DECLARE @handle nvarchar(100), @reason nvarchar(4000);
      SELECT @handle = CAST(@dialog AS nvarchar(100)), @reason = CAST(@content AS nvarchar(4000));
      RAISERROR (N'%s ended with %s', 10, 1, @handle, @reason) WITH LOG;
      END CONVERSATION @dialog;
    END
    SET @taken += 1;
    IF @taken % 5 = 0 BEGIN COMMIT; BEGIN TRANSACTION; END
  END
  COMMIT;
END
GO
ALTER DATABASE Waterworks SET NEW_BROKER WITH ROLLBACK IMMEDIATE;
GO
USE Waterworks;
GO
DECLARE @content varbinary(max);
SELECT @content = CAST(N'<drop/>' AS varbinary(max));
EXEC FillBasin 100, 100, @content;
GO
DECLARE @count float, @begun datetime, @ended datetime;
SELECT @count = COUNT(*) FROM Basin;
SELECT @begun = GETDATE();
EXEC DrainBatches;
SELECT @ended = GETDATE();
SELECT @begun AS begun, @ended AS ended, @count AS messages, DATEDIFF(second, @begun, @ended) AS seconds,
  @count / DATEDIFF(millisecond, @begun, @ended) * 1000 AS rate;
GO
IF EXISTS (SELECT * FROM sys.procedures WHERE NAME = N'DrainSets')
  DROP PROCEDURE DrainSets;
GO
CREATE PROCEDURE DrainSets AS
BEGIN
  SET NOCOUNT ON;
  DECLARE @messages TABLE (place bigint, dialog uniqueidentifier, kind sysname, content varbinary(max));
  -- It is declared before the table has a row, and opened when it has some.
  DECLARE each CURSOR FORWARD_ONLY READ_ONLY FOR SELECT dialog, kind, content FROM @messages ORDER BY place;
  DECLARE @dialog uniqueidentifier, @kind sysname, @content varbinary(max);
  WHILE 1 = 1
  BEGIN
    BEGIN TRANSACTION;
    WAITFOR (
      RECEIVE queuing_order, conversation_handle, message_type_name, message_body FROM Basin INTO @messages
    ), TIMEOUT 200;
    IF @@ROWCOUNT = 0 BEGIN COMMIT; BREAK; END
    OPEN each;
    WHILE 1 = 1
    BEGIN
      FETCH NEXT FROM each INTO @dialog, @kind, @content;
      IF @@FETCH_STATUS != 0 BREAK;
      IF @kind = N'DEFAULT'
        SEND ON CONVERSATION @dialog (@content);
      ELSE IF @kind IN (N'http://schemas.microsoft.com/SQL/ServiceBroker/EndDialog', 
        N'http://schemas.microsoft.com/SQL/ServiceBroker/Error')
        END CONVERSATION @dialog;
    END
    CLOSE each;
    DELETE FROM @messages;
    COMMIT;
  END
  DEALLOCATE each;
END
GO
ALTER DATABASE Waterworks SET NEW_BROKER WITH ROLLBACK IMMEDIATE;
GO
USE Waterworks;
GO
DECLARE @content varbinary(max);
SELECT @content = CAST(N'<drop/>' AS varbinary(max));
EXEC FillBasin 100, 100, @content;
GO
DECLARE @count float, @begun datetime, @ended datetime;
SELECT @count = COUNT(*) FROM Basin;
SELECT @begun = GETDATE();
EXEC DrainSets;
SELECT @ended = GETDATE();
SELECT @begun AS begun, @ended AS ended, @count AS messages, DATEDIFF(second, @begun, @ended) AS seconds,
  @count / DATEDIFF(millisecond, @begun, @ended) * 1000 AS rate;
GO
IF EXISTS (SELECT * FROM sys.procedures WHERE NAME = N'DrainSetsByNumber')
  DROP PROCEDURE DrainSetsByNumber;
GO
CREATE PROCEDURE DrainSetsByNumber AS
BEGIN
  SET NOCOUNT ON;
  DECLARE @messages TABLE (place bigint, dialog uniqueidentifier, kind int, content varbinary(max));
  -- It is declared before the table has a row, and opened when it has some.
  DECLARE each CURSOR FORWARD_ONLY READ_ONLY FOR SELECT dialog, kind, content FROM @messages ORDER BY place;
  DECLARE @dialog uniqueidentifier, @kind int, @content varbinary(max);
  WHILE 1 = 1
  BEGIN
    BEGIN TRANSACTION;
    WAITFOR (
      RECEIVE queuing_order, conversation_handle, message_type_id, message_body FROM Basin INTO @messages
    ), TIMEOUT 200;
    IF @@ROWCOUNT = 0 BEGIN COMMIT; BREAK; END
    OPEN each;
    WHILE 1 = 1
    BEGIN
      FETCH NEXT FROM each INTO @dialog, @kind, @content;
      IF @@FETCH_STATUS != 0 BREAK;
      IF @kind = 14
        SEND ON CONVERSATION @dialog (@content);
      ELSE IF @kind IN (2, 1)
        END CONVERSATION @dialog;
    END
    CLOSE each;
    DELETE FROM @messages;
    COMMIT;
  END
  DEALLOCATE each;
END
GO
ALTER DATABASE Waterworks SET NEW_BROKER WITH ROLLBACK IMMEDIATE;
GO
USE Waterworks;
GO
DECLARE @content varbinary(max);
SELECT @content = CAST(N'<drop/>' AS varbinary(max));
EXEC FillBasin 100, 100, @content;
GO
DECLARE @count float, @begun datetime, @ended datetime;
SELECT @count = COUNT(*) FROM Basin;
SELECT @begun = GETDATE();
EXEC DrainSetsByNumber;
SELECT @ended = GETDATE();
SELECT @begun AS begun, @ended AS ended, @count AS messages, DATEDIFF(second, @begun, @ended) AS seconds,
  @count / DATEDIFF(millisecond, @begun, @ended) * 1000 AS rate;
GO
ALTER DATABASE Waterworks SET NEW_BROKER WITH ROLLBACK IMMEDIATE;
GO
USE Waterworks;
GO
IF EXISTS (SELECT * FROM sys.tables WHERE NAME = N'Reading')
  DROP TABLE Reading;
GO
CREATE TABLE Reading ([Id] int NOT NULL IDENTITY, [When] datetime, [Note] nvarchar(max), [By] nvarchar(256), [Document] xml);
GO
CREATE PROCEDURE StoreDocuments AS
BEGIN
  SET NOCOUNT ON;
  DECLARE @messages TABLE (place bigint, dialog uniqueidentifier, kind sysname, document xml);
  WHILE 1 = 1
  BEGIN
    BEGIN TRANSACTION;
    WAITFOR (
      RECEIVE queuing_order, conversation_handle, message_type_name, CAST(message_body AS xml) AS document
      FROM Basin INTO @messages
    ), TIMEOUT 200;
    IF @@ROWCOUNT = 0 BEGIN COMMIT; BREAK; END
    ;WITH XMLNAMESPACES (DEFAULT 'urn:example:waterworks')
    INSERT INTO Reading ([When], [Note], [By], [Document])
    SELECT document.value(N'(/Reading/@taken-at)[1]', 'datetime'), document.value(N'(/Reading/@note)[1]', 'nvarchar(max)'),
      document.value(N'(/Reading/@by)[1]', 'nvarchar(256)'), document
    FROM @messages WHERE kind = N'DEFAULT' ORDER BY place;
    COMMIT;
    DELETE FROM @messages;
  END
END
GO
DECLARE @document xml, @content varbinary(max);
WITH XMLNAMESPACES (DEFAULT 'urn:example:waterworks')
SELECT @document = (
  SELECT GETDATE() AS [@taken-at], SUSER_SNAME() AS [@by], N'Half full' AS [@note] FOR XML PATH(N'Reading'), TYPE
);
SELECT @content = CAST(@document AS varbinary(max));
EXEC FillBasin 100, 100, @content;
GO
DECLARE @count float, @begun datetime, @ended datetime;
SELECT @count = COUNT(*) FROM Basin;
SELECT @begun = GETDATE();
EXEC StoreDocuments;
SELECT @ended = GETDATE();
SELECT @begun AS begun, @ended AS ended, @count AS messages, DATEDIFF(second, @begun, @ended) AS seconds,
  @count / DATEDIFF(millisecond, @begun, @ended) * 1000 AS rate;
GO
SELECT COUNT(*) AS stored FROM Reading WHERE [Note] = N'Half full' AND [Document] IS NOT NULL;
GO
-- A moment, some bytes and a name in one value, and out of it again: numbers and moments have their bytes in network order.
CREATE FUNCTION PackReading (@when datetime, @note varbinary(max), @by nvarchar(256)) RETURNS varbinary(max) AS
BEGIN
  DECLARE @packed varbinary(max), @noteLength bigint, @byLength int;
  SELECT @noteLength = LEN(@note), @byLength = LEN(@by) * 2;
  SELECT @packed = CAST(@when AS varbinary(max)) + CAST(@noteLength AS varbinary(max)) + @note
    + CAST(@byLength AS varbinary(max)) + CAST(@by AS varbinary(max));
  RETURN (@packed);
END
GO
IF EXISTS (SELECT * FROM sys.objects WHERE NAME = N'UnpackReading')
  DROP FUNCTION UnpackReading
GO
CREATE FUNCTION UnpackReading (@packed varbinary(max))
RETURNS @unpacked TABLE ([When] datetime, [Note] varbinary(max), [By] nvarchar(256)) AS
BEGIN
  DECLARE @when datetime, @by nvarchar(max), @note varbinary(max), @noteLength bigint, @byLength int;
  SELECT @when = CAST(SUBSTRING(@packed, 1, 8) AS datetime);
  SELECT @noteLength = CAST(SUBSTRING(@packed, 9, 8) AS bigint);
  SELECT @note = SUBSTRING(@packed, 17, @noteLength);
  SELECT @byLength = CAST(SUBSTRING(@packed, @noteLength + 17, 4) AS int)
  SELECT @by = CAST(SUBSTRING(@packed, @noteLength + 21, @byLength) AS nvarchar(256));
  INSERT INTO @unpacked VALUES (@when, @note, @by);
  RETURN;
END
GO
SELECT CONVERT(varchar(100), dbo.PackReading('2006-10-14T15:09:16.013', 0x0102FF, N'Ann'), 1) AS packed;
GO
DROP TABLE Reading;
CREATE TABLE Reading ([Id] int NOT NULL IDENTITY, [When] datetime, [Note] nvarchar(max), [By] nvarchar(256));
GO
CREATE PROCEDURE StorePacked AS
BEGIN
  SET NOCOUNT ON;
  DECLARE @messages TABLE (place bigint, dialog uniqueidentifier, kind sysname, content varbinary(max));
  WHILE 1 = 1
  BEGIN
    BEGIN TRANSACTION;
    WAITFOR (
      RECEIVE queuing_order, conversation_handle, message_type_name, message_body FROM Basin INTO @messages
    ), TIMEOUT 200;
    IF @@ROWCOUNT = 0 BEGIN COMMIT; BREAK; END
    INSERT INTO Reading ([When], [Note], [By])
    SELECT [When], [Note], [By] FROM @messages CROSS APPLY dbo.UnpackReading(content) WHERE kind = 'DEFAULT';
    COMMIT;
    DELETE FROM @messages;
  END
END
GO
DECLARE @content varbinary(max);
SELECT @content = dbo.PackReading('2006-10-14T15:09:16.013', 0x41004200, N'Ann');
EXEC FillBasin 100, 100, @content;
GO
DECLARE @count float, @begun datetime, @ended datetime;
SELECT @count = COUNT(*) FROM Basin;
SELECT @begun = GETDATE();
EXEC StorePacked;
SELECT @ended = GETDATE();
SELECT @begun AS begun, @ended AS ended, @count AS messages, DATEDIFF(second, @begun, @ended) AS seconds,
  @count / DATEDIFF(millisecond, @begun, @ended) * 1000 AS rate;
GO
SELECT COUNT(*) AS stored FROM Reading
WHERE [When] = '2006-10-14T15:09:16.013' AND [By] = N'Ann' AND CAST([Note] AS varbinary(max)) = 0x41004200;
GO
