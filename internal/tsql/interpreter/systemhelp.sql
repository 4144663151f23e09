CREATE PROCEDURE sp_help @objname nvarchar(776) = NULL AS
IF @objname IS NULL
BEGIN
  SELECT o.name AS Name, s.name AS Owner, k.kind AS Object_type
  FROM sys.objects AS o JOIN sys.schemas AS s ON s.schema_id = o.schema_id LEFT JOIN (VALUES
    ('C', N'check cns'), ('D', N'default (maybe cns)'), ('F', N'foreign key cns'), ('FN', N'scalar function'),
    ('IF', N'inline function'), ('TF', N'table function'), ('P', N'stored procedure'), ('PK', N'primary key cns'),
    ('SN', N'synonym'), ('SO', N'sequence object'), ('SQ', N'queue'), ('TR', N'trigger'), ('U', N'user table'),
    ('UQ', N'unique key cns'), ('V', N'view')) AS k (type, kind) ON k.type = o.type
  ORDER BY k.kind DESC, o.name
  SELECT t.name AS User_type, b.name AS Storage_type, t.max_length AS Length, t.precision AS Prec, t.scale AS Scale,
    CASE t.is_nullable WHEN 1 THEN 'yes' ELSE 'no' END AS Nullable, CONVERT(sysname, N'none') AS Default_Name,
    CONVERT(sysname, N'none') AS Rule_Name, t.collation_name AS Collation
  FROM sys.types AS t JOIN sys.types AS b ON b.user_type_id = t.system_type_id
  WHERE t.is_user_defined = 1 AND t.is_table_type = 0
  ORDER BY t.name
  RETURN 0
END
IF PARSENAME(@objname, 3) <> DB_NAME()
BEGIN
  RAISERROR(15250, -1, -1)
  RETURN 1
END
DECLARE @id int = OBJECT_ID(@objname), @type int = TYPE_ID(@objname), @database sysname = DB_NAME()
IF @id IS NULL AND @type IS NULL
BEGIN
  RAISERROR(15009, -1, -1, @objname, @database)
  RETURN 1
END
IF @id IS NULL
BEGIN
  SELECT t.name AS Type_name, b.name AS Storage_type, t.max_length AS Length, t.precision AS Prec, t.scale AS Scale,
    CASE t.is_nullable WHEN 1 THEN 'yes' ELSE 'no' END AS Nullable, CONVERT(sysname, N'none') AS Default_name,
    CONVERT(sysname, N'none') AS Rule_name, t.collation_name AS Collation
  FROM sys.types AS t LEFT JOIN sys.types AS b ON b.user_type_id = t.system_type_id WHERE t.user_type_id = @type
  RETURN 0
END
SELECT o.name AS Name, s.name AS Owner, k.kind AS Type, o.create_date AS Created_datetime
FROM sys.objects AS o JOIN sys.schemas AS s ON s.schema_id = o.schema_id LEFT JOIN (VALUES
  ('C', N'check cns'), ('D', N'default (maybe cns)'), ('F', N'foreign key cns'), ('FN', N'scalar function'),
  ('IF', N'inline function'), ('TF', N'table function'), ('P', N'stored procedure'), ('PK', N'primary key cns'),
  ('SN', N'synonym'), ('SO', N'sequence object'), ('SQ', N'queue'), ('TR', N'trigger'), ('U', N'user table'),
  ('UQ', N'unique key cns'), ('V', N'view')) AS k (type, kind) ON k.type = o.type
WHERE o.object_id = @id
DECLARE @kind char(2) = (SELECT type FROM sys.objects WHERE object_id = @id)
IF EXISTS (SELECT * FROM sys.parameters WHERE object_id = @id)
  SELECT p.name AS Parameter_name, t.name AS Type, p.max_length AS Length,
    CASE WHEN b.name IN (N'nchar', N'nvarchar') THEN p.max_length / 2 WHEN b.name IN (N'char', N'varchar', N'binary', N'varbinary')
      THEN p.max_length ELSE NULLIF(p.precision, 0) END AS Prec,
    CASE WHEN b.name IN (N'float', N'real', N'bit') OR p.precision = 0 THEN NULL ELSE CONVERT(int, p.scale) END AS Scale,
    p.parameter_id AS Param_order, CASE WHEN b.name LIKE N'%char' OR b.name LIKE N'%text' THEN b.collation_name END AS Collation
  FROM sys.parameters AS p LEFT JOIN sys.types AS t ON t.user_type_id = p.user_type_id
    LEFT JOIN sys.types AS b ON b.user_type_id = p.system_type_id
  WHERE p.object_id = @id ORDER BY p.parameter_id
