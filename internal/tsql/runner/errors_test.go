package runner_test

import (
	"testing"

	"github.com/parley-broker/parley/parleytest"
)

// A procedure takes code and description out of the broker's Error message; a namespace that is spelt in another way finds neither.
func TestAProcedureReadsTheErrorMessageOfTheBroker(t *testing.T) {
	t.Parallel()
	got := script(t, parleytest.Database(t).Config().ConnConfig, `CREATE QUEUE q
CREATE SERVICE s ON QUEUE q ([DEFAULT])
GO
CREATE PROCEDURE ReadError (@body VARBINARY(MAX), @code int OUTPUT, @description NVARCHAR(3000) OUTPUT, @other int OUTPUT)
AS
BEGIN
  DECLARE @document XML;
  SET @document = CAST(@body AS XML);
  SET @code = @@ERROR
  IF @@ERROR<>0
    RETURN @code
  SET @code = (
    SELECT @document.value(
      N'declare namespace
         e="http://schemas.microsoft.com/SQL/ServiceBroker/Error";
           (/e:Error/e:Code)[1]', 'int')
  );
  SET @description = (
    SELECT @document.value(
      'declare namespace e="http://schemas.microsoft.com/SQL/ServiceBroker/Error";
         (/e:Error/e:Description)[1]', 'nvarchar(3000)')
  );
  SET @other = (
    SELECT @document.value(
      'declare namespace e="https://schemas.microsoft.com/SQL/ServiceBroker/Error";
         (/e:Error/e:Code)[1]', 'int')
  );
  RETURN 0;
END
GO
DECLARE @dialog uniqueidentifier, @body varbinary(max), @kind sysname, @code int, @description nvarchar(3000), @other int, @result int
BEGIN DIALOG @dialog FROM SERVICE s TO SERVICE 's', 'current database' WITH ENCRYPTION = OFF;
SEND ON CONVERSATION @dialog (N'x');
RECEIVE @dialog = conversation_handle FROM q
END CONVERSATION @dialog WITH ERROR = 17 DESCRIPTION = N'No such shelf, <sorry>';
RECEIVE @body = message_body, @kind = message_type_name FROM q
PRINT @kind
EXEC @result = ReadError @body, @code OUTPUT, @description OUTPUT, @other OUTPUT
PRINT CONCAT(@result, ' ', @code, ' ', @description, ' ', ISNULL(CAST(@other AS varchar(10)), 'NULL'))`)
	want := `http://schemas.microsoft.com/SQL/ServiceBroker/Error
0 17 No such shelf, <sorry> NULL`
	if got != want {
		t.Errorf("--- got\n%s\n--- want\n%s", got, want)
	}
}
