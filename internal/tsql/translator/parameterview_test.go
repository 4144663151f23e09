package translator_test

import "testing"

// The parameters of modules are read from their texts.
func TestParametersOfModulesAreInTheCatalog(t *testing.T) {
	t.Parallel()
	const modules = `CREATE TYPE phone FROM varchar(20) NOT NULL CREATE TYPE lines AS TABLE (n int)
GO
CREATE FUNCTION dbo.twice (@i int) RETURNS decimal(9,2) WITH SCHEMABINDING, RETURNS NULL ON NULL INPUT AS BEGIN RETURN @i * 2 END
GO
CREATE FUNCTION dbo.numbers (@i bigint = 5) RETURNS TABLE AS RETURN SELECT 1 AS n
GO
`
	const drops = "\nGO\nDROP FUNCTION dbo.twice, dbo.numbers\nGO\nDROP TYPE phone, lines"
	play(t, []scenario{
		{"sys.parameters, with the result of a scalar function", modules + `SELECT OBJECT_NAME(p.object_id), p.parameter_id, p.name, t.name, p.max_length, p.precision, p.scale, p.is_output, p.has_default_value
FROM sys.parameters AS p JOIN sys.types AS t ON t.user_type_id = p.user_type_id ORDER BY 1, 2` + drops, "numbers|1|@i|bigint|8|19|0|0|0\ntwice|0||decimal|5|9|2|1|0\ntwice|1|@i|int|4|10|0|0|0"},
		{"INFORMATION_SCHEMA.PARAMETERS", modules + "SELECT SPECIFIC_NAME, ORDINAL_POSITION, PARAMETER_MODE, IS_RESULT, PARAMETER_NAME, DATA_TYPE, NUMERIC_PRECISION FROM INFORMATION_SCHEMA.PARAMETERS ORDER BY 1, 2" + drops, "numbers|1|IN|NO|@i|bigint|19\ntwice|0|OUT|YES|NULL|decimal|9\ntwice|1|IN|NO|@i|int|10"},
		{"a statement sees those that were made since", modules + `DECLARE @i int = 0 WHILE @i < 2
BEGIN
SELECT COUNT(*) FROM sys.parameters
EXEC ('CREATE OR ALTER FUNCTION dbo.numbers (@i int, @j int) RETURNS TABLE AS RETURN SELECT 1 AS n')
SET @i += 1
END` + drops, "3\n4"},
		{"the options of a module", modules + "SELECT OBJECT_NAME(object_id), is_schema_bound, is_recompiled, null_on_null_input, execute_as_principal_id FROM sys.sql_modules ORDER BY 1" + drops, "numbers|0|0|0|NULL\ntwice|1|0|1|NULL"},
		{"not in a view, which the database keeps", "CREATE VIEW v AS SELECT name FROM sys.parameters", "Msg 40517, 1: 'a view over the parameters of modules' is not supported by Parley."},
	})
}