IF @kind NOT IN ('U', 'V') RETURN 0
SELECT c.name AS Column_name, t.name AS Type, CASE c.is_computed WHEN 1 THEN 'yes' ELSE 'no' END AS Computed,
  CONVERT(int, c.max_length) AS Length,
  CASE WHEN n.name IS NULL THEN '' ELSE CONVERT(char(5), c.precision) END AS Prec,
  CASE WHEN n.name IS NULL THEN '' ELSE CONVERT(char(5), c.scale) END AS Scale,
  CASE c.is_nullable WHEN 1 THEN 'yes' ELSE 'no' END AS Nullable,
  CASE WHEN t.name IN (N'char', N'varchar', N'binary', N'varbinary', N'sql_variant') THEN 'no' ELSE '(n/a)' END AS TrimTrailingBlanks,
  CASE WHEN t.name NOT IN (N'char', N'varchar', N'binary', N'varbinary') THEN '(n/a)' WHEN c.is_nullable = 1 THEN 'yes' ELSE 'no' END
    AS FixedLenNullInSource, c.collation_name AS Collation
FROM sys.columns AS c LEFT JOIN sys.types AS t ON t.user_type_id = c.user_type_id LEFT JOIN (VALUES (N'tinyint'), (N'smallint'),
  (N'int'), (N'bigint'), (N'decimal'), (N'numeric'), (N'money'), (N'smallmoney'), (N'real'), (N'float'), (N'date'), (N'time'),
  (N'datetime2'), (N'datetimeoffset')) AS n (name) ON n.name = t.name
WHERE c.object_id = @id ORDER BY c.column_id
IF EXISTS (SELECT * FROM sys.identity_columns WHERE object_id = @id)
  SELECT name AS [Identity], CONVERT(numeric(38, 0), seed_value) AS Seed, CONVERT(numeric(38, 0), increment_value) AS Increment,
    CONVERT(int, is_not_for_replication) AS [Not For Replication] FROM sys.identity_columns WHERE object_id = @id
ELSE
  SELECT CONVERT(sysname, N'No identity column defined.') AS [Identity], CONVERT(numeric(38, 0), NULL) AS Seed,
    CONVERT(numeric(38, 0), NULL) AS Increment, CONVERT(int, NULL) AS [Not For Replication]
SELECT CONVERT(sysname, N'No rowguidcol column defined.') AS [RowGuidCol]
IF @kind = 'U' SELECT CONVERT(sysname, N'PRIMARY') AS Data_located_on_filegroup
EXECUTE sp_helpindex @objname
IF @kind <> 'U' RETURN 0
EXECUTE sp_helpconstraint @objname, 'nomsg'
RAISERROR(15647, -1, -1, @objname)
RETURN 0
GO
CREATE PROCEDURE sp_helpindex @objname nvarchar(776) AS
DECLARE @id int = OBJECT_ID(@objname), @database sysname = DB_NAME()
IF @id IS NULL
BEGIN
  RAISERROR(15009, -1, -1, @objname, @database)
  RETURN 1
END
IF NOT EXISTS (SELECT * FROM sys.indexes WHERE object_id = @id AND index_id > 0)
BEGIN
  RAISERROR(15472, -1, -1, @objname)
  RETURN 0
END
SELECT i.name AS index_name, CONVERT(varchar(210), CASE i.index_id WHEN 1 THEN 'clustered' ELSE 'nonclustered' END
    + CASE i.is_unique WHEN 1 THEN ', unique' ELSE '' END + CASE i.is_primary_key WHEN 1 THEN ', primary key' ELSE '' END
    + CASE i.is_unique_constraint WHEN 1 THEN ', unique key' ELSE '' END + ' located on PRIMARY') AS index_description,
  CONVERT(nvarchar(2078), (SELECT STRING_AGG(c.name + CASE k.is_descending_key WHEN 1 THEN N'(-)' ELSE N'' END, N', ')
      WITHIN GROUP (ORDER BY k.key_ordinal)
    FROM sys.index_columns AS k JOIN sys.columns AS c ON c.object_id = k.object_id AND c.column_id = k.column_id
    WHERE k.object_id = i.object_id AND k.index_id = i.index_id AND k.is_included_column = 0)) AS index_keys
FROM sys.indexes AS i WHERE i.object_id = @id AND i.index_id > 0 ORDER BY i.name
RETURN 0
GO
CREATE PROCEDURE sp_helpconstraint @objname nvarchar(776), @nomsg varchar(5) = 'msg' AS
DECLARE @id int = OBJECT_ID(@objname), @database sysname = DB_NAME()
IF @id IS NULL
BEGIN
  RAISERROR(15009, -1, -1, @objname, @database)
  RETURN 1
