-- A conversation in one database: a question, an answer, the end of both sides, and nothing is left.
USE master;
GO
ALTER DATABASE Library SET ENABLE_BROKER;
GO
USE Library;
GO
CREATE MESSAGE TYPE [//example.com/library/Question] VALIDATION = WELL_FORMED_XML;
CREATE MESSAGE TYPE [//example.com/library/Answer] VALIDATION = WELL_FORMED_XML;
GO
CREATE CONTRACT [//example.com/library/Enquiry] (
  [//example.com/library/Question] SENT BY INITIATOR,
  [//example.com/library/Answer] SENT BY TARGET
);
GO
CREATE QUEUE DeskQueue;

CREATE SERVICE [//example.com/library/Desk] ON QUEUE DeskQueue ([//example.com/library/Enquiry]);
GO
CREATE QUEUE ReaderQueue;

CREATE SERVICE [//example.com/library/Reader] ON QUEUE ReaderQueue;
GO
DECLARE @dialog UNIQUEIDENTIFIER;
DECLARE @question NVARCHAR(100);

BEGIN TRANSACTION;

BEGIN DIALOG @dialog
  FROM SERVICE [//example.com/library/Reader]
  TO SERVICE N'//example.com/library/Desk'
  ON CONTRACT [//example.com/library/Enquiry]
  WITH ENCRYPTION = OFF;

SELECT @question = N'<Question>Is it in?</Question>';

SEND ON CONVERSATION @dialog
  MESSAGE TYPE [//example.com/library/Question]
  (@question);

SELECT @question AS Asked;

COMMIT TRANSACTION;
GO
DECLARE @dialog UNIQUEIDENTIFIER;
DECLARE @question NVARCHAR(100);
DECLARE @kind sysname;

BEGIN TRANSACTION;

WAITFOR (
  RECEIVE TOP(1) @dialog = conversation_handle, @question = message_body, @kind = message_type_name
  FROM DeskQueue
), TIMEOUT 1000;

SELECT @question AS Heard;

IF @kind = N'//example.com/library/Question'
BEGIN
  DECLARE @answer NVARCHAR(100);
  SELECT @answer = N'<Answer>On the third shelf.</Answer>';

  SEND ON CONVERSATION @dialog
    MESSAGE TYPE [//example.com/library/Answer]
    (@answer);

  END CONVERSATION @dialog;
END

SELECT @answer AS Told;

COMMIT TRANSACTION;
GO
DECLARE @answer NVARCHAR(100);
DECLARE @dialog UNIQUEIDENTIFIER;

BEGIN TRANSACTION;

WAITFOR (
  RECEIVE TOP(1) @dialog = conversation_handle, @answer = message_body
  FROM ReaderQueue
), TIMEOUT 1000;

END CONVERSATION @dialog;

SELECT @answer AS Learnt;

COMMIT TRANSACTION;
GO
IF EXISTS (SELECT * FROM sys.services WHERE name = N'//example.com/library/Desk')
  DROP SERVICE [//example.com/library/Desk];

IF EXISTS (SELECT * FROM sys.service_queues WHERE name = N'DeskQueue')
  DROP QUEUE DeskQueue;

IF EXISTS (SELECT * FROM sys.services WHERE name = N'//example.com/library/Reader')
  DROP SERVICE [//example.com/library/Reader];

IF EXISTS (SELECT * FROM sys.service_queues WHERE name = N'ReaderQueue')
  DROP QUEUE ReaderQueue;

IF EXISTS (SELECT * FROM sys.service_contracts WHERE name = N'//example.com/library/Enquiry')
  DROP CONTRACT [//example.com/library/Enquiry];

IF EXISTS (SELECT * FROM sys.service_message_types WHERE name = N'//example.com/library/Question')
  DROP MESSAGE TYPE [//example.com/library/Question];

IF EXISTS (SELECT * FROM sys.service_message_types WHERE name = N'//example.com/library/Answer')
  DROP MESSAGE TYPE [//example.com/library/Answer];
GO
SELECT COUNT(*) AS Remaining FROM sys.services WHERE service_id > 65535;
GO
