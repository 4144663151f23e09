-- A client asks a price and sets a timer: where no answer comes in time, it asks again, and gives up after two.
SET NOCOUNT ON
GO
CREATE MESSAGE TYPE PriceRequest VALIDATION = NONE
CREATE MESSAGE TYPE PriceReply VALIDATION = NONE
CREATE CONTRACT PriceContract (PriceRequest SENT BY INITIATOR, PriceReply SENT BY TARGET)
CREATE QUEUE ClientQueue
CREATE QUEUE PriceQueue
CREATE SERVICE ClientService ON QUEUE ClientQueue
CREATE SERVICE PriceService ON QUEUE PriceQueue (PriceContract)
GO
CREATE TABLE Requests (h uniqueidentifier PRIMARY KEY, article varchar(10) NOT NULL, attempts tinyint NOT NULL DEFAULT 1, price money NULL, state char(1) NOT NULL DEFAULT 'W')
GO
CREATE PROCEDURE Ask @article varchar(10) AS
BEGIN
  DECLARE @h uniqueidentifier
  BEGIN TRAN
  BEGIN DIALOG @h FROM SERVICE ClientService TO SERVICE 'PriceService' ON CONTRACT PriceContract WITH ENCRYPTION = OFF, LIFETIME = 600
  INSERT Requests (h, article) VALUES (@h, @article)
  BEGIN CONVERSATION TIMER (@h) TIMEOUT = 1;
  SEND ON CONVERSATION @h MESSAGE TYPE PriceRequest (@article)
  COMMIT
END
GO
CREATE PROCEDURE Answer AS
BEGIN
  DECLARE @h uniqueidentifier, @type nvarchar(256), @article varchar(10);
  RECEIVE TOP (1) @h = conversation_handle, @type = message_type_name, @article = CAST(message_body AS varchar(10)) FROM PriceQueue
  WHILE @@ROWCOUNT > 0
  BEGIN
    IF @type = 'PriceRequest' AND @article <> 'lost'
    BEGIN
      DECLARE @price money
      SET @price = CASE @article WHEN 'book' THEN 12.5 WHEN 'pen' THEN 1 ELSE NULL END;
      IF @price IS NULL
        END CONVERSATION @h WITH ERROR = 404 DESCRIPTION = 'no such article'
      ELSE
      BEGIN
        DECLARE @text varchar(20) = CONVERT(varchar(20), @price);
        SEND ON CONVERSATION @h MESSAGE TYPE PriceReply (@text)
      END
    END
    IF @type = 'http://schemas.microsoft.com/SQL/ServiceBroker/EndDialog' END CONVERSATION @h;
    RECEIVE TOP (1) @h = conversation_handle, @type = message_type_name, @article = CAST(message_body AS varchar(10)) FROM PriceQueue
  END
END
GO
CREATE PROCEDURE Listen @ms int AS
BEGIN
  DECLARE @h uniqueidentifier, @type nvarchar(256), @body varbinary(max)
  WHILE EXISTS (SELECT * FROM Requests WHERE state = 'W')
  BEGIN
    BEGIN TRAN
    WAITFOR (RECEIVE TOP (1) @h = conversation_handle, @type = message_type_name, @body = message_body FROM ClientQueue), TIMEOUT @ms
    IF @@ROWCOUNT = 0 BEGIN ROLLBACK RETURN 1 END
    IF @type = N'PriceReply'
    BEGIN
      UPDATE Requests SET price = CAST(CAST(@body AS varchar(20)) AS money), state = 'A' WHERE h = @h;
      END CONVERSATION @h
    END
    ELSE IF @type = N'http://schemas.microsoft.com/SQL/ServiceBroker/DialogTimer'
    BEGIN
      IF (SELECT attempts FROM Requests WHERE h = @h AND state = 'W') < 2
      BEGIN
        UPDATE Requests SET attempts = attempts + 1 WHERE h = @h
        DECLARE @article varchar(10)
        SELECT @article = article FROM Requests WHERE h = @h;
        SEND ON CONVERSATION @h MESSAGE TYPE PriceRequest (@article);
        BEGIN CONVERSATION TIMER (@h) TIMEOUT = 1
      END
      ELSE
      BEGIN
        UPDATE Requests SET state = 'L' WHERE h = @h;
        END CONVERSATION @h WITH CLEANUP
      END
    END
    ELSE IF @type = N'http://schemas.microsoft.com/SQL/ServiceBroker/Error'
    BEGIN
      DECLARE @error xml = @body;
      PRINT @error.value('declare namespace e="http://schemas.microsoft.com/SQL/ServiceBroker/Error"; (/e:Error/e:Description)[1]', 'nvarchar(100)')
      UPDATE Requests SET state = 'E' WHERE h = @h;
      END CONVERSATION @h
    END
    COMMIT
  END
  RETURN 0
END
GO
EXEC Ask 'book'
EXEC Ask 'shoe'
EXEC Ask 'lost'
EXEC Answer
DECLARE @r int
EXEC @r = Listen 60000
SELECT article, attempts, price, state FROM Requests ORDER BY article
IF @r <> 0 PRINT 'nothing came'