END
IF @nomsg <> 'nomsg' SELECT @objname AS [Object Name]
IF EXISTS (SELECT * FROM sys.objects WHERE parent_object_id = @id AND type IN ('C', 'D', 'F', 'PK', 'UQ'))
  SELECT u.kind AS constraint_type, CASE u.place WHEN 2 THEN N' ' ELSE u.name END AS constraint_name, u.deleted AS delete_action,
    u.updated AS update_action, u.status AS status_enabled, u.replicated AS status_for_replication, u.keys AS constraint_keys FROM (
    SELECT CASE WHEN k.parent_column_id > 0 THEN N'CHECK on column ' + COL_NAME(@id, k.parent_column_id) ELSE N'CHECK Table Level ' END
        AS kind, k.name, N'(n/a)' AS deleted, N'(n/a)' AS updated, CASE k.is_disabled WHEN 1 THEN 'Disabled' ELSE 'Enabled' END AS status,
      'Is_For_Replication' AS replicated, CONVERT(nvarchar(2078), k.definition) AS keys, 1 AS place
    FROM sys.check_constraints AS k WHERE k.parent_object_id = @id
    UNION ALL
    SELECT N'DEFAULT on column ' + COL_NAME(@id, k.parent_column_id), k.name, N'(n/a)', N'(n/a)', '(n/a)', '(n/a)',
      CONVERT(nvarchar(2078), k.definition), 1
    FROM sys.default_constraints AS k WHERE k.parent_object_id = @id
    UNION ALL
    SELECT N'FOREIGN KEY', k.name, CASE k.delete_referential_action WHEN 0 THEN N'No Action' WHEN 1 THEN N'Cascade' WHEN 2 THEN N'Set Null'
        ELSE N'Set Deft' END, CASE k.update_referential_action WHEN 0 THEN N'No Action' WHEN 1 THEN N'Cascade' WHEN 2 THEN N'Set Null'
        ELSE N'Set Deft' END, CASE k.is_disabled WHEN 1 THEN 'Disabled' ELSE 'Enabled' END, 'Is_For_Replication',
      (SELECT STRING_AGG(c.name, N', ') WITHIN GROUP (ORDER BY f.constraint_column_id) FROM sys.foreign_key_columns AS f
        JOIN sys.columns AS c ON c.object_id = f.parent_object_id AND c.column_id = f.parent_column_id
        WHERE f.constraint_object_id = k.object_id), 1
    FROM sys.foreign_keys AS k WHERE k.parent_object_id = @id
    UNION ALL
    SELECT N' ', k.name, N' ', N' ', ' ', ' ', N'REFERENCES ' + @database + N'.' + OBJECT_SCHEMA_NAME(k.referenced_object_id) + N'.'
      + OBJECT_NAME(k.referenced_object_id) + N' (' + (SELECT STRING_AGG(c.name, N', ') WITHIN GROUP (ORDER BY f.constraint_column_id)
        FROM sys.foreign_key_columns AS f
        JOIN sys.columns AS c ON c.object_id = f.referenced_object_id AND c.column_id = f.referenced_column_id
        WHERE f.constraint_object_id = k.object_id) + N')', 2
    FROM sys.foreign_keys AS k WHERE k.parent_object_id = @id
    UNION ALL
    SELECT CASE i.is_primary_key WHEN 1 THEN N'PRIMARY KEY (clustered)' ELSE N'UNIQUE (non-clustered)' END, i.name, N'(n/a)', N'(n/a)',
      '(n/a)', '(n/a)', (SELECT STRING_AGG(c.name, N', ') WITHIN GROUP (ORDER BY k.key_ordinal) FROM sys.index_columns AS k
        JOIN sys.columns AS c ON c.object_id = k.object_id AND c.column_id = k.column_id
        WHERE k.object_id = i.object_id AND k.index_id = i.index_id), 1
    FROM sys.indexes AS i WHERE i.object_id = @id AND (i.is_primary_key = 1 OR i.is_unique_constraint = 1)) AS u
  ORDER BY u.name, u.place
ELSE
  RAISERROR(15469, -1, -1, @objname)
IF EXISTS (SELECT * FROM sys.foreign_keys WHERE referenced_object_id = @id)
  SELECT CONVERT(nvarchar(516), @database + N'.' + OBJECT_SCHEMA_NAME(parent_object_id) + N'.' + OBJECT_NAME(parent_object_id) + N': '
    + name) AS [Table is referenced by foreign key] FROM sys.foreign_keys WHERE referenced_object_id = @id ORDER BY 1
ELSE
  RAISERROR(15470, -1, -1, @objname)
RETURN 0
