package runner_test

import (
	"testing"

	"github.com/parley-broker/parley/parleytest"
)

// A default keeps the name that it was given, by which it is found and dropped.
func TestADefaultHasItsName(t *testing.T) {
	t.Parallel()
	play := open(t, parleytest.Database(t).Config().ConnConfig)
	for _, c := range []struct{ rule, script, want string }{
		{"the tables", "SET NOCOUNT ON\nCREATE TABLE t (a int CONSTRAINT DF_first DEFAULT 3, b varchar(5) NOT NULL, c int DEFAULT 1, v rowversion)\nALTER TABLE t ADD CONSTRAINT DF_second DEFAULT 'x' FOR b", ""},
		{"the catalog", "SELECT name, parent_column_id AS c, is_system_named AS own FROM sys.default_constraints ORDER BY parent_column_id\nIF OBJECT_ID('DF_second', 'D') IS NOT NULL PRINT 'found'", "name c own\nDF_first 1 0\nDF_second 2 0\nDF_t_c 3 1\nfound"},
		{"a type that changes keeps it", "ALTER TABLE t ALTER COLUMN b varchar(9) NOT NULL\nSELECT COL_LENGTH('t', 'b') AS l, OBJECT_NAME(default_object_id) AS d FROM sys.columns WHERE name = 'b'", "l d\n9 DF_second"},
		{"it is dropped by its name", "ALTER TABLE t DROP CONSTRAINT df_FIRST\nINSERT t (c) VALUES (0)\nSELECT a, b FROM t\nALTER TABLE t DROP CONSTRAINT IF EXISTS DF_first", "a b\nNULL x"},
		{"it is not there twice", "ALTER TABLE t ADD DEFAULT 'y' FOR b", "Msg 1781, Level 16, State 1, Line 1\nColumn already has a DEFAULT bound to it."},
		{"another may follow", "ALTER TABLE t DROP CONSTRAINT DF_second\nALTER TABLE t ADD DEFAULT 'y' FOR b\nSELECT name FROM sys.default_constraints WHERE parent_column_id = 2", "name\nDF_t_b"},
		{"what was dropped is none", "ALTER TABLE t DROP CONSTRAINT DF_second", "Msg 3728, Level 16, State 1, Line 1\n'DF_second' is not a constraint."},
	} {
		expect(t, c.rule, play(c.script), c.want)
	}
}

// NOCHECK turns a foreign key or a check off, CHECK turns it on again, and WITH CHECK asks for the rows that are there.
func TestConstraintsAreTurnedOffAndOn(t *testing.T) {
	t.Parallel()
	config := parleytest.Database(t).Config().ConnConfig
	play := open(t, config)
	const conflict = "Msg 547, Level 16, State 0, Line 1\nThe INSERT statement conflicted with the CHECK constraint \"CK_c\". The conflict occurred in database \"DB\", table \"dbo.c\", column 'n'.\nThe statement has been terminated."
	for _, c := range []struct{ rule, script, want string }{
		{"the tables", "SET NOCOUNT ON\nCREATE TABLE p (id int CONSTRAINT PK_p PRIMARY KEY)\nCREATE TABLE c (id int CONSTRAINT FK_c REFERENCES p ON DELETE CASCADE, n int CONSTRAINT CK_c CHECK (n > 0))", ""},
		{"one that is on stays on", "ALTER TABLE c WITH CHECK CHECK CONSTRAINT FK_c\nALTER TABLE c CHECK CONSTRAINT CK_c\nINSERT c (n) VALUES (-1)", "Msg 547, Level 16, State 0, Line 3" + conflict[len("Msg 547, Level 16, State 0, Line 1"):]},
		{"one is off, the other is not", "ALTER TABLE c NOCHECK CONSTRAINT FK_c\nINSERT c VALUES (7, 1)\nSELECT is_disabled AS o, is_not_trusted AS blind FROM sys.foreign_keys\nSELECT type FROM sys.objects WHERE name = 'FK_c'", "o blind\n1 1\ntype\nF"},
		{"the other is not", "INSERT c (n) VALUES (-1)", conflict},
		{"all are off", "ALTER TABLE c NOCHECK CONSTRAINT ALL\nINSERT c VALUES (8, -1)\nSELECT is_disabled AS o FROM sys.check_constraints", "o\n1"},
		{"on again for rows that follow", "ALTER TABLE c CHECK CONSTRAINT ALL\nSELECT is_disabled AS o, is_not_trusted AS blind FROM sys.check_constraints", "o blind\n0 1"},
		{"a row that follows", "INSERT c (n) VALUES (-1)", conflict},
		{"those that are there", "ALTER TABLE c WITH CHECK CHECK CONSTRAINT FK_c", "Msg 547, Level 16, State 0, Line 1\nThe ALTER TABLE statement conflicted with the FOREIGN KEY constraint \"FK_c\". The conflict occurred in database \"DB\", table \"dbo.p\"."},
		{"what it did is as before", "DELETE c\nINSERT p VALUES (1)\nINSERT c VALUES (1, 1)\nALTER TABLE c WITH CHECK CHECK CONSTRAINT ALL\nDELETE p\nSELECT COUNT(*) AS n FROM c\nSELECT is_not_trusted AS blind FROM sys.foreign_keys", "n\n0\nblind\n0"},
		{"a key is no such constraint", "ALTER TABLE p NOCHECK CONSTRAINT PK_p", "Msg 11415, Level 16, State 1, Line 1\nObject 'PK_p' cannot be disabled or enabled. This action applies only to foreign key and check constraints."},
		{"nor is what is not there", "ALTER TABLE c NOCHECK CONSTRAINT CK_x", "Msg 4917, Level 16, State 0, Line 1\nConstraint 'CK_x' does not exist."},
	} {
		expect(t, c.rule, inOwn(play(c.script), config), c.want)
	}
}
