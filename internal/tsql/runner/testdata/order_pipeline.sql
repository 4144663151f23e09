-- A shop takes orders, a warehouse ships them: two services in one database, the warehouse by an activated procedure.
SET NOCOUNT ON;
CREATE TABLE dbo.Orders (
  OrderID int IDENTITY(1,1) NOT NULL CONSTRAINT PK_Orders PRIMARY KEY,
  Customer nvarchar(50) NOT NULL,
  Quantity int NOT NULL CONSTRAINT CK_Quantity CHECK (Quantity > 0),
  Status varchar(20) NOT NULL CONSTRAINT DF_Status DEFAULT ('new'),
  ChangedAt datetime2(3) NOT NULL DEFAULT (SYSUTCDATETIME())
);
CREATE TABLE dbo.Problems (ProblemID int IDENTITY PRIMARY KEY, Number int, Message nvarchar(2048), Body xml);
GO
CREATE MESSAGE TYPE [//shop/order] VALIDATION = WELL_FORMED_XML;
CREATE MESSAGE TYPE [//shop/shipped] VALIDATION = WELL_FORMED_XML;
CREATE CONTRACT [//shop/shipping] ([//shop/order] SENT BY INITIATOR, [//shop/shipped] SENT BY TARGET);
GO
CREATE QUEUE dbo.ShopQueue;
CREATE SERVICE [//shop/shop] ON QUEUE dbo.ShopQueue ([//shop/shipping]);
CREATE QUEUE dbo.WarehouseQueue WITH STATUS = ON, RETENTION = OFF;
CREATE SERVICE [//shop/warehouse] ON QUEUE dbo.WarehouseQueue ([//shop/shipping]);
GO
CREATE PROCEDURE dbo.usp_PlaceOrder @Customer nvarchar(50), @Quantity int, @OrderID int OUTPUT
AS
BEGIN
  SET NOCOUNT ON;
  SET XACT_ABORT ON;
  DECLARE @Dialog uniqueidentifier, @Body xml;
  BEGIN TRY
    BEGIN TRANSACTION;
    INSERT INTO dbo.Orders (Customer, Quantity) VALUES (@Customer, @Quantity);
    SET @OrderID = SCOPE_IDENTITY();
    SET @Body = (SELECT OrderID AS [@id], Customer, Quantity FROM dbo.Orders WHERE OrderID = @OrderID FOR XML PATH('Order'), TYPE);
    BEGIN DIALOG CONVERSATION @Dialog
      FROM SERVICE [//shop/shop] TO SERVICE N'//shop/warehouse', N'CURRENT DATABASE'
      ON CONTRACT [//shop/shipping] WITH ENCRYPTION = OFF;
    SEND ON CONVERSATION @Dialog MESSAGE TYPE [//shop/order] (@Body);
    COMMIT TRANSACTION;
  END TRY
  BEGIN CATCH
    IF XACT_STATE() <> 0 ROLLBACK TRANSACTION;
    DECLARE @Text nvarchar(2048) = ERROR_MESSAGE(), @Severity int = ERROR_SEVERITY(), @State int = ERROR_STATE();
    RAISERROR(N'The order was not taken: %s', @Severity, @State, @Text);
    RETURN -1;
  END CATCH
END
GO
CREATE PROCEDURE dbo.usp_Warehouse
AS
BEGIN
  SET NOCOUNT ON;
  DECLARE @Dialog uniqueidentifier, @Type sysname, @Body xml, @OrderID int;
  WHILE (1 = 1)
  BEGIN
    BEGIN TRY
      BEGIN TRANSACTION;
      WAITFOR (
        RECEIVE TOP (1) @Dialog = conversation_handle, @Type = message_type_name, @Body = CAST(message_body AS xml)
        FROM dbo.WarehouseQueue
      ), TIMEOUT 500;
      IF (@@ROWCOUNT = 0)
      BEGIN
        ROLLBACK TRANSACTION;
        BREAK;
      END
      IF (@Type = N'//shop/order')
      BEGIN
        SET @OrderID = @Body.value('(/Order/@id)[1]', 'int');
        UPDATE dbo.Orders SET Status = 'shipped', ChangedAt = SYSUTCDATETIME() WHERE OrderID = @OrderID;
        SET @Body = (SELECT @OrderID AS [@id], Customer AS [@customer] FROM dbo.Orders WHERE OrderID = @OrderID FOR XML PATH('Shipped'), TYPE);
        SEND ON CONVERSATION @Dialog MESSAGE TYPE [//shop/shipped] (@Body);
        END CONVERSATION @Dialog;
      END
      ELSE IF (@Type = N'http://schemas.microsoft.com/SQL/ServiceBroker/EndDialog')
        END CONVERSATION @Dialog;
      ELSE IF (@Type = N'http://schemas.microsoft.com/SQL/ServiceBroker/Error')
      BEGIN
        INSERT INTO dbo.Problems (Number, Message, Body)
        SELECT @Body.value('declare namespace e="http://schemas.microsoft.com/SQL/ServiceBroker/Error"; (/e:Error/e:Code)[1]', 'int'), N'error', @Body;
        END CONVERSATION @Dialog;
      END
      COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
      IF XACT_STATE() <> 0 ROLLBACK TRANSACTION;
      INSERT INTO dbo.Problems (Number, Message) VALUES (ERROR_NUMBER(), ERROR_MESSAGE());
      BREAK;
    END CATCH
  END
END
GO
ALTER QUEUE dbo.WarehouseQueue WITH ACTIVATION (
  STATUS = ON, PROCEDURE_NAME = dbo.usp_Warehouse, MAX_QUEUE_READERS = 2, EXECUTE AS OWNER);
GO
DECLARE @OrderID int, @Result int;
EXEC @Result = dbo.usp_PlaceOrder @Customer = N'Anna', @Quantity = 2, @OrderID = @OrderID OUTPUT;
PRINT CONCAT('order ', @OrderID, ', result ', @Result);
EXEC @Result = dbo.usp_PlaceOrder N'Berta', 0, @OrderID OUTPUT;
PRINT CONCAT('result ', @Result, ', open ', @@TRANCOUNT);
EXEC dbo.usp_PlaceOrder N'Carl', 5, @OrderID OUTPUT;
GO
DECLARE @Answers TABLE (Place int, Type sysname, Body xml);
DECLARE @Dialog uniqueidentifier, @Type sysname, @Body xml, @Place int, @Left int = 4;
WHILE @Left > 0
BEGIN
  SET @Dialog = NULL;
  WAITFOR (RECEIVE TOP (1) @Dialog = conversation_handle, @Type = message_type_name, @Body = message_body FROM dbo.ShopQueue), TIMEOUT 60000;
  IF @Dialog IS NULL BREAK;
  SET @Place = @Body.value('(/Shipped/@id)[1]', 'int');
  INSERT INTO @Answers (Place, Type, Body) VALUES (@Place, @Type, @Body);
  IF @Type = N'http://schemas.microsoft.com/SQL/ServiceBroker/EndDialog' END CONVERSATION @Dialog;
  SET @Left -= 1;
END
SELECT Body.value('(/Shipped/@id)[1]', 'int') AS id, Body.value('(/Shipped/@customer)[1]', 'nvarchar(50)') AS customer
FROM @Answers WHERE Type = N'//shop/shipped' ORDER BY Place;
SELECT OrderID, Customer, Quantity, Status FROM dbo.Orders ORDER BY OrderID;
SELECT COUNT(*) AS Problems FROM dbo.Problems;
