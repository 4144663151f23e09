SELECT -1 / -2 * 3, 1 + 2 * 3 - 4 % 5, ~1 & 2 | 3 ^ 4, (1 + 2) * 3, 'a' + N'b', 0x0aF, 1.5, .5, 1., 1e5, 1.5E-3, $1.5, NULL
--
SELECT 'it''s', N'it''s', "quoted ""name", [a]]b], t.[x y], @@VERSION, @@rowcount, $IDENTITY, t.$ROWGUID
--
SELECT CASE a WHEN 1 THEN 'x' WHEN 2 THEN 'y' ELSE 'z' END, CASE WHEN a = 1 AND b IS NOT NULL THEN 1 END
--
SELECT CAST(a AS decimal(10, 2)), TRY_CAST(a AS int), CONVERT(varchar(30), a, 121), TRY_CONVERT(xml, a), PARSE('1' AS int USING 'en-US'), TRY_PARSE('x' AS date)
--
SELECT COALESCE(a, b), NULLIF(a, 0), ISNULL(a, ''), IIF(a > 1 OR b = 2, 'x', 'y'), LEFT(a, 1), RIGHT(a, 2), CURRENT_TIMESTAMP, CURRENT_USER, SESSION_USER, SYSTEM_USER, USER
--
SELECT DATEADD(day, 1, GETDATE()), DATEDIFF(ms, a, b), DATEPART(weekday, a), DATENAME(month, a), DATETRUNC(hour, a)
--
SELECT TRIM('x' FROM a), TRIM(LEADING 'x' FROM a), TRIM(a), a COLLATE Latin1_General_CI_AS + b, a AT TIME ZONE 'UTC' AT TIME ZONE @z
--
SELECT NEXT VALUE FOR dbo.s, NEXT VALUE FOR s OVER (ORDER BY a), IDENTITY(int, 1, 1) AS i INTO #t FROM t
--
SELECT JSON_OBJECT('a': 1, 'b': @x NULL ON NULL), JSON_ARRAY(1, 'x' ABSENT ON NULL), JSON_OBJECT(), JSON_ARRAY()
--
SELECT geography::Point(1, 2, 4326).Lat, hierarchyid::GetRoot(), geography::[Null], @g.STAsText(), $PARTITION.f(1), db.$PARTITION.[g h](@a)
--
SELECT {d '2020-01-01'}, {ts '2020-01-01 00:00:00'}, {fn NOW()}, {fn LEFT('abc', 1)}
--
SELECT 1 WHERE a BETWEEN 1 AND 2 AND b NOT BETWEEN 3 AND 4 OR NOT c LIKE N'x%' ESCAPE '!' AND d NOT LIKE '[a-z]' AND e IS NULL
--
SELECT 1 WHERE a IS DISTINCT FROM b AND a IS NOT DISTINCT FROM c
--
SELECT 1 WHERE a > ALL (SELECT b FROM t) AND a = ANY (SELECT 1) AND a <> SOME (SELECT 2)
--
SELECT 1 WHERE a != b AND a <> c AND a >= d AND a !< e AND a !> f AND a <= g
--
SELECT 1 WHERE (a + b) * 2 = 4 AND ((a = b)) AND (SELECT 1) = 1 AND ((SELECT 1) + 1) = 2 AND (COALESCE(a, b)) = 1
--
SELECT 1 WHERE CONTAINS(a, 'x') AND FREETEXT((a, b), @s, LANGUAGE 1033) AND CONTAINS(*, N'y') AND CONTAINS(PROPERTY(d, 'Title'), 'z')
--
SELECT @x.value('declare namespace a="urn:x"; (/a:b)[1]', 'int'), @x.exist('/a') WHERE @x.exist('/a') = 1
--
SELECT 1a, 2 [b], 3e
