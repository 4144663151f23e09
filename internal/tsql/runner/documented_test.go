package runner_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/parleytest"
)

// A page is a result that the documentation of T-SQL prints, with a script that gives it: of the page's own rows where it reads a
// database of samples.
type page struct{ name, script, want string }

// Scripts of pages of the documentation print what these pages print.
func TestDocumentedResults(t *testing.T) {
	t.Parallel()
	for family, pages := range map[string][]page{"windows": documentedWindows, "queries": documentedQueries, "control": documentedControl} {
		t.Run(family, func(t *testing.T) {
			t.Parallel()
			config := parleytest.EmptyDatabase(t).Config().ConnConfig
			for _, p := range pages {
				text := "SET NOCOUNT ON\nGO\n" + strings.TrimPrefix(p.script, "\n")
				got := strings.ReplaceAll(script(t, config, text), config.Database, "DB")
				expect(t, p.name, got, strings.TrimSpace(p.want))
			}
		})
	}
}

const salesPersons = `
CREATE TABLE #s (id int, TerritoryID int, SalesYTD money, ModifiedDate date)
INSERT #s VALUES (274, NULL, 559697.5639, '2005-01-01'), (287, NULL, 519905.932, '2006-01-01'), (285, NULL, 172524.4512, '2007-01-01'),
 (283, 1, 1573012.9383, '2005-01-01'), (280, 1, 1352577.1325, '2005-01-01'), (284, 1, 1576562.1966, '2006-01-01'),
 (275, 2, 3763178.1787, '2005-01-01'), (277, 3, 3189418.3662, '2005-01-01'), (276, 4, 4251368.5497, '2005-01-01'),
 (281, 4, 2458535.6169, '2005-01-01')
`

