package parser_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/tsql/parser"
)

// fifty is a procedure of fifty lines as activation has them.
const fifty = `CREATE PROCEDURE dbo.process_requests
AS
BEGIN
  SET NOCOUNT ON;
  DECLARE @handle uniqueidentifier, @type sysname, @body xml, @id int;
  DECLARE @number int, @message nvarchar(4000), @state int;
  SET XACT_ABORT OFF;
  WHILE (1 = 1)
  BEGIN
    BEGIN TRY
      BEGIN TRANSACTION;
      WAITFOR (
        RECEIVE TOP (1)
          @handle = conversation_handle,
          @type = message_type_name,
          @body = CAST(message_body AS xml)
        FROM dbo.RequestQueue
      ), TIMEOUT 5000;
      IF (@@ROWCOUNT = 0)
      BEGIN
        ROLLBACK TRANSACTION;
        BREAK;
      END
      IF @type = N'//example/Request'
      BEGIN
        SELECT @id = @body.value('(/Request/Id)[1]', 'int');
        UPDATE dbo.requests SET state = 'done', changed = GETUTCDATE()
        WHERE id = @id AND state <> 'done';
        IF EXISTS (SELECT * FROM dbo.requests AS r JOIN dbo.parts AS p ON p.request = r.id WHERE r.id = @id)
          INSERT INTO dbo.log (id, text, at) VALUES (@id, N'done ' + CONVERT(nvarchar(20), @id), SYSUTCDATETIME());
        SEND ON CONVERSATION @handle MESSAGE TYPE [//example/Reply] (@body);
      END
      ELSE IF @type = N'http://schemas.microsoft.com/SQL/ServiceBroker/EndDialog'
        END CONVERSATION @handle;
      ELSE IF @type = N'http://schemas.microsoft.com/SQL/ServiceBroker/Error'
      BEGIN
        SELECT @message = @body.value('(/Error/Description)[1]', 'nvarchar(4000)');
        RAISERROR (N'%s', 16, 1, @message) WITH LOG;
        END CONVERSATION @handle;
      END
      COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
      SELECT @number = ERROR_NUMBER(), @message = ERROR_MESSAGE(), @state = XACT_STATE();
      IF @state = -1 ROLLBACK TRANSACTION;
      IF @state = 1 ROLLBACK TRANSACTION;
      RAISERROR (N'%d: %s', 16, 1, @number, @message);
    END CATCH
  END
END`

// A batch of fifty lines parses in less than a millisecond.
func BenchmarkFiftyLines(b *testing.B) {
	if lines := strings.Count(fifty, "\n") + 1; lines < 50 {
		b.Fatalf("%d lines", lines)
	}
	for b.Loop() {
		if _, err := parser.Parse(fifty, parser.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
