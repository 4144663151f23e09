package broker_test

import (
	"testing"

	"github.com/parley-broker/parley/parleytest"
)

// workOnGroup is the loop of Service Broker's own samples: a group, and its messages until a RECEIVE gives none.
const workOnGroup = `
CREATE PROCEDURE work_on_group @queue sysname AS
DECLARE @group uniqueidentifier, @handle uniqueidentifier, @kind sysname
BEGIN TRY
  BEGIN TRANSACTION;
  IF @queue = 'OrderQueue' GET CONVERSATION GROUP @group FROM OrderQueue ELSE GET CONVERSATION GROUP @group FROM ShopQueue
  WHILE 1 = 1
  BEGIN
    IF @queue = 'OrderQueue'
      RECEIVE TOP (1) @handle = conversation_handle, @kind = message_type_name FROM OrderQueue WHERE conversation_group_id = @group
    ELSE
      RECEIVE TOP (1) @handle = conversation_handle, @kind = message_type_name FROM ShopQueue WHERE conversation_group_id = @group
    IF @@ROWCOUNT = 0 BREAK
    PRINT @kind
    END CONVERSATION @handle
  END
  RECEIVE message_type_name FROM OrderQueue WHERE conversation_group_id = @group
  COMMIT
END TRY
BEGIN CATCH
  PRINT CONCAT('caught ', ERROR_NUMBER())
  ROLLBACK
END CATCH`

// A transaction that has ended the last conversation of a group receives nothing from it, and goes on. A group that it never had is 8436.
func TestAGroupThatTheTransactionHasEndedIsEmpty(t *testing.T) {
	t.Parallel()
	r := newRunner(t, parleytest.Database(t))
	r.expect("definitions print nothing", definitions+"\nGO\n"+workOnGroup, "")
	r.expect("a target ends in the loop", `
DECLARE @h uniqueidentifier
BEGIN DIALOG @h FROM SERVICE [//shop/Shop] TO SERVICE '//shop/Orders' ON CONTRACT [//shop/Contract] WITH ENCRYPTION = OFF
;SEND ON CONVERSATION @h MESSAGE TYPE [//shop/Order] (N'<order/>')
EXECUTE work_on_group OrderQueue`, `
//shop/Order
message_type_name
(0 rows affected)`)
	r.expect("and so does an initiator", `
DECLARE @group uniqueidentifier, @handle uniqueidentifier
BEGIN TRANSACTION
RECEIVE @group = conversation_group_id, @handle = conversation_handle FROM ShopQueue
END CONVERSATION @handle
RECEIVE message_type_name FROM ShopQueue WHERE conversation_group_id = @group
PRINT CONCAT(@@ROWCOUNT, ' of ', @@TRANCOUNT)
COMMIT
RECEIVE message_type_name FROM ShopQueue WHERE conversation_group_id = @group`, `
message_type_name
(0 rows affected)
0 of 1
Msg 8436, Level 16, State 1, Line 9
The conversation group "<guid>" is not found.`)
}
