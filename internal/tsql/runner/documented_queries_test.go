package runner_test

var documentedQueries = []page{
	{"queries/from-using-pivot-and-unpivot: PIVOT", `
CREATE TABLE #p (DaysToManufacture int, StandardCost money)
INSERT #p VALUES (0, 5.0885), (1, 223.88), (2, 359.1082), (4, 949.4105)
SELECT DaysToManufacture, AVG(StandardCost) AS AverageCost FROM #p GROUP BY DaysToManufacture
SELECT 'AverageCost' AS Cost_Sorted_By_Production_Days, [0], [1], [2], [3], [4]
FROM (SELECT DaysToManufacture, StandardCost FROM #p) AS SourceTable
PIVOT (AVG(StandardCost) FOR DaysToManufacture IN ([0], [1], [2], [3], [4])) AS PivotTable`, `
DaysToManufacture AverageCost
0 5.0885
1 223.8800
2 359.1082
4 949.4105
Cost_Sorted_By_Production_Days 0 1 2 3 4
AverageCost 5.0885 223.8800 359.1082 NULL 949.4105`},
	{"queries/from-using-pivot-and-unpivot: groups of PIVOT", `
CREATE TABLE #o (PurchaseOrderID int IDENTITY, EmployeeID int, VendorID int)
INSERT #o VALUES (250, 1492), (250, 1492), (251, 1492), (251, 1494), (256, 1494), (250, 1496), (999, 1496)
SELECT VendorID, [250] AS Emp1, [251] AS Emp2, [256] AS Emp3 FROM (SELECT PurchaseOrderID, EmployeeID, VendorID FROM #o) p
PIVOT (COUNT(PurchaseOrderID) FOR EmployeeID IN ([250], [251], [256])) AS pvt ORDER BY pvt.VendorID`, `
VendorID Emp1 Emp2 Emp3
1492 2 1 0
1494 0 1 1
1496 1 0 0`},
	{"queries/from-using-pivot-and-unpivot: UNPIVOT", `
CREATE TABLE pvt (VendorID int, Emp1 int, Emp2 int, Emp3 int, Emp4 int, Emp5 int)
GO
INSERT INTO pvt VALUES (1, 4, 3, 5, 4, 4)
INSERT INTO pvt VALUES (2, 4, 1, NULL, 5, 5)
SELECT VendorID, Employee, Orders FROM (SELECT VendorID, Emp1, Emp2, Emp3, Emp4, Emp5 FROM pvt) p
UNPIVOT (Orders FOR Employee IN (Emp1, Emp2, Emp3, Emp4, Emp5)) AS unpvt
GO
SELECT Orders FROM (SELECT CAST(Emp1 AS bigint) AS a, Emp2 AS b FROM pvt) p UNPIVOT (Orders FOR Employee IN (a, b)) AS u
GO
DROP TABLE pvt`, `
VendorID Employee Orders
1 Emp1 4
1 Emp2 3
1 Emp3 5
1 Emp4 4
1 Emp5 4
2 Emp1 4
2 Emp2 1
2 Emp4 5
2 Emp5 5
Msg 8167, Level 16, State 1, Line 1
The type of column "b" conflicts with the type of other columns specified in the UNPIVOT list.`},
	{"functions/string-agg: D", `
CREATE TABLE #a (articleId int, title varchar(60))
CREATE TABLE #t (articleId int, tag varchar(20))
INSERT #a VALUES (172, 'Polls indicate close election results'), (176, 'New highway expected to reduce congestion'),
 (177, 'Dogs continue to be more popular than cats')
INSERT #t VALUES (172, 'politics'), (172, 'polls'), (172, 'city council'), (177, 'polls'), (177, 'animals')
SELECT a.articleId, title, STRING_AGG(tag, ',') AS tags FROM #a AS a LEFT JOIN #t AS t ON a.articleId = t.articleId GROUP BY a.articleId, title`, `
articleId title tags
172 Polls indicate close election results politics,polls,city council
176 New highway expected to reduce congestion NULL
177 Dogs continue to be more popular than cats polls,animals`},
	{"functions/string-agg: F", `
CREATE TABLE #e (town varchar(20), email varchar(40))
INSERT #e VALUES ('Seattle', 'syed0@adventure-works.com'), ('Seattle', 'catherine0@adventure-works.com'), ('Seattle', 'kim2@adventure-works.com'),
 ('LA', 'sam1@adventure-works.com'), ('LA', 'hazem0@adventure-works.com')
SELECT town, STRING_AGG(email, ';') WITHIN GROUP (ORDER BY email ASC) AS emails FROM #e GROUP BY town`, `
town emails
LA hazem0@adventure-works.com;sam1@adventure-works.com
Seattle catherine0@adventure-works.com;kim2@adventure-works.com;syed0@adventure-works.com`},
	{"functions/string-split", `
SELECT value FROM STRING_SPLIT('Lorem ipsum dolor sit amet.', ' ')
SELECT * FROM STRING_SPLIT('E-D-C-B-A', '-', 1) WHERE ordinal % 2 = 0 ORDER BY value DESC`, `
value
Lorem
ipsum
dolor
sit
amet.
value ordinal
D 2
B 4`},
	{"functions/generate-series", `
SELECT value FROM GENERATE_SERIES(1, 50, 10)
SELECT value FROM GENERATE_SERIES(3, 1)
DECLARE @start decimal(2, 1) = 0.0, @stop decimal(2, 1) = 0.3, @step decimal(2, 1) = 0.1
SELECT value FROM GENERATE_SERIES(@start, @stop, @step)
GO
SELECT value FROM GENERATE_SERIES(1, 2.5)`, `
value
1
11
21
31
41
value
3
2
1
value
0.0
0.1
0.2
0.3
Msg 5373, Level 16, State 1, Line 1
All the input parameters should be of the same type. Supported types are tinyint, smallint, int, bigint, decimal and numeric.`},
	{"functions/openjson: each kind of value", `
DECLARE @json nvarchar(4000) = N'{"StringValue":"John", "IntValue":45, "TrueValue":true, "FalseValue":false, "NullValue":null,
  "ArrayValue":["a","r","r","a","y"], "ObjectValue":{"obj":"text"}}'
SELECT * FROM OPENJSON(@json)`, `
key value type
StringValue John 1
IntValue 45 2
TrueValue true 3
FalseValue false 3
NullValue NULL 0
ArrayValue ["a","r","r","a","y"] 4
ObjectValue {"obj":"text"} 5`},
	{"functions/openjson: a path", `
DECLARE @json nvarchar(4000) = N'{"path": {"to":{"sub-object":["en-GB", "en-UK","de-AT","es-AR","sr-Cyrl"]}}}'
SELECT [key], value FROM OPENJSON(@json, '$.path.to."sub-object"')`, `
key value
0 en-GB
1 en-UK
2 de-AT
3 es-AR
4 sr-Cyrl`},
	{"functions/openjson: WITH", `
DECLARE @json nvarchar(max) = N'[{"Order":{"Number":"SO43659","Date":"2011-05-31T00:00:00"},"AccountNumber":"AW29825","Item":{"Price":2024.9940,"Quantity":1}},
 {"Order":{"Number":"SO43661","Date":"2011-06-01T00:00:00"},"AccountNumber":"AW73565","Item":{"Price":2024.9940,"Quantity":3}}]'
SELECT * FROM OPENJSON(@json) WITH (Number varchar(200) '$.Order.Number', Date datetime '$.Order.Date', Customer varchar(200) '$.AccountNumber',
  Quantity int '$.Item.Quantity', [Order] nvarchar(max) AS JSON)`, `
Number Date Customer Quantity Order
SO43659 2011-05-31 00:00:00.000 AW29825 1 {"Number":"SO43659","Date":"2011-05-31T00:00:00"}
SO43661 2011-06-01 00:00:00.000 AW73565 3 {"Number":"SO43661","Date":"2011-06-01T00:00:00"}`},
	{"functions/openjson: properties of two objects", `
DECLARE @json1 nvarchar(max) = N'{"name": "John", "surname":"Doe"}', @json2 nvarchar(max) = N'{"name": "John", "age":45}'
SELECT * FROM OPENJSON(@json1) UNION ALL SELECT * FROM OPENJSON(@json2) WHERE [key] NOT IN (SELECT [key] FROM OPENJSON(@json1))`, `
key value type
name John 1
surname Doe 1
age 45 2`},
	{"queries/with-common-table-expression: a list of levels", `
CREATE TABLE MyEmployees (EmployeeID smallint NOT NULL, FirstName nvarchar(30) NOT NULL, LastName nvarchar(40) NOT NULL, ManagerID int NULL)
GO
INSERT INTO MyEmployees VALUES (1, N'Ken', N'Sanchez', NULL), (273, N'Brian', N'Welcker', 1), (274, N'Stephen', N'Jiang', 273),
 (275, N'Michael', N'Blythe', 274), (285, N'Syed', N'Abbas', 273), (286, N'Lynn', N'Tsoflias', 285), (16, N'David', N'Bradley', 273)
;WITH DirectReports (Name, EmployeeID, EmployeeLevel, Sort) AS (
  SELECT CONVERT(varchar(255), e.FirstName + ' ' + e.LastName), e.EmployeeID, 1, CONVERT(varchar(255), e.FirstName + ' ' + e.LastName)
  FROM MyEmployees AS e WHERE e.ManagerID IS NULL
  UNION ALL
  SELECT CONVERT(varchar(255), REPLICATE('|', EmployeeLevel) + e.FirstName + ' ' + e.LastName), e.EmployeeID, EmployeeLevel + 1,
    CONVERT(varchar(255), RTRIM(Sort) + '|' + FirstName + ' ' + LastName)
  FROM MyEmployees AS e JOIN DirectReports AS d ON e.ManagerID = d.EmployeeID)
SELECT EmployeeID, Name, EmployeeLevel FROM DirectReports ORDER BY Sort
GO
WITH cte (EmployeeID, ManagerID) AS (SELECT EmployeeID, ManagerID FROM MyEmployees WHERE ManagerID IS NOT NULL
  UNION ALL SELECT cte.EmployeeID, cte.ManagerID FROM cte JOIN MyEmployees AS e ON cte.ManagerID = e.EmployeeID)
SELECT COUNT(*) AS n FROM cte OPTION (MAXRECURSION 2)
GO
DROP TABLE MyEmployees`, `
EmployeeID Name EmployeeLevel
1 Ken Sanchez 1
273 |Brian Welcker 2
16 ||David Bradley 3
274 ||Stephen Jiang 3
275 |||Michael Blythe 4
285 ||Syed Abbas 3
286 |||Lynn Tsoflias 4
n
Msg 530, Level 16, State 1, Line 1
The statement terminated. The maximum recursion 2 has been exhausted before statement completion.`},
	{"functions/grouping: sums stand behind what they sum up", `
CREATE TABLE #g (SalesQuota money, SalesYTD money)
INSERT #g VALUES (NULL, 1252127.9471), (250000, 20000000.5), (300000, 3763178.1787), (250000, 13461801.3)
SELECT SalesQuota, SUM(SalesYTD) AS TotalSalesYTD, GROUPING(SalesQuota) AS Grouping, GROUPING_ID(SalesQuota) AS Id
FROM #g GROUP BY SalesQuota WITH ROLLUP
SELECT SalesQuota, COUNT(*) AS n FROM #g GROUP BY ROLLUP (SalesQuota)
GO
SELECT GROUPING(SalesQuota) FROM #g
GO
SELECT GROUPING(SalesYTD) FROM #g GROUP BY SalesQuota`, `
SalesQuota TotalSalesYTD Grouping Id
NULL 1252127.9471 0 0
250000.0000 33461801.8000 0 0
300000.0000 3763178.1787 0 0
NULL 38477107.9258 1 1
SalesQuota n
NULL 1
250000.0000 2
300000.0000 1
NULL 4
Msg 8160, Level 15, State 1, Line 1
A GROUPING or GROUPING_ID function can only be specified when there is a GROUP BY clause.
Msg 8161, Level 15, State 1, Line 1
Argument 1 of the GROUPING function does not match any of the expressions in the GROUP BY clause.`},
	{"functions/next-value-for: A", `
CREATE SEQUENCE CountBy1 START WITH 1 INCREMENT BY 1
GO
SELECT NEXT VALUE FOR CountBy1 AS FirstUse
SELECT NEXT VALUE FOR CountBy1 AS SecondUse
SELECT current_value FROM sys.sequences WHERE name = 'CountBy1'
DROP SEQUENCE CountBy1`, `
FirstUse
1
SecondUse
2
current_value
2`},
	{"groups, DISTINCT and UNION come sorted, as SQL Server finds them", `
CREATE TABLE #t (a int, b varchar(10))
INSERT #t VALUES (1, 'b'), (2, 'a'), (3, 'a'), (4, NULL)
SELECT b, SUM(a) AS s FROM #t GROUP BY b
SELECT DISTINCT b FROM #t
SELECT b FROM #t UNION SELECT 'aa'
SELECT TOP 2 b FROM #t GROUP BY b`, `
b s
NULL 4
a 5
b 1
b
NULL
a
b
b
NULL
a
aa
b
b
NULL
a`},
	{"DISTINCT and UNION of many rows come sorted", `
CREATE TABLE #n (v int)
INSERT #n SELECT value % 7 FROM GENERATE_SERIES(1, 2000)
SELECT DISTINCT v FROM #n
SELECT v FROM #n WHERE v > 3 UNION SELECT v - 10 FROM #n WHERE v > 3`, `
v
0
1
2
3
4
5
6
v
-6
-5
-4
4
5
6`},
}
