-- Each change of a price is sent to an audit, in the transaction of the change.
CREATE QUEUE AuditSource
CREATE QUEUE AuditTarget
CREATE SERVICE AuditSource ON QUEUE AuditSource
CREATE SERVICE AuditTarget ON QUEUE AuditTarget ([DEFAULT])
GO
CREATE TABLE Prices (Article varchar(20) NOT NULL PRIMARY KEY, Price decimal(9,2) NOT NULL)
CREATE TABLE AuditDialog (h uniqueidentifier NOT NULL)
CREATE TABLE Audit (Id int IDENTITY PRIMARY KEY, Verb char(6), Article varchar(20), Old decimal(9,2), New decimal(9,2), Who sysname)
GO
CREATE TRIGGER trg_Prices ON Prices
AFTER INSERT, UPDATE, DELETE
AS
BEGIN
  SET NOCOUNT ON
  IF NOT EXISTS (SELECT * FROM inserted) AND NOT EXISTS (SELECT * FROM deleted) RETURN
  DECLARE @h uniqueidentifier, @body xml
  SET @body = (
    SELECT CASE WHEN d.Article IS NULL THEN 'insert' WHEN i.Article IS NULL THEN 'delete' ELSE 'update' END AS [@verb],
      COALESCE(i.Article, d.Article) AS [@article], d.Price AS [@old], i.Price AS [@new], SUSER_SNAME() AS [@who]
    FROM inserted i FULL OUTER JOIN deleted d ON i.Article = d.Article
    ORDER BY COALESCE(i.Article, d.Article)
    FOR XML PATH('change'), ROOT('changes'), TYPE)
  SELECT TOP (1) @h = h FROM AuditDialog
  IF @h IS NULL
  BEGIN
    BEGIN DIALOG CONVERSATION @h FROM SERVICE AuditSource TO SERVICE 'AuditTarget' WITH ENCRYPTION = OFF
    INSERT INTO AuditDialog (h) VALUES (@h)
  END;
  SEND ON CONVERSATION @h (@body)
END
GO
INSERT INTO Prices VALUES ('book', 10), ('pen', 1)
UPDATE Prices SET Price = Price * 1.1 WHERE Article = 'book'
BEGIN TRAN
DELETE FROM Prices
ROLLBACK
DELETE FROM Prices WHERE Article = 'pen'
GO
DECLARE @body xml
WHILE 1 = 1
BEGIN
  BEGIN TRAN;
  RECEIVE TOP (1) @body = message_body FROM AuditTarget
  IF @@ROWCOUNT = 0 BEGIN COMMIT BREAK END
  INSERT INTO Audit (Verb, Article, Old, New, Who)
  SELECT c.value('@verb', 'char(6)'), c.value('@article', 'varchar(20)'), c.value('@old', 'decimal(9,2)'), c.value('@new', 'decimal(9,2)'),
    c.value('@who', 'sysname')
  FROM @body.nodes('/changes/change') AS x (c)
  COMMIT
END
SELECT Verb, Article, Old, New, CASE WHEN Who = SUSER_SNAME() THEN 'me' ELSE Who END AS Who FROM Audit ORDER BY Id
SELECT Article, Price FROM Prices
