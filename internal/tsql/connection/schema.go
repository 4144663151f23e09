package connection

// SchemaNamed writes the number of the schema of PostgreSQL that a name of T-SQL stands for, an expression of type text. Several schemas
// may differ by the case of their letters alone, and a role that may create schemas chooses their letters: so dbo is spelled so or not
// there, and of others the one of the database's owner counts, then the oldest. All objects of a name are looked for in that one.
func SchemaNamed(name string) string {
	return "(select h.oid from pg_catalog.pg_namespace as h where pg_catalog.lower(h.nspname) = pg_catalog.lower(" + name + ")" +
		" and (pg_catalog.lower(" + name + ") <> 'dbo' or h.nspname = 'dbo')" +
		" order by h.nspowner = (select d.datdba from pg_catalog.pg_database as d where d.datname = current_database()) desc, h.oid limit 1)"
}