var documentedWindows = []page{
	{"functions/rank: A", `
CREATE TABLE #i (ProductID int, Name varchar(20), LocationID int, Quantity int)
INSERT #i VALUES (494, 'Paint - Silver', 3, 49), (495, 'Paint - Blue', 3, 49), (493, 'Paint - Red', 3, 41), (496, 'Paint - Yellow', 3, 30),
 (492, 'Paint - Black', 3, 17), (495, 'Paint - Blue', 4, 35), (496, 'Paint - Yellow', 4, 25), (493, 'Paint - Red', 4, 24),
 (492, 'Paint - Black', 4, 14), (494, 'Paint - Silver', 4, 12)
SELECT ProductID, LocationID, Quantity, RANK() OVER (PARTITION BY LocationID ORDER BY Quantity DESC) AS Rank
FROM #i ORDER BY LocationID, Quantity DESC, ProductID`, `
ProductID LocationID Quantity Rank
494 3 49 1
495 3 49 1
493 3 41 3
496 3 30 4
492 3 17 5
495 4 35 1
496 4 25 2
493 4 24 3
492 4 14 4
494 4 12 5`},
	{"functions/lag: A", `
CREATE TABLE #q (id int IDENTITY PRIMARY KEY, QuotaDate date, SalesQuota money)
INSERT #q VALUES ('2005-07-01', 367000), ('2005-10-01', 556000), ('2006-01-01', 502000), ('2006-04-01', 550000), ('2006-07-01', 1429000)
SELECT YEAR(QuotaDate) AS SalesYear, SalesQuota AS CurrentQuota, LAG(SalesQuota, 1, 0) OVER (ORDER BY QuotaDate) AS PreviousQuota
FROM #q`, `
SalesYear CurrentQuota PreviousQuota
2005 367000.0000 0.0000
2005 556000.0000 367000.0000
2006 502000.0000 556000.0000
2006 550000.0000 502000.0000
2006 1429000.0000 550000.0000`},
	{"functions/lag: C", `
CREATE TABLE T (a int, b int, c int)
GO
INSERT INTO T VALUES (1, 1, -3), (2, 2, 4), (3, 1, NULL), (4, 3, 1), (5, 2, NULL), (6, 1, 5)
SELECT b, c, LAG(2*c, b*(SELECT MIN(b) FROM T), -c/2.0) OVER (ORDER BY a) AS i FROM T ORDER BY a
DROP TABLE T`, `
b c i
1 -3 1
2 4 -2
1 NULL 8
3 1 -6
2 NULL NULL
1 5 NULL`},
	{"functions/cume-dist and percent-rank", `
CREATE TABLE #r (Department varchar(20), LastName varchar(20), Rate money)
INSERT #r VALUES ('Document Control', 'Arifin', 17.7885), ('Document Control', 'Norred', 16.8269), ('Document Control', 'Kharatishvili', 16.8269),
 ('Document Control', 'Chai', 10.25), ('Document Control', 'Berge', 10.25), ('Information Services', 'Trenary', 50.4808),
 ('Information Services', 'Conroy', 39.6635), ('Information Services', 'Ajenstat', 38.4615), ('Information Services', 'Wilson', 38.4615),
 ('Information Services', 'Sharma', 32.4519), ('Information Services', 'Connelly', 32.4519), ('Information Services', 'Berg', 27.4038),
 ('Information Services', 'Meyyappan', 27.4038), ('Information Services', 'Bacon', 27.4038), ('Information Services', 'Bueno', 27.4038)
SELECT DISTINCT Department, Rate, CUME_DIST() OVER (PARTITION BY Department ORDER BY Rate) AS CumeDist,
  PERCENT_RANK() OVER (PARTITION BY Department ORDER BY Rate) AS PctRank FROM #r ORDER BY Department, Rate DESC`, `
Department Rate CumeDist PctRank
Document Control 17.7885 1 1
Document Control 16.8269 0.8 0.5
Document Control 10.2500 0.4 0
Information Services 50.4808 1 1
Information Services 39.6635 0.9 0.888888888888889
Information Services 38.4615 0.8 0.666666666666667
Information Services 32.4519 0.6 0.444444444444444
Information Services 27.4038 0.4 0`},
	{"functions/ntile: A", `
CREATE TABLE #p (LastName varchar(20), SalesYTD money)
INSERT #p VALUES ('Mitchell', 4251368.5497), ('Pak', 4116871.2277), ('Blythe', 3763178.1787), ('Carson', 3189418.3662),
 ('Varkey Chudukatil', 3121616.3202), ('Saraiva', 2604540.7172), ('Ito', 2458535.6169), ('Reiter', 2315185.611), ('Valdez', 1827066.7118),
 ('Mensa-Annan', 1576562.1966), ('Campbell', 1573012.9383), ('Vargas', 1453719.4653), ('Tsoflias', 1421810.9242), ('Ansman-Wolfe', 1352577.1325)
SELECT LastName, NTILE(4) OVER (ORDER BY SalesYTD DESC) AS Quartile, CONVERT(nvarchar(20), SalesYTD, 1) AS SalesYTD
FROM #p ORDER BY SalesYTD DESC`, `
LastName Quartile SalesYTD
Mitchell 1 4,251,368.55
Pak 1 4,116,871.23
Blythe 1 3,763,178.18
Carson 1 3,189,418.37
Varkey Chudukatil 2 3,121,616.32
Saraiva 2 2,604,540.72
Ito 2 2,458,535.62
Reiter 2 2,315,185.61
Valdez 3 1,827,066.71
Mensa-Annan 3 1,576,562.20
Campbell 3 1,573,012.94
Vargas 4 1,453,719.47
Tsoflias 4 1,421,810.92
Ansman-Wolfe 4 1,352,577.13`},
	{"functions/first-value: A", `
CREATE TABLE #f (Name varchar(30), ListPrice money)
INSERT #f VALUES ('Patch Kit/8 Patches', 2.29), ('Road Tire Tube', 3.99), ('LL Road Tire', 21.49), ('HL Road Tire', 32.60)
SELECT Name, ListPrice, FIRST_VALUE(Name) OVER (ORDER BY ListPrice ASC) AS LeastExpensive FROM #f ORDER BY ListPrice`, `
Name ListPrice LeastExpensive
Patch Kit/8 Patches 2.2900 Patch Kit/8 Patches
Road Tire Tube 3.9900 Patch Kit/8 Patches
LL Road Tire 21.4900 Patch Kit/8 Patches
HL Road Tire 32.6000 Patch Kit/8 Patches`},
	{"queries/select-over-clause: B", `
CREATE TABLE #d (SalesOrderID int, ProductID int, OrderQty smallint)
INSERT #d VALUES (43664, 772, 1), (43664, 775, 4), (43664, 714, 1), (43664, 716, 1), (43664, 777, 2), (43664, 771, 3), (43664, 773, 1), (43664, 778, 1)
SELECT ProductID, OrderQty, SUM(OrderQty) OVER (PARTITION BY SalesOrderID) AS Total, AVG(OrderQty) OVER (PARTITION BY SalesOrderID) AS "Avg",
  COUNT(OrderQty) OVER (PARTITION BY SalesOrderID) AS "Count", MIN(OrderQty) OVER (PARTITION BY SalesOrderID) AS "Min",
  MAX(OrderQty) OVER (PARTITION BY SalesOrderID) AS "Max",
  CAST(1. * OrderQty / SUM(OrderQty) OVER (PARTITION BY SalesOrderID) * 100 AS decimal(5, 2)) AS Share FROM #d WHERE ProductID > 774
  ORDER BY ProductID
SELECT ProductID, CAST(1. * OrderQty / SUM(OrderQty) OVER (PARTITION BY SalesOrderID) * 100 AS decimal(5, 2)) AS Share FROM #d
ORDER BY ProductID`, `
ProductID OrderQty Total Avg Count Min Max Share
775 4 7 2 3 1 4 57.14
777 2 7 2 3 1 4 28.57
778 1 7 2 3 1 4 14.29
ProductID Share
714 7.14
716 7.14
771 21.43
772 7.14
773 7.14
775 28.57
777 14.29
778 7.14`},
	{"queries/select-over-clause: C, each territory", salesPersons + `
SELECT id, TerritoryID, DATEPART(yy, ModifiedDate) AS SalesYear,
  CONVERT(varchar(20), AVG(SalesYTD) OVER (PARTITION BY TerritoryID ORDER BY DATEPART(yy, ModifiedDate)), 1) AS MovingAvg,
  CONVERT(varchar(20), SUM(SalesYTD) OVER (PARTITION BY TerritoryID ORDER BY DATEPART(yy, ModifiedDate)), 1) AS CumulativeTotal
FROM #s ORDER BY TerritoryID, SalesYear, id DESC`, `
id TerritoryID SalesYear MovingAvg CumulativeTotal
274 NULL 2005 559,697.56 559,697.56
287 NULL 2006 539,801.75 1,079,603.50
285 NULL 2007 417,375.98 1,252,127.95
283 1 2005 1,462,795.04 2,925,590.07
280 1 2005 1,462,795.04 2,925,590.07
284 1 2006 1,500,717.42 4,502,152.27
275 2 2005 3,763,178.18 3,763,178.18
277 3 2005 3,189,418.37 3,189,418.37
281 4 2005 3,354,952.08 6,709,904.17
276 4 2005 3,354,952.08 6,709,904.17`},
	{"queries/select-over-clause: D, to the row that follows", salesPersons + `
SELECT id, TerritoryID, CONVERT(varchar(20), SUM(SalesYTD) OVER (PARTITION BY TerritoryID ORDER BY DATEPART(yy, ModifiedDate), id DESC
  ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING), 1) AS CumulativeTotal FROM #s WHERE TerritoryID = 1 ORDER BY ModifiedDate, id DESC`, `
id TerritoryID CumulativeTotal
283 1 2,925,590.07
280 1 2,929,139.33
284 1 1,576,562.20`},
	{"queries/select-over-clause: D, from the first row", salesPersons + `
SELECT id, TerritoryID, CONVERT(varchar(20), SUM(SalesYTD) OVER (PARTITION BY TerritoryID ORDER BY DATEPART(yy, ModifiedDate), id DESC
  ROWS UNBOUNDED PRECEDING), 1) AS CumulativeTotal FROM #s WHERE TerritoryID = 1 ORDER BY ModifiedDate, id DESC`, `
id TerritoryID CumulativeTotal
283 1 1,573,012.94
280 1 2,925,590.07
284 1 4,502,152.27`},
}
