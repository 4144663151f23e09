package runner_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/parleytest"
)

// sp_rename renames the object alone: texts that name it keep the old name, and rights on it stay.
func TestObjectsAreRenamed(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	named, config := roles(t, pool, "anna")
	play := open(t, pool.Config().ConnConfig)
	const caution = "Caution: Changing any part of an object name could break scripts and stored procedures."
	made := play(named(`SET NOCOUNT ON
GO
CREATE SCHEMA Sales
GO
CREATE TABLE Sales.item (id int CONSTRAINT PK_item PRIMARY KEY, Name varchar(5), price int CONSTRAINT CK_item CHECK (price > 0), twice AS id * 2, number tinyint)
CREATE INDEX IX_name ON Sales.item (Name)
CREATE TYPE Code FROM varchar(10)
INSERT Sales.item (id, Name, price, number) VALUES (1, 'a', 2, 3)
GO
CREATE PROCEDURE dbo.show @n int = 1 AS SELECT Name FROM Sales.item WHERE id = @n
GO
CREATE FUNCTION dbo.f (@n int) RETURNS int AS BEGIN RETURN @n + 1 END
GO
CREATE TRIGGER Sales.tr ON Sales.item AFTER UPDATE AS PRINT 'changed'
GO
GRANT EXECUTE ON dbo.show TO [@anna@]
GRANT SELECT ON Sales.item TO [@anna@]`))
	expect(t, "what is renamed", made, "")
	for _, c := range []struct{ rule, script, want string }{
		{"a column, with the check of its length", "EXEC sp_rename 'Sales.item.Name', 'Title', 'COLUMN'\nINSERT Sales.item (id, Title) VALUES (2, 'too long')\nEXEC sp_rename 'Sales.item.number', 'num', 'column'\nUPDATE Sales.item SET num = 300", caution + "\nMsg 2628, Level 16, State 1, Line 2\nString or binary data would be truncated in table '@@.Sales.item', column 'Title'. Truncated value: 'too l'.\nThe statement has been terminated.\n" + caution + "\nMsg 220, Level 16, State 2, Line 4\nArithmetic overflow error for data type tinyint, value = 300.\nThe statement has been terminated."},
		{"a text keeps the name of the column", "EXEC dbo.show", "Msg 207, Level 16, State 1, Procedure show, Line 1\nInvalid column name 'Name'."},
		{"an index", "DECLARE @r int\nEXEC @r = sp_rename N'[Sales].[item].[IX_name]', N'IX_title', N'INDEX'\nPRINT @r\nDROP INDEX IX_title ON Sales.item\nCREATE INDEX IX_title ON Sales.item (Title)", caution + "\n0"},
		{"a table, with the names of its indexes", "EXEC sp_rename 'Sales.item', 'Product'\nDROP INDEX IX_title ON Sales.Product\nUPDATE Sales.Product SET price = 3\nSELECT * FROM Sales.item", caution + "\nchanged\nMsg 208, Level 16, State 1, Line 4\nInvalid object name 'Sales.item'."},
		{"a constraint", "EXEC sp_rename 'Sales.CK_item', 'CK_price', 'OBJECT'\nUPDATE Sales.Product SET price = 0\nEXEC sp_rename 'Sales.Product.PK_item', 'PK_product', 'INDEX'\nSELECT name FROM sys.key_constraints WHERE parent_object_id = OBJECT_ID('Sales.Product')", caution + "\nMsg 547, Level 16, State 0, Line 2\nThe UPDATE statement conflicted with the CHECK constraint \"CK_price\". The conflict occurred in database \"@@\", table \"Sales.Product\", column 'price'.\nThe statement has been terminated.\n" + caution + "\nname\nPK_product"},
		{"a procedure, a function, a trigger and a type", "EXEC sp_rename 'show', 'Display'\nEXEC sp_rename 'dbo.f', 'g'\nEXEC sp_rename 'Sales.tr', 'tr2'\nEXEC sp_rename 'Code', 'Mark', 'USERDATATYPE'\nGO\nDECLARE @m Mark = 'm'\nPRINT dbo.g(1)\nEXEC display 5\nDROP TRIGGER Sales.tr2", caution + "\n" + caution + "\n" + caution + "\n" + caution + "\n2\nMsg 208, Level 16, State 1, Procedure Display, Line 1\nInvalid object name 'Sales.item'."},
		{"the definition of a procedure keeps its name", "SELECT COUNT(*) FROM sys.procedures WHERE name = 'Display'\nPRINT LEFT(OBJECT_DEFINITION(OBJECT_ID('Display')), 25)\nEXEC show", "1\nCREATE PROCEDURE dbo.show\nMsg 2812, Level 16, State 62, Line 3\nCould not find stored procedure 'show'."},
		{"what is not there, is taken or is read by a check", "EXEC sp_rename 'nothing', 'x'\nEXEC sp_rename 'nothing.a', 'x', 'COLUMN'\nEXEC sp_rename 'Sales.Product.nothing', 'x', 'COLUMN'\nEXEC sp_rename 'Sales.Product.nothing', 'x', 'INDEX'\nEXEC sp_rename 'Sales.Product.id', 'Title', 'COLUMN'\nEXEC sp_rename 'Sales.Product.price', 'cost', 'COLUMN'\nEXEC sp_rename 'Sales.Product.id', 'key', 'COLUMN'\nEXEC sp_rename 'g', 'display'\nEXEC sp_rename 'a', 'b', 'PLACE'\nEXEC sp_rename 'a b', 'c'\nEXEC sp_rename NULL, 'c'", `Msg 15225, Level 11, State 1, Procedure sp_rename, Line 1
No item by the name of 'nothing' could be found in the current database '@@', given that @itemtype was input as '(null)'.
Msg 15248, Level 11, State 1, Procedure sp_rename, Line 1
Either the parameter @objname is ambiguous or the claimed @objtype (COLUMN) is wrong.
Msg 15248, Level 11, State 1, Procedure sp_rename, Line 1
Either the parameter @objname is ambiguous or the claimed @objtype (COLUMN) is wrong.
Msg 15248, Level 11, State 1, Procedure sp_rename, Line 1
Either the parameter @objname is ambiguous or the claimed @objtype (INDEX) is wrong.
Msg 15335, Level 11, State 1, Procedure sp_rename, Line 1
Error: The new name 'Title' is already in use as a COLUMN name and would cause a duplicate that is not permitted.
Msg 15336, Level 16, State 1, Procedure sp_rename, Line 1
Object 'Sales.Product.price' cannot be renamed because the object participates in enforced dependencies.
Msg 15336, Level 16, State 1, Procedure sp_rename, Line 1
Object 'Sales.Product.id' cannot be renamed because the object participates in enforced dependencies.
Msg 15335, Level 11, State 1, Procedure sp_rename, Line 1
Error: The new name 'display' is already in use as a object name and would cause a duplicate that is not permitted.
Msg 15249, Level 11, State 1, Procedure sp_rename, Line 1
Error: Explicit @objtype 'PLACE' is unrecognized.
Msg 15253, Level 11, State 1, Procedure sp_rename, Line 1
Syntax error parsing SQL identifier 'a b'.
Msg 15223, Level 11, State 1, Procedure sp_rename, Line 1
Error: The input parameter '@objname' is not allowed to be null.`},
		{"a rollback takes the old name back", "BEGIN TRAN\nEXEC sp_rename 'Sales.Product', 'gone'\nROLLBACK\nSELECT COUNT(*) FROM Sales.Product", caution + "\n1"},
	} {
		expect(t, c.rule, play(c.script), strings.ReplaceAll(c.want, "@@", pool.Config().ConnConfig.Database))
	}
	expect(t, "rights stay", script(t, config("anna"), "EXEC display\nSELECT id FROM Sales.Product"), "Msg 208, Level 16, State 1, Procedure Display, Line 1\nInvalid object name 'Sales.item'.\nid\n1\n(1 rows affected)")
	expect(t, "another role renames nothing", script(t, config("anna"), "EXEC sp_rename 'Sales.Product', 'mine'\nEXEC sp_rename 'Sales.Product.id', 'mine', 'COLUMN'\nEXEC sp_rename 'Display', 'mine'"), strings.NewReplacer("@@", pool.Config().ConnConfig.Database).Replace(`Msg 15225, Level 11, State 1, Procedure sp_rename, Line 1
No item by the name of 'Sales.Product' could be found in the current database '@@', given that @itemtype was input as '(null)'.
Msg 15336, Level 16, State 1, Procedure sp_rename, Line 1
Object 'Sales.Product.id' cannot be renamed because the object participates in enforced dependencies.
Msg 15225, Level 11, State 1, Procedure sp_rename, Line 1
No item by the name of 'Display' could be found in the current database '@@', given that @itemtype was input as '(null)'.`))
}
